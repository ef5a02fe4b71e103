//! [`Lane`]: what goes wrong on purpose with the frames of one direction, decided without IO: the same
//! seed and the same frames give the same faults, whatever else happens at the time.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rpc_core::json::each_member;
use rpc_core::net::ws::Role;
use rpc_core::testing::Side;
use rpc_core::testing::schedule::Rng;

use crate::frame::RawFrame;
use crate::parse;

/// Bytes that may wait in a lane before it takes no more.
const MAX_QUEUED: usize = 1024 * 1024;
/// How long a frame waits for the one that is to overtake it.
const OVERTAKEN: Duration = Duration::from_secs(1);
/// What a member is replaced with.
const CORRUPT: [&str; 6] = ["null", "true", "-1", "\"\\u0000\"", "[]", "{}"];

/// The faults of a run: the rules in their order.
#[derive(Clone, Debug, Default)]
pub struct Plan(pub(crate) Vec<Rule>);

/// One fault, and when it happens.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// What its randomness comes from.
    pub(crate) id: u32,
    /// As the user wrote it.
    pub(crate) text: String,
    pub(crate) when: When,
    pub(crate) fault: Fault,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum When {
    /// With a frame of this direction and kind.
    Frame {
        from: Option<Side>,
        kind: String,
        chance: Chance,
    },
    /// This long after the connection was opened.
    At(Duration),
}

/// With which of the frames a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    Always,
    /// With so many of so many.
    Of(u64, u64),
    /// With this one only, from 1.
    Nth(u64),
}

/// What goes wrong: with a frame that passes, or with a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The frame is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives this much later.
    Delay(Range<Duration>),
    /// The next one overtakes it.
    Reorder,
    /// This member is replaced.
    Corrupt(String),
    /// The text ends after so many bytes, or somewhere.
    Truncate(Option<usize>),
    /// Nothing of this direction arrives any more, and the connection stays.
    HalfOpen,
    /// The connection is reset; a frame that passes is cut in two.
    Reset,
    /// The connection ends without a Close.
    End,
    /// One direction ends, and the other one is still read.
    HalfClose,
    /// Bytes a second that are read.
    Slow(u64),
    /// Bytes a second that are sent.
    Bandwidth(u64),
    /// A Close with this code.
    Close(u16),
    /// The upgrade is answered with this status.
    Refuse(u16),
    /// Frames that were not asked for, right or wrong.
    Frames(Vec<RawFrame>),
    /// Bytes that were not asked for.
    Bytes(Bytes),
}

/// A frame that came.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Its kind: that of the protocol, or `text`, `binary`, `ping`, `pong`, `close`.
    pub kind: Cow<'a, str>,
    /// The text of a text message.
    pub text: Option<&'a str>,
    /// Its bytes.
    pub raw: Bytes,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send(Bytes),
    /// The sender has ended.
    End,
    /// Close both ends with this code.
    Close(u16),
    /// Reset both ends.
    Reset,
}

/// The frames of one direction of one connection.
#[derive(Debug)]
pub struct Lane {
    plan: Arc<Plan>,
    from: Side,
    /// For each rule, how often it could have happened, and its own randomness.
    rules: Vec<(u64, Rng)>,
    queue: VecDeque<(Instant, Action)>,
    queued: usize,
    /// A frame that waits to be overtaken, and until when.
    held: Option<(Instant, Bytes)>,
    /// When the line has sent what it was given, with a limited bandwidth.
    free: Instant,
    /// When the next bytes are read, with a slow reader.
    reads: Instant,
    /// What happens at a moment, the first one last.
    moments: Vec<(Instant, usize)>,
    is_lost: bool,
    notes: Vec<String>,
}

impl Plan {
    /// Parses rules, separated by semicolons or line ends, whose times `duration` reads.
    ///
    /// # Errors
    /// What is wrong with which rule.
    pub fn parse(
        text: &str,
        duration: fn(&str) -> Result<Duration, String>,
    ) -> Result<Self, String> {
        parse::plan(text, duration)
    }

    /// Returns whether there are no faults.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules that hold, in one line.
    pub fn rules(&self) -> String {
        let rules: Vec<_> = self.0.iter().map(|rule| &*rule.text).collect();
        rules.join("; ")
    }

    /// Returns the status with which this connection is refused, if it is.
    pub fn refusal(&self, seed: u64, conn: u32) -> Option<u16> {
        self.0.iter().find_map(|rule| {
            let (When::Frame { chance, .. }, Fault::Refuse(status)) = (&rule.when, &rule.fault)
            else {
                return None;
            };
            let mut rng = rng(seed, conn, Side::Client, rule.id);
            happens(*chance, u64::from(conn), &mut rng).then_some(*status)
        })
    }
}

