//! `switchboard wire send`: frames by hand, behind the login of the protocol.

use std::io::{self, BufRead as _};
use std::time::Duration;

use crate::Protocol;
use crate::cli::{self, Failure, LineArgs, Stdout, Urls, wants_colour};
use crate::decode::{Options, Printer};
use crate::load::{Caller, Kind};
use crate::secrets::Shown;
use crate::transcript::{Entry, Kind as EntryKind};
use acolyte_proto::client as acolyte;
use connectonion_proto::client as connectonion;
use exoclaw_proto::client as exoclaw;
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::WsStream;
use rpc_core::net::{Dialer as _, Message};
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, CloseReason, Incoming, Machine, Outgoing, Text};
use smarthole_proto::client as smarthole;
use snek_proto::client as snek;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The time for the answer to a login.
const LOGIN_TIME: Duration = Duration::from_secs(10);

/// Sends frames to a server, behind the login of its protocol, and prints what passes as decode does.
///
/// Without frames, each line of standard input is one. What keeps a connection open, such as a PONG, is answered. It
/// ends when nothing has come for a while after the last frame.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The URL of the server: ws://, wss://, http:// or https://. The default path is the protocol's.
    url: Urls,
    /// The frames, as they are sent.
    #[arg(value_name = "FRAME")]
    frames: Vec<String>,
    /// The protocol. Default: the one that the path of the URL names.
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// How long nothing has to come after the last frame.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = cli::duration)]
    wait: Duration,
    /// Show long frames to their end.
    #[arg(long)]
    full: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    caller: Caller,
    #[command(flatten)]
    line: LineArgs,
}

/// How long a person may take.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// A connection whose frames are printed.
struct Session {
    ws: WsStream,
    printer: Printer,
    n: usize,
    start: Instant,
    /// How long nothing has to come after the last frame.
    wait: Duration,
}

impl Session {
    fn show(
        &mut self,
        from: Side,
        kind: EntryKind,
        data: &str,
        code: Option<u16>,
    ) -> Result<(), Failure> {
        let mut line = String::new();
        self.n += 1;
        Entry::new(self.start.elapsed(), 1, Some(from), kind, data)
            .with_code(code)
            .write(&mut line);
        let shown = self.printer.line(self.n, &line, &mut Stdout, &mut |_| {});
        shown.map_err(Failure::new)
    }

    async fn send(&mut self, text: Text) -> Result<(), Failure> {
        self.show(Side::Client, EntryKind::Text, text.as_str(), None)?;
        self.ws
            .send(Outgoing::Text(text))
            .await
            .map_err(Failure::new)
    }

    /// Returns the next text; `None` at the end.
    async fn next(&mut self) -> Result<Option<Text>, Failure> {
        loop {
            match self.ws.next().await {
                Some(Ok(Message::Text(text))) => {
                    self.show(Side::Server, EntryKind::Text, text.as_str(), None)?;
                    return Ok(Some(text));
                }
                Some(Ok(Message::Close(frame))) => {
                    let (code, reason) =
                        frame.map_or((None, String::new()), |it| (Some(it.code), it.reason));
                    self.show(Side::Server, EntryKind::Close, &reason, code)?;
                    return Ok(None);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Failure::new(error)),
                None => return Ok(None),
            }
        }
    }
}

pub(super) async fn run(mut args: Args) -> Result<(), Failure> {
    let frames = frames(std::mem::take(&mut args.frames)).map_err(Failure::new)?;
    tokio::select! {
        done = talk(args, frames) => done,
        () = cli::end_signal() => Err(Failure::aborted()),
    }
}

/// Returns the frames as they come: those of the arguments, or the lines of standard input.
fn frames(given: Vec<String>) -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::Builder::new()
        .name("frames".to_owned())
        .spawn(move || {
            if given.is_empty() {
                let lines = io::stdin().lock().lines().map_while(Result::ok);
                let mut lines = lines.filter(|line| !line.trim().is_empty());
                // Nobody takes more once the connection is gone.
                let _ended = lines.try_for_each(|line| sender.blocking_send(line));
            } else {
                let _ended = given
                    .into_iter()
                    .try_for_each(|frame| sender.blocking_send(frame));
            }
        })?;
    Ok(receiver)
}

