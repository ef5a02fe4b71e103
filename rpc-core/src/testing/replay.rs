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
        differs,
        sent: VecDeque::new(),
        bound: Vec::new(),
    };
    let read = entries(recording).unwrap_or_else(|error| panic!("{error}"));
    let mut entries = read.iter().filter(|it| it.dir.is_some());
    let Some(first) = entries.clone().next() else {
        panic!("the recording is empty");
    };
    let (mut now, start) = (now, now);
    let by = match side {
        Side::Client => Dir::C2s,
        Side::Server => Dir::S2c,
    };
    let entries = entries.by_ref().filter(|it| it.conn == first.conn);
    for entry in entries {
        now = now.max(start + entry.at().saturating_sub(first.at()));
        replay.advance(now);
        let took = match entry.dir == Some(by) {
            true => replay.expect(entry),
            false => {
                replay.receive(entry, now);
                Ok(())
            }
        };
        replay.drain(now);
        if let Err(why) = took {
            panic!("at {:?}: {why}", entry.at());
        }
    }
    if let Some(more) = replay.sent.front() {
        panic!("more is sent than recorded: {more:?}");
    }
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
    differs: Differs<'a>,
    /// Frames that the machine sent and that are not compared yet.
    sent: VecDeque<Outgoing>,
    /// Recorded ids and those that the machine made in their place.
    bound: Vec<(String, String)>,
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
                let quoted = |text: &String| Value::from(text.as_str()).to_string();
                let text = self
                    .bound
                    .iter()
                    .fold(entry.data.clone(), |text, (was, is)| {
                        text.replace(&quoted(was), &quoted(is))
                    });
                self.machine.handle_message(Incoming::Text(&text), now);
            }
            Kind::Binary => {
                let bytes = entry.payload();
                self.machine.handle_message(Incoming::Binary(&bytes), now);
            }
            Kind::Close => {
                let frame = entry.code.map(|code| CloseFrame::new(code, &*entry.data));
                let why = Disconnect::PeerClosed(frame);
                self.machine.handle_disconnect(why, now);
            }
            Kind::Eof => self.machine.handle_disconnect(Disconnect::Eof, now),
            Kind::Open => {}
        }
    }

    /// Compares the next frame of the machine with the recorded one.
    fn expect(&mut self, entry: &Entry) -> Result<(), String> {
        if !matches!(entry.kind, Kind::Text | Kind::Binary | Kind::Close) {
            return Ok(());
        }
        let Some(sent) = self.sent.pop_front() else {
            return Err(format!("nothing is sent in place of {}", entry.data));
        };
        let is_same = match (&sent, entry.kind) {
            (Outgoing::Text(text), Kind::Text) => {
                match (
                    serde_json::from_str(&entry.data),
                    serde_json::from_str(text.as_str()),
                ) {
                    (Ok(was), Ok(is)) => return self.compare("", &was, &is),
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
    fn compare(&mut self, name: &str, was: &Value, is: &Value) -> Result<(), String> {
        match (was, is) {
            (Value::Object(was), Value::Object(is)) => {
                let names = was
                    .keys()
                    .chain(is.keys().filter(|it| !was.contains_key(*it)));
                for name in names.filter(|it| !self.differs.any.contains(&it.as_str())) {
                    let absent = &Value::Null;
                    let [was, is] = [was, is].map(|it| it.get(name).unwrap_or(absent));
                    self.compare(name, was, is)?;
                }
                Ok(())
            }
            (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
                let mut pairs = was.iter().zip(is);
                pairs.try_for_each(|(was, is)| self.compare(name, was, is))
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