/// The randomness of one rule for one direction of one connection.
fn rng(seed: u64, conn: u32, from: Side, rule: u32) -> Rng {
    let mut rng = Rng::new(seed);
    let side = u64::from(from == Side::Server);
    for part in [u64::from(conn), side, u64::from(rule)] {
        rng = Rng::new(rng.next_u64() ^ part);
    }
    rng
}

fn happens(chance: Chance, count: u64, rng: &mut Rng) -> bool {
    match chance {
        Chance::Always => true,
        Chance::Of(some, all) => rng.below(all) < some,
        Chance::Nth(nth) => count == nth,
    }
}

impl Lane {
    /// Creates the lane of what `from` sends on this connection, opened now.
    pub fn new(plan: &Arc<Plan>, seed: u64, conn: u32, from: Side, now: Instant) -> Self {
        let mut moments: Vec<_> = plan
            .0
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| match rule.when {
                When::At(after) => Some((now + after, index)),
                When::Frame { .. } => None,
            })
            .collect();
        moments.sort_by(|a, b| b.cmp(a));
        Self {
            plan: Arc::clone(plan),
            from,
            rules: plan
                .0
                .iter()
                .map(|rule| (0, rng(seed, conn, from, rule.id)))
                .collect(),
            queue: VecDeque::new(),
            queued: 0,
            held: None,
            free: now,
            reads: now,
            moments,
            is_lost: false,
            notes: Vec::new(),
        }
    }

    /// Takes a frame that came.
    pub fn frame(&mut self, now: Instant, frame: &Frame<'_>) {
        if self.is_lost {
            return;
        }
        let plan = Arc::clone(&self.plan);
        let (mut due, mut raw, mut copies, mut waits) = (now, frame.raw.clone(), 1, false);
        let mut rate = None;
        for (index, rule) in plan.0.iter().enumerate() {
            let When::Frame { from, kind, chance } = &rule.when else {
                continue;
            };
            let Some((count, rng)) = self.rules.get_mut(index) else {
                continue;
            };
            if from.is_some_and(|from| from != self.from) || !matches(kind, &frame.kind) {
                continue;
            }
            *count += 1;
            if !happens(*chance, *count, rng) {
                continue;
            }
            let note = match &rule.fault {
                Fault::Drop => {
                    copies = 0;
                    "dropped".to_owned()
                }
                Fault::Duplicate => {
                    copies *= 2;
                    "sent twice".to_owned()
                }
                Fault::Delay(range) => {
                    let wait = range.start + rng.duration(range.end - range.start);
                    due += wait;
                    format!("delayed by {} ms", wait.as_millis())
                }
                Fault::Reorder => {
                    waits = true;
                    "held until it is overtaken".to_owned()
                }
                Fault::Corrupt(path) => {
                    let with = rng.pick(&CORRUPT).copied().unwrap_or("null");
                    let text = frame.text.and_then(|text| corrupt(text, path, with));
                    let Some(text) = text else { continue };
                    raw = encode(self.from, RawFrame::text(text));
                    format!("`{path}` replaced with {with}")
                }
                Fault::Truncate(len) => {
                    let Some(text) = frame.text else { continue };
                    let at = len.unwrap_or_else(|| {
                        usize::try_from(rng.below(text.len() as u64)).unwrap_or(0)
                    });
                    let cut = rpc_core::text::beginning(text, at);
                    raw = encode(self.from, RawFrame::text(cut));
                    format!("cut to {} bytes", cut.len())
                }
                Fault::HalfOpen => {
                    self.is_lost = true;
                    copies = 0;
                    "lost, with all that follows".to_owned()
                }
                Fault::Reset => {
                    raw = raw.slice(..raw.len() / 2);
                    self.push(due, Action::Send(raw.clone()));
                    self.push(due, Action::Reset);
                    self.is_lost = true;
                    copies = 0;
                    "reset in mid-frame".to_owned()
                }
                Fault::Close(code) => {
                    self.push(due, Action::Close(*code));
                    self.is_lost = true;
                    copies = 0;
                    format!("closed with {code}")
                }
                Fault::End | Fault::HalfClose => {
                    self.push(due, Action::End);
                    self.is_lost = true;
                    copies = 0;
                    "ended".to_owned()
                }
                Fault::Frames(frames) => {
                    for frame in frames {
                        self.push(due, Action::Send(encode(self.from, frame.clone())));
                    }
                    "frames inserted before it".to_owned()
                }
                Fault::Bytes(bytes) => {
                    self.push(due, Action::Send(bytes.clone()));
                    "bytes inserted before it".to_owned()
                }
                Fault::Slow(rate) => {
                    self.reads = self.reads.max(now) + time(raw.len(), *rate);
                    continue;
                }
                Fault::Bandwidth(limit) => {
                    rate = Some(*limit);
                    continue;
                }
                // Connections are refused before there are frames.
                Fault::Refuse(_) => continue,
            };
            self.notes.push(format!("{}: {note}", frame.kind));
        }
        for _ in 0..copies {
            if waits && self.held.is_none() {
                self.queued += raw.len();
                self.held = Some((due.max(now) + OVERTAKEN, raw.clone()));
                continue;
            }
            if let Some(rate) = rate {
                due = self.free.max(due) + time(raw.len(), rate);
                self.free = due;
            }
            self.push(due, Action::Send(raw.clone()));
            self.release(due);
        }
    }

    /// Takes bytes that are not a frame.
    pub fn other(&mut self, now: Instant, bytes: Bytes) {
        if !self.is_lost && !bytes.is_empty() {
            self.push(now, Action::Send(bytes));
        }
    }

    /// Takes the end of the connection.
    pub fn end(&mut self, now: Instant) {
        if !self.is_lost {
            self.release(now);
            self.push(now, Action::End);
        }
    }

    /// Sends the frame that waited to be overtaken.
    fn release(&mut self, due: Instant) {
        if let Some((_, raw)) = self.held.take() {
            self.queued -= raw.len();
            self.push(due, Action::Send(raw));
        }
    }

    /// Frames keep their order.
    fn push(&mut self, due: Instant, action: Action) {
        let due = self.queue.back().map_or(due, |(last, _)| due.max(*last));
        if let Action::Send(raw) = &action {
            self.queued += raw.len();
        }
        self.queue.push_back((due, action));
    }

    /// Returns what is to be done by now.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        if let Some((at, index)) = self.moments.last().copied()
            && at <= now
        {
            self.moments.pop();
            match self.plan.0.get(index).map(|rule| &rule.fault) {
                Some(Fault::Reset) => {
                    self.notes.push("the connection: reset".to_owned());
                    return Some(Action::Reset);
                }
                Some(Fault::Close(code)) => {
                    let note = format!("the connection: closed with {code}");
                    self.notes.push(note);
                    return Some(Action::Close(*code));
                }
                _ => {
                    self.notes
                        .push("the connection: half open from here on".to_owned());
                    self.is_lost = true;
                    self.queue.clear();
                    (self.held, self.queued) = (None, 0);
                }
            }
        }
        if let Some((at, _)) = &self.held
            && *at <= now
        {
            self.release(now);
        }
        if self.queue.front().is_none_or(|(due, _)| *due > now) {
            return None;
        }
        let (_, action) = self.queue.pop_front()?;
        if let Action::Send(raw) = &action {
            self.queued -= raw.len();
        }
        Some(action)
    }

    /// Returns when [`poll`](Self::poll) has something next.
    pub fn next(&self) -> Option<Instant> {
        let front = self.queue.front().map(|(due, _)| *due);
        let held = self.held.as_ref().map(|(at, _)| *at);
        let moment = self.moments.last().map(|(at, _)| *at);
        [front, held, moment].into_iter().flatten().min()
    }

    /// Returns whether the lane has room for more.
    pub const fn has_room(&self) -> bool {
        self.queued < MAX_QUEUED
    }

    /// Returns from when on more may be read.
    pub const fn reads_from(&self) -> Instant {
        self.reads
    }

    /// Returns what has been done on purpose since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// Returns how long so many bytes take at a rate.