async fn talk(args: Args, frames: mpsc::Receiver<String>) -> Result<(), Failure> {
    let protocol = super::protocol(args.protocol, args.url.expose())?;
    let kind = (protocol != Protocol::SmartHole).then_some(Kind::Echo);
    let (scenario, dialer) =
        super::load::prepare(protocol, &args.url, kind, args.caller, &args.line).await?;
    let options = Options {
        protocol: Some(protocol),
        shown: args.shown,
        full: args.full,
        json: args.json,
        colour: wants_colour(&io::stdout()),
        ..Options::default()
    };
    let session = Session {
        ws: dialer.dial().await.map_err(Failure::refused)?,
        printer: Printer::new(&options),
        n: 0,
        start: Instant::now(),
        wait: args.wait,
    };
    let (seed, now) = (scenario.run, Instant::now().into_std());
    macro_rules! by {
        ($module:ident, $machine:expr) => {{
            let end = |event| match event {
                $module::ClientEvent::Closed(reason) => Some(reason),
                _ => None,
            };
            let is_ready = |it: &_| $module::ClientConn::state(it) == $module::ClientState::Ready;
            session.talk($machine, is_ready, end, frames).await
        }};
    }
    match protocol {
        Protocol::Snek => by!(snek, snek::ClientConn::new(scenario.snek(), seed, now)),
        Protocol::Exoclaw => by!(
            exoclaw,
            exoclaw::ClientConn::new(scenario.exoclaw(), seed, now)
        ),
        Protocol::SmartHole => {
            let config = scenario
                .smarthole("send".to_owned())
                .map_err(Failure::new)?;
            by!(smarthole, smarthole::ClientConn::new(config, now))
        }
        Protocol::ConnectOnion => {
            let connect = scenario.connect(seed).map_err(Failure::new)?;
            let config = scenario.connectonion();
            by!(
                connectonion,
                connectonion::ClientConn::new(config, &connect, seed, now)
            )
        }
        Protocol::Acolyte => {
            let config = scenario.acolyte().map_err(Failure::usage)?;
            by!(acolyte, acolyte::ClientConn::new(config, seed, now))
        }
    }
}

impl Session {
    /// Sends frames behind the login of a client, and answers what it answers.
    async fn talk<M: Machine>(
        mut self,
        mut client: M,
        is_ready: impl Fn(&M) -> bool,
        end: impl Fn(M::Event) -> Option<CloseReason>,
        mut frames: mpsc::Receiver<String>,
    ) -> Result<(), Failure> {
        let (mut was_ready, mut has_ended) = (false, false);
        let mut until = Instant::now() + LOGIN_TIME;
        loop {
            was_ready |= is_ready(&client);
            while let Some(event) = client.poll_event() {
                if let Some(why) = end(event).filter(|_| !was_ready) {
                    return Err(Failure::refused(why));
                }
            }
            while let Some(frame) = client.poll_transmit() {
                if let Outgoing::Text(text) = frame {
                    self.send(text).await?;
                }
            }
            // While frames may be typed, nothing is waited for.
            let limit = match has_ended || !was_ready {
                true => until,
                false => Instant::now() + FOR_EVER,
            };
            let next = tokio::select! {
                frame = frames.recv(), if was_ready && !has_ended => {
                    match frame {
                        Some(frame) => self.send(frame.into()).await?,
                        None => has_ended = true,
                    }
                    until = Instant::now() + self.wait;
                    continue;
                }
                next = timeout_at(limit, self.next()) => next,
            };
            match next {
                Ok(next) => match next? {
                    Some(text) => {
                        let now = Instant::now().into_std();
                        client.handle_message(Incoming::Text(text.as_str()), now);
                    }
                    None => return Ok(()),
                },
                Err(_) if has_ended => break,
                Err(_) if was_ready => continue,
                Err(_) => return Err(Failure::refused("no answer to the login")),
            }
            if has_ended {
                until = Instant::now() + self.wait;
            }
        }
        self.show(Side::Client, EntryKind::Close, "", Some(CloseFrame::NORMAL))?;
        let close = CloseFrame::new(CloseFrame::NORMAL, "");
        self.ws
            .send(Outgoing::Close(close))
            .await
            .map_err(Failure::new)?;
        // The server may answer, or not.
        let _closed = timeout_at(Instant::now() + self.wait, self.ws.next()).await;
        Ok(())
    }
}
