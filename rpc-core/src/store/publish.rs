//! [`Publish`]: a record that is stored once, whatever gets lost.

use std::time::Duration;

use crate::Instant;
use crate::backoff::{Backoff, BackoffPolicy, Jitter};
use crate::id::unique::{STEP, finish};
use crate::timers::later;

/// The delays between attempts.
const BACKOFF: BackoffPolicy = BackoffPolicy {
    max: Some(Duration::from_secs(2)),
    jitter: Jitter::Equal,
    ..BackoffPolicy::new(Duration::from_millis(100), 2.0)
};

crate::config! {
    /// How often and how long a [`Publish`] tries.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PublishConfig {
        /// How long to wait for the answer to an attempt. Default 2 s.
        pub answer_timeout: Duration = Duration::from_secs(2),
        /// After how long the sender learns that the outcome is unknown. Default 20 s. Keep it well below
        /// the time for which the store remembers ids (2 minutes by default in JetStream): a later attempt
        /// would be stored again.
        pub deadline: Duration = Duration::from_secs(20),
    }
}

/// What the store says to an attempt.
///
/// Exhaustive on purpose: a store has nothing else to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishReply {
    /// Stored, by this attempt or an earlier one with the same id.
    Stored {
        /// Its sequence number.
        sequence: u64,
    },
    /// Not stored: the record before it is not the expected one.
    Conflict,
    /// Not stored for another reason that an attempt would meet again: full, too large, not allowed.
    Refused,
    /// No answer, or one after which a later attempt may succeed: perhaps stored, perhaps not, perhaps later.
    Unknown,
}

/// A record that is not known to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record is not known to be stored")]
#[non_exhaustive]
pub struct PublishError {
    /// What the store said last; [`PublishReply::Unknown`] if no attempt was answered in time.
    pub reply: PublishReply,
    /// Whether the record may be stored all the same, now or later. If not, it never will be. A retry with the
    /// same id is safe as long as the store remembers ids.
    pub maybe_stored: bool,
}

/// Publishes one record until its outcome is known: the same record with the same id again, after growing
/// delays. The store drops what it already has by the id and answers as if it had stored it now.
///
/// The first answer decides, whichever attempt it belongs to. It ends exactly once.
#[derive(Debug)]
pub struct Publish {
    config: PublishConfig,
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
    /// Starts with the first attempt. `entropy` is a random number, for the jitter.
    #[must_use]
    pub fn new(config: PublishConfig, entropy: u64, now: Instant) -> Self {
        let mut publish = Self {
            config,
            backoff: Backoff::new(BACKOFF),
            entropy,
            attempts: 0,
            unsent: false,
            answer_by: None,
            next_at: None,
            give_up_at: later(now, config.deadline),
            outcome: None,
            ended: false,
        };
        publish.attempt(now);
        publish
    }

    /// Returns the number of the attempt that has to be sent now, with the same record and id each time.
    #[must_use]
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
    #[must_use]
    pub const fn poll_event(&mut self) -> Option<Result<u64, PublishError>> {
        self.outcome.take()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` once it has ended.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.answer_by.or(self.next_at).unwrap_or(self.give_up_at);
        (!self.ended).then(|| next.min(self.give_up_at))
    }

    fn attempt(&mut self, now: Instant) {
        self.attempts += 1;
        self.unsent = true;
        self.next_at = None;
        let timeout = self.config.answer_timeout.max(Duration::from_millis(1));
        self.answer_by = Some(later(now, timeout));
    }

    /// The attempt in flight has no answer.
    fn lost(&mut self, now: Instant) {
        self.answer_by = None;
        let entropy = finish(self.entropy.wrapping_add(STEP.wrapping_mul(self.attempts)));
        // Without another attempt the deadline decides: a late answer may still come.
        self.next_at = self
            .backoff
            .next_delay(entropy)
            .map(|delay| later(now, delay));
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn start() -> (Publish, Instant) {
        let now = Instant::now();
        let mut publish = Publish::new(PublishConfig::default(), 7, now);
        assert_eq!(publish.poll_request(), Some(1));
        assert_eq!(publish.poll_request(), None);
        (publish, now)
    }

    /// Lets the attempt in flight go unanswered until the next one is sent.
    fn lose(publish: &mut Publish) -> Instant {
        loop {
            let now = publish.poll_timeout().unwrap();
            publish.handle_timeout(now);
            if publish.poll_request().is_some() {
                return now;
            }
        }
    }

    #[test]
    fn a_reply_completes_a_publish_once() {
        let (mut publish, now) = start();
        publish.handle_reply(1, PublishReply::Stored { sequence: 5 }, now);
        publish.handle_reply(1, PublishReply::Stored { sequence: 6 }, now);
        assert_eq!(publish.poll_event(), Some(Ok(5)));
        assert_eq!((publish.poll_event(), publish.poll_timeout()), (None, None));
    }

    #[test]
    fn a_publish_is_resent_and_any_reply_completes_it() {
        let (mut publish, _) = start();
        let now = lose(&mut publish);
        publish.handle_reply(1, PublishReply::Stored { sequence: 5 }, now);
        assert_eq!(publish.poll_event(), Some(Ok(5)));
    }

    #[test]
    fn a_refused_single_attempt_stored_nothing() {
        for reply in [PublishReply::Conflict, PublishReply::Refused] {
            let (mut publish, now) = start();
            publish.handle_reply(1, reply, now);
            let maybe_stored = false;
            let error = PublishError {
                reply,
                maybe_stored,
            };
            assert_eq!(publish.poll_event(), Some(Err(error)));
        }
    }

    #[test]
    fn a_refusal_after_an_unanswered_attempt_is_unknown() {
        let (mut publish, _) = start();
        let now = lose(&mut publish);
        publish.handle_reply(2, PublishReply::Refused, now);
        let error = publish.poll_event().unwrap().unwrap_err();
        assert!(error.maybe_stored);
    }

    #[test]
    fn at_the_deadline_the_outcome_is_unknown() {
        let (mut publish, start) = start();
        let mut attempts = 1;
        while let Some(now) = publish.poll_timeout() {
            assert!(now <= start + 30 * SECOND);
            publish.handle_timeout(now);
            attempts += u32::from(publish.poll_request().is_some());
        }
        let error = publish.poll_event().unwrap().unwrap_err();
        assert_eq!(
            (error.reply, error.maybe_stored),
            (PublishReply::Unknown, true)
        );
        assert!(attempts > 5, "{attempts}");
    }

    #[test]
    fn a_connection_error_is_retried_sooner_than_silence() {
        let (mut publish, now) = start();
        publish.handle_reply(1, PublishReply::Unknown, now);
        let next = publish.poll_timeout().unwrap();
        assert!(next <= now + SECOND / 10);
        publish.handle_timeout(next);
        assert_eq!(publish.poll_request(), Some(2));
        publish.handle_reply(1, PublishReply::Unknown, next);
        assert_eq!(publish.poll_timeout(), Some(next + 2 * SECOND));
    }
}
