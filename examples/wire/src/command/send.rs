//! `switchboard wire send`: frames by hand, behind the login of the protocol.

use std::io::{self, BufRead as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Protocol;
use crate::cli::{self, Failure, LineArgs, Stdout, Urls, wants_colour};
use crate::client::{Client, Happened};
use crate::decode::{Options, Printer};
use crate::load::{Caller, Kind};
use crate::lock;
use crate::secrets::Shown;
use crate::transcript::{Entry, Kind as EntryKind};
use rpc_core::net::{Dialer as _, Direction, Driver, DriverConfig, Frame};
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, CloseReason, Machine as _};
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

/// What has passed, which is printed.
struct Passed {
    printer: Printer,
    n: usize,
    start: Instant,
    last: Instant,
}

impl Passed {
    fn show(&mut self, from: Side, kind: EntryKind, data: &str, code: Option<u16>) {
        self.last = Instant::now();
        self.n += 1;
        let mut line = String::new();
        Entry::new(self.start.elapsed(), 1, Some(from), kind, data)
            .with_code(code)
            .write(&mut line);
        // What cannot be written ends the command: the output keeps that.
        let _lost = self.printer.line(self.n, &line, &mut Stdout, &mut |_| {});
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

/// Sends frames behind the login of a client, and answers what it answers.
async fn talk(args: Args, mut frames: mpsc::Receiver<String>) -> Result<(), Failure> {
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
    let now = Instant::now();
    let passed = Arc::new(Mutex::new(Passed {
        printer: Printer::new(&options),
        n: 0,
        start: now,
        last: now,
    }));
    let seen = Arc::clone(&passed);
    let observer = move |frame: &Frame<'_>| {
        let from = match frame.direction() {
            Direction::In => Side::Server,
            Direction::Out => Side::Client,
        };
        if let Some(text) = frame.text() {
            lock(&seen).show(from, EntryKind::Text, &text, None);
        }
    };
    let client = Client::new(&scenario, "send".to_owned(), scenario.run, now.into_std());
    let client = client.map_err(Failure::usage)?;
    let service = super::service(protocol);
    let unreached = |reason: &CloseReason| cli::unreached(&service, &args.url, reason);
    let dialed = dialer.dial().await;
    let ws = dialed.map_err(|error| unreached(&CloseReason::from(&error)))?;
    let config = DriverConfig {
        observer: Some(Arc::new(observer)),
        ..DriverConfig::default()
    };
    let mut line = Driver::with_config(client, ws, config);
    let (mut is_ready, mut has_ended) = (false, false);
    loop {
        // The reader has seen enough, or the error is reported.
        if cli::is_output_lost() {
            return Ok(());
        }
        let last = lock(&passed).last;
        let limit = match (is_ready, has_ended) {
            (false, _) => now + LOGIN_TIME,
            // While frames may be typed, nothing is waited for.
            (true, false) => Instant::now() + FOR_EVER,
            (true, true) => last + args.wait,
        };
        tokio::select! {
            frame = frames.recv(), if is_ready && !has_ended => match frame {
                Some(frame) => line.machine_mut().send(frame.into()),
                None => {
                    has_ended = true;
                    lock(&passed).last = Instant::now();
                }
            },
            happened = timeout_at(limit, line.next()) => match happened {
                Ok(Some(Happened::Ready)) => is_ready = true,
                Ok(Some(Happened::Failed(why))) if !is_ready => {
                    let message = why.to_owned();
                    return Err(unreached(&CloseReason::Violation { message }));
                }
                Ok(Some(Happened::Closed(CloseReason::Peer(frame)))) => {
                    lock(&passed).show(Side::Server, EntryKind::Close, &frame.reason, Some(frame.code));
                    if !is_ready {
                        return Err(unreached(&CloseReason::Peer(frame)));
                    }
                }
                Ok(Some(Happened::Closed(reason))) if is_ready => {
                    let why = format_args!("{reason}; see whether {} still runs", service.name);
                    return Err(Failure::new(why));
                }
                Ok(Some(Happened::Closed(reason))) => return Err(unreached(&reason)),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(_) if !is_ready => {
                    let after = LOGIN_TIME;
                    return Err(unreached(&CloseReason::HandshakeTimeout { after }));
                }
                Err(_) if lock(&passed).last > last => {}
                Err(_) => break,
            },
        }
    }
    let close = CloseFrame::NORMAL;
    lock(&passed).show(Side::Client, EntryKind::Close, "", Some(close));
    line.machine_mut().close(Instant::now().into_std());
    let closed = async { while line.next().await.is_some() {} };
    // The server may answer, or not.
    let _closed = timeout_at(Instant::now() + args.wait, closed).await;
    Ok(())
}
