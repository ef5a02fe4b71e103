//! [`Diary`]: what everyone said and heard, and what must be true of it.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::Duration;

use switchboard_testing::sim::cluster::Chronicle;
use switchboard_testing::sim::{Outcome, ensure};
use tokio::time::Instant;

/// How long a message may take to those who stay connected.
const DELAY: Duration = Duration::from_secs(75);
/// How long a call may take: a node may stand still for a minute.
const CALL: Duration = Duration::from_secs(80);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It is acknowledged.
    Yes,
    /// It is refused: no one hears it.
    No,
    /// Whoever has said it does not know.
    Perhaps,
}

struct Call {
    text: String,
    at: Instant,
    end: Option<(Instant, Closed)>,
}

/// What a user hears over one connection.
struct Stretch {
    name: String,
    start: Instant,
    end: Option<Instant>,
    received: Vec<String>,
}

pub struct Diary {
    chronicle: Chronicle,
    calls: Vec<Call>,
    stretches: Vec<Stretch>,
    /// Whether no fault but a pause happens.
    pub is_calm: bool,
    /// The last error, and when it came.
    failed: Option<(Instant, String)>,
}

impl Diary {
    pub fn new(chronicle: Chronicle) -> Self {
        Self {
            chronicle,
            calls: Vec::new(),
            stretches: Vec::new(),
            is_calm: false,
            failed: None,
        }
    }

    /// Notes that a call has failed, once for all that fail together.
    pub fn fails(&mut self, text: &str, error: &impl Display) {
        let failed = Some((Instant::now(), error.to_string()));
        if self.failed != failed {
            self.chronicle.note(&format!("{text}: {error}"));
            self.failed = failed;
        }
    }

    pub fn begins(&mut self, name: &str) -> usize {
        self.chronicle.note(&format!("{name} is connected"));
        self.stretches.push(Stretch {
            name: name.to_owned(),
            start: Instant::now(),
            end: None,
            received: Vec::new(),
        });
        self.stretches.len() - 1
    }

    pub fn receives(&mut self, stretch: usize, text: String) {
        self.stretches[stretch].received.push(text);
    }

    pub fn ends(&mut self, stretch: usize, why: &str) {
        let stretch = &mut self.stretches[stretch];
        stretch.end = Some(Instant::now());
        let note = format!("{} is not connected any more: {why}", stretch.name);
        self.chronicle.note(&note);
    }

    pub fn sends(&mut self, text: String) -> usize {
        self.calls.push(Call {
            text,
            at: Instant::now(),
            end: None,
        });
        self.calls.len() - 1
    }

    pub fn answered(&mut self, call: usize, answered: Closed) {
        self.calls[call].end = Some((Instant::now(), answered));
    }

    /// How many calls there were, and how many of them were acknowledged.
    pub fn counts(&self) -> (u64, u64) {
        let is_acknowledged = |call: &&Call| matches!(call.end, Some((_, Closed::Yes)));
        let acknowledged = self.calls.iter().filter(is_acknowledged).count();
        (self.calls.len() as u64, acknowledged as u64)
    }

    /// Checks all of it. What was said is the last notes.
    pub fn check(&self) -> Outcome {
        let checked = self.calls().and_then(|()| self.order());
        checked.map_err(|broken| self.chronicle.explain(&broken))
    }

    fn calls(&self) -> Outcome {
        let losses = self.chronicle.losses();
        for call in &self.calls {
            let text = &call.text;
            let Some((end, answered)) = call.end else {
                return Err(format!("{text}: the call never ends"));
            };
            let took = end - call.at;
            ensure(took <= CALL, || format!("{text}: the call takes {took:?}"))?;
            let due = end + DELAY;
            let is_lost = |loss: &Instant| (call.at..due).contains(loss);
            let may_be_lost = losses.iter().any(is_lost);
            for stretch in &self.stretches {
                let count = stretch.received.iter().filter(|it| *it == text).count();
                let who = self.who(stretch);
                ensure(count <= 1, || {
                    format!("doubled: {who} hears {text} {count} times")
                })?;
                ensure(answered != Closed::No || count == 0, || {
                    format!("not sent: {who} hears {text}, which was refused")
                })?;
                let is_old = answered == Closed::Yes && due < stretch.start;
                ensure(!is_old || count == 0, || {
                    format!("old: {who} hears {text}, which was said long before")
                })?;
                let is_there = stretch.start < call.at && stretch.end.is_none_or(|end| end > due);
                let must = answered == Closed::Yes && is_there && !may_be_lost;
                ensure(!must || count == 1, || {
                    let at = self.chronicle.since(call.at);
                    format!("missing: {who} does not hear {text}, said at {at:?} and acknowledged")
                })?;
            }
        }
        Ok(())
    }

    /// All hear what they hear in one order. Partial messages come before their final ones, unless something
    /// fails: then the final one may be read from the log before.
    fn order(&self) -> Outcome {
        let is_partial = |text: &&String| text.ends_with('~');
        let moved = self.moved();
        for (at, one) in self.stretches.iter().enumerate() {
            let places: HashMap<&String, usize> = one.received.iter().zip(0..).collect();
            for text in one
                .received
                .iter()
                .filter(|text| self.is_calm && is_partial(text))
            {
                let of_final = places.get(&text.trim_end_matches('~').to_owned()).copied();
                let is_late = of_final.is_some_and(|place| place < places[text]);
                ensure(!is_late, || {
                    format!(
                        "order: {} hears {text} after its final message",
                        self.who(one)
                    )
                })?;
            }
            for other in &self.stretches[..at] {
                let common = other.received.iter().filter(|text| !is_partial(text));
                let is_common = |text: &&String| places.contains_key(text) && !moved.contains(text);
                let common: Vec<_> = common.filter(is_common).collect();
                let wrong = common
                    .windows(2)
                    .find(|two| places[two[0]] > places[two[1]]);
                if let Some(two) = wrong {
                    let (one, other) = (self.who(one), self.who(other));
                    return Err(format!("order: {other} hears {two:?}, {one} the other way"));
                }
            }
        }
        Ok(())
    }

    /// What was said shortly before the store lost data, or meanwhile: it may be heard late from the old log,
    /// or be in the new one once more.
    fn moved(&self) -> HashSet<&String> {
        let losses = self.chronicle.losses();
        let is_moved = |call: &&Call| {
            let end = call
                .end
                .filter(|(_, answered)| *answered != Closed::Perhaps);
            let is_within = |loss: &Instant| {
                *loss >= call.at && end.is_none_or(|(end, _)| *loss <= end + DELAY)
            };
            losses.iter().any(is_within)
        };
        let moved = self.calls.iter().filter(is_moved);
        moved.map(|call| &call.text).collect()
    }

    fn who(&self, stretch: &Stretch) -> String {
        let (start, end) = (
            self.chronicle.since(stretch.start),
            stretch.end.map(|it| self.chronicle.since(it)),
        );
        format!("{} (connected {start:?} to {end:?})", stretch.name)
    }
}
