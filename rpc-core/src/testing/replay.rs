//! [`replay`]: a recording becomes a test of a machine. Its peer is played, the machine checked.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Side;
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::{CloseFrame, Incoming, Outgoing};
use crate::{Instant, Limits, json};

/// The members of frames that need not be as recorded, by name.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Differs<'a> {
    /// Strings that the machine makes, such as ids. The first one that it sends stands for the
    /// recorded one from then on, in both directions.
    pub ids: &'a [&'a str],
    /// Members that may have any value or be absent, such as times.
    pub any: &'a [&'a str],
}

/// Plays the peer of a machine on the first connection of a recording, and compares what the machine
/// sends: its texts as JSON, in their order, and its Close. Pings and pongs are passed over. Time is
/// virtual. `on_event` gets the events, and can call the machine as the recorded program did.
///
/// # Panics
/// With the line of the recording and what differs, or if a line is not a line of a recording.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/doubling.inc"));
/// use rpc_core::testing::Side;
/// use rpc_core::testing::replay::{Differs, replay};
///
/// # fn main() {
/// // Usually `include_str!("bug.jsonl")`.
/// const RECORDING: &str = r#"{"transcript":1}
/// {"at":0.00,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"n\":21}"}
/// {"at":0.01,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"n\":42}"}"#;
///
/// replay(RECORDING, Side::Server, &mut Server::default(), Instant::now(), Differs::default(), |server, question, _| {
///     let _ = server.core.send_json(&Frame { n: 2 * question.n, ..question });
/// });
/// # }
/// ```
#[allow(clippy::panic, reason = "it is a test")]
pub fn replay<M: Machine>(
    recording: &str,
    side: Side,
    machine: &mut M,
    now: Instant,
    differs: Differs<'_>,
    on_event: impl FnMut(&mut M, M::Event, Instant),
) {
    let mut replay = Replay {
        machine,
        on_event,
        sent: VecDeque::new(),
        compared: Compared::new(differs),
    };
    let (mut now, start) = (now, now);
    for (after, is_own, entry) in first_connection(recording, side) {
        now = now.max(start + after);
        replay.advance(now);
        let compared = match is_own && entry.is_message() {
            true => replay.compared.frame(replay.sent.pop_front(), &entry),
            false => Ok(()),
        };
        if !is_own {
            replay.receive(&entry, now);
        }
        replay.drain(now);
        if let Err(why) = compared {
            panic!("at {:?}: {why}", entry.at());
        }
    }
    if let Some(more) = replay.sent.front() {
        panic!("more is sent than recorded: {more:?}");
    }
}

/// How long a program may take for a frame that is recorded.
#[cfg(feature = "tokio")]
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays the peer of a whole program on the first connection of a recording, over the other end of
/// the program's transport, and compares what the program sends as [`replay`] does: a bot, a plugin
/// or a client by the listener of a [`MemDialer`](crate::net::mem::MemDialer), a server with its
/// handler by a [`duplex`](crate::net::mem::duplex) whose other end its
/// [handle](crate::net::server::ServerHandle::serve) serves. What the peer sends comes when it was
/// recorded; pause tokio's clock, and it takes no time.
///
/// # Cancel safety
/// Dropping the future drops the line.
///
/// # Panics
/// As [`replay`] does, and if a recorded frame is not sent within a minute.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/doubling.inc"));
/// use rpc_core::net::mem;
/// use rpc_core::testing::Side;
/// use rpc_core::testing::replay::{Differs, replay_over};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// const RECORDING: &str = r#"{"transcript":1}
/// {"at":0.00,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"n\":21}"}
/// {"at":0.01,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"n\":42}"}"#;
///
/// let (line, theirs) = mem::duplex(16);
/// tokio::spawn(async move {
///     let mut server = Driver::new(Server::default(), theirs); // the program
///     while let Some(question) = server.next().await {
///         let _ = server.machine_mut().core.send_json(&Frame { n: 2 * question.n, ..question });
///     }
/// });
/// replay_over(RECORDING, Side::Server, line, Differs::default()).await;
/// # }
/// ```
#[cfg(feature = "tokio")]
#[allow(clippy::panic, reason = "it is a test")]
pub async fn replay_over(
    recording: &str,
    side: Side,
    mut line: impl crate::net::Transport,
    differs: Differs<'_>,
) {
    use crate::net::{Message, time};
    use futures_util::{SinkExt as _, StreamExt as _};

    let mut compared = Compared::new(differs);
    let start = time::now();
    for (after, is_own, entry) in first_connection(recording, side) {
        let outcome = if !is_own {
            time::sleep_until(start + after).await;
            let sent = match entry.kind {
                Kind::Text => {
                    line.send(Outgoing::Text(compared.bind(&entry).into()))
                        .await
                }
                Kind::Binary => line.send(Outgoing::Binary(entry.payload().into())).await,
                Kind::Close => line.send(Outgoing::Close(entry.close())).await,
                Kind::Eof => return,
                Kind::Open => Ok(()),
            };
            sent.map_err(|error| format!("the program has left: {error}"))
        } else if entry.is_message() {
            let next = async {
                loop {
                    return match line.next().await?.ok()? {
                        Message::Text(text) => Some(Outgoing::Text(text)),
                        Message::Binary(bytes) => Some(Outgoing::Binary(bytes)),
                        Message::Close(frame) => frame.map(Outgoing::Close),
                        _ => continue,
                    };
                }
            };
            let sent = time::timeout(PATIENCE, next).await.ok().flatten();
            compared.frame(sent, &entry)
        } else {
            Ok(())
        };
        if let Err(why) = outcome {
            panic!("at {:?}: {why}", entry.at());
        }
    }
}