fn time(len: usize, rate: u64) -> Duration {
    Duration::from_nanos((len as u64).saturating_mul(1_000_000_000) / rate.max(1))
}

/// Returns whether a kind fits the one of a rule: `*`, itself, what stands before its slash, or a
/// beginning and a star.
fn matches(rule: &str, kind: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(start) => kind.starts_with(start),
        None => kind == rule || kind.split('/').next() == Some(rule),
    }
}

/// Replaces the value of a member, found by its path with dots.
fn corrupt(text: &str, path: &str, with: &str) -> Option<String> {
    let path: Vec<_> = path.split('.').collect();
    let value = member(text, &path)?;
    let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let (before, behind) = (text.get(..start)?, text.get(start + value.len()..)?);
    Some(format!("{before}{with}{behind}"))
}

fn encode(from: Side, frame: RawFrame) -> Bytes {
    let role = match from {
        Side::Client => Role::Client,
        Side::Server => Role::Server,
    };
    frame.into_bytes(role).into()
}

/// Returns the raw value of a member below an object, by the names on the way.
fn member<'t>(text: &'t str, path: &[&str]) -> Option<&'t str> {
    path.iter().try_fold(text, |value, name| {
        let mut found = None;
        let take = |other: Cow<'_, str>, raw| found = (other == *name).then_some(raw).or(found);
        each_member(value, take).ok()?;
        found
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
