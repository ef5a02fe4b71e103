//! [`Publish`]: how a node of the model sends a record until its outcome is known.

use std::time::{Duration, Instant};

use rpc_core::backoff::{Backoff, BackoffPolicy, Jitter};

/// The delays between attempts.
const BACKOFF: BackoffPolicy = BackoffPolicy {
    max: Some(Duration::from_secs(2)),
    jitter: Jitter::Equal,
    ..BackoffPolicy::new(Duration::from_millis(100), 2.0)
};
/// How long to wait for the answer to an attempt.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// After how long the outcome counts as unknown.
const DEADLINE: Duration = Duration::from_secs(20);

/// What the store says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishReply {
    /// Stored, by this attempt or an earlier one with the same id.
    Stored { sequence: u64 },
    /// The record before it is not the expected one.
    Conflict,
    /// An attempt would meet it again: full.
    Refused,
    /// No answer.
    Unknown,
}

/// A record that is not known to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishError {
    /// What the store said last.
    pub reply: PublishReply,
    /// Whether the record may be stored all the same, now or later.
    pub maybe_stored: bool,
}

/// The first answer decides, whichever attempt it belongs to.
pub struct Publish {
    backoff: Backoff,
    entropy: u64,
    attempts: u64,
    unsent: bool,
    /// When the attempt in flight counts as lost.
    answer_by: Option<Instant>,
    /// When to try again.
    next_at: Option<Instant>,
    give_up_at: Instant,
    outcome: Option<Result<u64, PublishError>>,
    ended: bool,
}

impl Publish {
    pub fn new(entropy: u64, now: Instant) -> Self {
        let mut publish = Self {
            backoff: Backoff::new(BACKOFF),
            entropy,
            attempts: 0,
            unsent: false,
            answer_by: None,
            next_at: None,
            give_up_at: now + DEADLINE,
            outcome: None,
            ended: false,
        };
        publish.attempt(now);
        publish
    }

    /// Returns the number of the attempt that has to be sent now, with the same record and id each time.
    pub fn poll_request(&mut self) -> Option<u64> {
        std::mem::take(&mut self.unsent).then_some(self.attempts)
    }

    /// Takes the store's answer to this attempt.
    pub fn handle_reply(&mut self, attempt: u64, reply: PublishReply, now: Instant) {
        if self.ended || attempt > self.attempts {
            return;
        }
        let current = attempt == self.attempts && self.answer_by.is_some();
        match reply {
            PublishReply::Stored { sequence } => self.end(Ok(sequence)),
            PublishReply::Unknown if current => self.lost(now),
            PublishReply::Unknown => {}
            PublishReply::Conflict | PublishReply::Refused => self.fail(reply),
        }
    }

    /// Lets it act on deadlines at or before `now`. An early call is a no-op.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ended {
            return;
        }
        if self.give_up_at <= now {
            self.fail(PublishReply::Unknown);
            return;
        }
        if self.answer_by.is_some_and(|at| at <= now) {
            self.lost(now);
        }
        if self.next_at.is_some_and(|at| at <= now) {
            self.attempt(now);
        }
    }

    /// Returns the outcome, once: the sequence number of the stored record, or why it is not known to be
    /// stored.
    pub fn poll_event(&mut self) -> Option<Result<u64, PublishError>> {
        self.outcome.take()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` once it has ended.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.answer_by.or(self.next_at).unwrap_or(self.give_up_at);
        (!self.ended).then(|| next.min(self.give_up_at))
    }

    fn attempt(&mut self, now: Instant) {
        self.attempts += 1;
        self.unsent = true;
        self.next_at = None;
        self.answer_by = Some(now + ANSWER_TIMEOUT);
    }

    /// The attempt in flight has no answer.
    fn lost(&mut self, now: Instant) {
        self.answer_by = None;
        let entropy = self.entropy.rotate_left(13).wrapping_mul(self.attempts);
        self.next_at = self.backoff.next_delay(entropy).map(|delay| now + delay);
    }

    fn fail(&mut self, reply: PublishReply) {
        // Another attempt without an answer may be stored, or arrive later.
        let maybe_stored = self.attempts > 1 || reply == PublishReply::Unknown;
        self.end(Err(PublishError {
            reply,
            maybe_stored,
        }));
    }

    fn end(&mut self, outcome: Result<u64, PublishError>) {
        self.ended = true;
        self.unsent = false;
        self.outcome = Some(outcome);
    }
}