/// Returns the entries of the first connection: when, whether `side` sent it, and what.
#[allow(clippy::panic, reason = "it is a test")]
fn first_connection(
    recording: &str,
    side: Side,
) -> impl Iterator<Item = (Duration, bool, Entry)> + use<> {
    let read = entries(recording).unwrap_or_else(|error| panic!("{error}"));
    let mut read = read.into_iter().filter(|it| it.dir.is_some()).peekable();
    let Some((conn, start)) = read.peek().map(|it| (it.conn, it.at())) else {
        panic!("the recording is empty");
    };
    let by = match side {
        Side::Client => Dir::C2s,
        Side::Server => Dir::S2c,
    };
    read.filter(move |it| it.conn == conn)
        .map(move |it| (it.at().saturating_sub(start), it.dir == Some(by), it))
}

/// The first line of a recording, as `switchboard wire proxy` writes them.
#[derive(Deserialize)]
struct Header {
    transcript: u32,
}

/// Another line.
#[derive(Deserialize)]
struct Entry {
    /// Seconds since the recording began.
    at: f64,
    conn: u32,
    dir: Option<Dir>,
    kind: Kind,
    #[serde(default)]
    data: String,
    code: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dir {
    C2s,
    S2c,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Text,
    Binary,
    Close,
    Eof,
    /// What a machine neither sends nor receives.
    #[serde(alias = "http", alias = "body", alias = "sse")]
    #[serde(alias = "ping", alias = "pong", alias = "fault", alias = "note")]
    Open,
}

impl Entry {
    fn at(&self) -> Duration {
        Duration::from_secs_f64(self.at)
    }

    /// Returns what is written as hexadecimal digits.
    fn payload(&self) -> Vec<u8> {
        let byte = |pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<_> = self.data.as_bytes().chunks(2).map(byte).collect();
        bytes.unwrap_or_default()
    }

    fn close(&self) -> CloseFrame {
        CloseFrame::new(self.code.unwrap_or(CloseFrame::NORMAL), &*self.data)
    }

    fn is_message(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Binary | Kind::Close)
    }
}

fn entries(recording: &str) -> Result<Vec<Entry>, String> {
    let (mut entries, limits) = (Vec::new(), Limits::unlimited());
    let lines = recording.trim_start_matches('\u{feff}').lines();
    for (line, number) in lines.zip(1..).filter(|it| !it.0.trim_ascii().is_empty()) {
        let header = || json::decode::<Header>(line, &limits);
        match json::decode::<Entry>(line, &limits) {
            Ok(entry) => entries.push(entry),
            Err(_) if header().is_ok_and(|it| it.transcript == 1) => {}
            Err(error) => return Err(format!("line {number} is not one of a recording: {error}")),
        }
    }
    Ok(entries)
}

struct Replay<'a, M, F> {
    machine: &'a mut M,
    on_event: F,
    /// Frames that the machine sent and that are not compared yet.
    sent: VecDeque<Outgoing>,
    compared: Compared<'a>,
}

