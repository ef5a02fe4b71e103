//! A client: sends messages or prompts one after another, again through another node when it hears nothing,
//! and notes how each came out.

use switchboard_testing::sim::{Outcome, Rng, ensure};

use super::node::Answer;
use super::store::{Body, CHANNELS, SESSIONS, Store};
use super::world::{SECOND, Time};

/// How long a client of a channel tries.
const PATIENCE: Time = 40 * SECOND;

/// What a client sends, and where.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub id: u32,
    pub place: usize,
}

struct Open {
    attempt: Attempt,
    sent: u32,
    since: Time,
    again_at: Time,
    stored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stored,
    Done,
    Refused,
    Unknown,
}

pub struct Client {
    /// Chats, or prompts an agent.
    pub chats: bool,
    number: u32,
    open: Option<Open>,
    next_at: Time,
    ended: Vec<(Attempt, bool, End)>,
}

impl Client {
    pub fn new(number: usize, rng: &mut Rng) -> Self {
        Self {
            chats: number.is_multiple_of(2),
            number: number as u32,
            open: None,
            next_at: rng.below(3 * SECOND),
            ended: Vec::new(),
        }
    }

    /// What is to be sent now, if anything. Nothing new if it is `late`.
    pub fn due(&mut self, now: Time, late: bool, rng: &mut Rng) -> Option<Attempt> {
        if let Some(open) = &mut self.open {
            if self.chats && now >= open.since + PATIENCE {
                self.end(End::Unknown, now, rng);
                return None;
            }
            if now < open.again_at {
                return None;
            }
            open.sent += 1;
            open.again_at = now + 5 * SECOND;
            return Some(open.attempt);
        }
        if late || now < self.next_at {
            return None;
        }
        let places = if self.chats { CHANNELS } else { SESSIONS };
        let attempt = Attempt {
            id: self.number << 16 | self.ended.len() as u32,
            place: rng.below(places as u64) as usize,
        };
        self.open = Some(Open {
            attempt,
            sent: 1,
            since: now,
            again_at: now + 5 * SECOND,
            stored: false,
        });
        Some(attempt)
    }

    /// When to look next.
    pub fn wakes(&self, late: bool) -> Option<Time> {
        match &self.open {
            Some(open) if self.chats => Some(open.again_at.min(open.since + PATIENCE)),
            Some(open) => Some(open.again_at),
            None => Some(self.next_at).filter(|_| !late),
        }
    }

    pub fn handle(&mut self, id: u32, answer: Answer, now: Time, rng: &mut Rng) {
        let Some(open) = self.open.as_mut().filter(|open| open.attempt.id == id) else {
            return;
        };
        match answer {
            Answer::Stored if self.chats => self.end(End::Stored, now, rng),
            Answer::Stored => open.stored = true,
            Answer::Done => self.end(End::Done, now, rng),
            // Of several copies another one may be kept.
            Answer::Refused if open.sent == 1 => self.end(End::Refused, now, rng),
            Answer::Refused | Answer::Failed => open.again_at = open.again_at.min(now + SECOND),
        }
    }

    fn end(&mut self, end: End, now: Time, rng: &mut Rng) {
        if let Some(open) = self.open.take() {
            self.ended.push((open.attempt, open.stored, end));
            self.next_at = now + rng.below(6 * SECOND);
        }
    }

    /// How many requests ended, and how many of them with the answer.
    pub fn figures(&self) -> (u64, u64) {
        let answered = self
            .ended
            .iter()
            .filter(|(_, _, end)| matches!(end, End::Stored | End::Done));
        (self.ended.len() as u64, answered.count() as u64)
    }

    /// Whether all that it was told is true.
    pub fn judge(&self, store: &Store) -> Outcome {
        if let Some(open) = &self.open {
            return Err(format!(
                "unknown: a client never learned what became of {:?}",
                open.attempt
            ));
        }
        for (attempt, stored, end) in &self.ended {
            let (subject, body) = if self.chats {
                (attempt.place, Body::Chat(attempt.id))
            } else {
                (CHANNELS + attempt.place, Body::Prompt(attempt.id))
            };
            let kept = store.has(subject, body);
            let told = *stored || matches!(end, End::Stored | End::Done);
            ensure(kept || !told, || format!("lost: {body:?} was acknowledged"))?;
            let answered = store.has(subject, Body::Final(attempt.id));
            ensure(answered || *end != End::Done, || {
                format!("lost: the answer to {body:?}")
            })?;
            ensure(!kept || *end != End::Refused, || {
                format!("kept: {body:?} was refused")
            })?;
        }
        Ok(())
    }
}