impl<M: Machine, F: FnMut(&mut M, M::Event, Instant)> Replay<'_, M, F> {
    fn drain(&mut self, now: Instant) {
        loop {
            while let Some(frame) = self.machine.poll_transmit() {
                if !matches!(frame, Outgoing::Ping(_)) {
                    self.sent.push_back(frame);
                }
            }
            let Some(event) = self.machine.poll_event() else {
                return;
            };
            (self.on_event)(self.machine, event, now);
        }
    }

    /// Lets time pass.
    fn advance(&mut self, now: Instant) {
        self.drain(now);
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= now) {
            self.machine.handle_timeout(at);
            self.drain(at);
        }
    }

    /// Gives the machine what its peer sent.
    fn receive(&mut self, entry: &Entry, now: Instant) {
        match entry.kind {
            Kind::Text => {
                let text = self.compared.bind(entry);
                self.machine.handle_message(Incoming::Text(&text), now);
            }
            Kind::Binary => {
                let bytes = entry.payload();
                self.machine.handle_message(Incoming::Binary(&bytes), now);
            }
            Kind::Close => {
                let frame = entry.code.map(|_| entry.close());
                let why = Disconnect::PeerClosed(frame);
                self.machine.handle_disconnect(why, now);
            }
            Kind::Eof => self.machine.handle_disconnect(Disconnect::Eof, now),
            Kind::Open => {}
        }
    }
}

/// What was sent, against what was recorded.
struct Compared<'a> {
    differs: Differs<'a>,
    /// Recorded ids and those that the program made in their place.
    bound: Vec<(String, String)>,
}

impl<'a> Compared<'a> {
    const fn new(differs: Differs<'a>) -> Self {
        Self {
            differs,
            bound: Vec::new(),
        }
    }

    /// Returns a recorded text of the peer, with the program's ids.
    fn bind(&self, entry: &Entry) -> String {
        let quoted = |text: &String| Value::from(text.as_str()).to_string();
        let bound = self.bound.iter();
        bound.fold(entry.data.clone(), |text, (was, is)| {
            text.replace(&quoted(was), &quoted(is))
        })
    }

    /// Compares the next frame with the recorded one.
    fn frame(&mut self, sent: Option<Outgoing>, entry: &Entry) -> Result<(), String> {
        let Some(sent) = sent else {
            return Err(format!("nothing is sent in place of {}", entry.data));
        };
        let is_same = match (&sent, entry.kind) {
            (Outgoing::Text(text), Kind::Text) => {
                match (
                    serde_json::from_str(&entry.data),
                    serde_json::from_str(text.as_str()),
                ) {
                    (Ok(was), Ok(is)) => return self.member("", &was, &is),
                    _ => text.as_str() == entry.data,
                }
            }
            (Outgoing::Binary(bytes), Kind::Binary) => *bytes == entry.payload(),
            (Outgoing::Close(frame), Kind::Close) => Some(frame.code) == entry.code,
            _ => false,
        };
        match is_same {
            true => Ok(()),
            false => Err(format!("recorded {}, sent {sent:?}", entry.data)),
        }
    }

    /// Compares a member, and those in it.
    fn member(&mut self, name: &str, was: &Value, is: &Value) -> Result<(), String> {
        match (was, is) {
            (Value::Object(was), Value::Object(is)) => {
                let names = was
                    .keys()
                    .chain(is.keys().filter(|it| !was.contains_key(*it)));
                for name in names.filter(|it| !self.differs.any.contains(&it.as_str())) {
                    let absent = &Value::Null;
                    let [was, is] = [was, is].map(|it| it.get(name).unwrap_or(absent));
                    self.member(name, was, is)?;
                }
                Ok(())
            }
            (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
                let mut pairs = was.iter().zip(is);
                pairs.try_for_each(|(was, is)| self.member(name, was, is))
            }
            (Value::Number(was), Value::Number(is)) if was.as_f64() == is.as_f64() => Ok(()),
            (Value::String(was), Value::String(is)) if self.differs.ids.contains(&name) => {
                match self.bound.iter().find(|(recorded, _)| recorded == was) {
                    Some((_, bound)) if bound == is => Ok(()),
                    Some((_, bound)) => Err(format!("`{name}`: {bound} became {is}")),
                    None => {
                        self.bound.push((was.clone(), is.clone()));
                        Ok(())
                    }
                }
            }
            (was, is) if was == is => Ok(()),
            (was, is) => Err(format!("`{name}`: recorded {was}, sent {is}")),
        }
    }
}
