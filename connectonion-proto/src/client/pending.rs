//! [`PendingRequests`]: what waits for an answer that names nothing but its type.

use std::collections::VecDeque;
use std::time::Instant;

use rpc_core::{CallId, FrameNumber, Match, PendingCalls, Refused};

/// What kind of answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A prompt that was sent while no agent was working, as far as this side knew.
    Prompt,
    /// A prompt that was sent while an agent was working.
    Interjection,
    Onboarding,
    Status,
    Admin,
}

impl Kind {
    const COUNT: usize = 5;
}

/// Something that waits for an answer.
#[derive(Debug)]
pub(super) struct Pending {
    /// The frame that asked.
    pub(super) frame: FrameNumber,
    kind: Kind,
}

/// What waits for an answer, of each kind in the order in which it was sent: hosts answer in that
/// order and say nothing else about what they answer.
#[derive(Debug)]
pub(super) struct PendingRequests {
    calls: PendingCalls<Pending>,
    orders: [VecDeque<CallId>; Kind::COUNT],
}

impl PendingRequests {
    pub(super) fn new(seed: u64, max: usize, now: Instant) -> Self {
        Self {
            calls: PendingCalls::new(seed, max, now),
            orders: Default::default(),
        }
    }

    /// Whether there is room for another.
    pub(super) fn check_room(&self) -> Result<(), Refused> {
        let max = self.calls.capacity_limit();
        match self.calls.next_id() {
            Some(_) => Ok(()),
            None => Err(Refused::TooManyCalls { max }),
        }
    }

    pub(super) fn insert(
        &mut self,
        kind: Kind,
        frame: FrameNumber,
        deadline: Option<Instant>,
    ) -> Result<CallId, Refused> {
        let id = self.calls.insert(Pending { frame, kind }, deadline)?;
        self.order(kind).push_back(id);
        Ok(id)
    }

    /// The answer of this kind has come: what was asked first. `None` if nothing was asked; an
    /// empty one if whoever asked has gone.
    pub(super) fn answered(&mut self, kind: Kind) -> Option<Option<CallId>> {
        let id = self.order(kind).pop_front()?;
        let live = matches!(self.calls.complete(id), Match::Live(_));
        Some(live.then_some(id))
    }

    /// A prompt was answered with what only interjections get, or only prompts.
    pub(super) fn prompt_answered(&mut self, likely: Kind, else_: Kind) -> Option<Option<CallId>> {
        match self.answered(likely) {
            None => self.answered(else_),
            found => found,
        }
    }

    /// Whether something of this kind has no answer yet.
    pub(super) fn awaits(&self, kind: Kind) -> bool {
        !self.waiting(kind).is_empty()
    }

    /// How many of this kind have no answer yet.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.waiting(kind).len()
    }

    /// What the next answer of this kind is for.
    pub(super) fn first(&self, kind: Kind) -> Option<CallId> {
        self.waiting(kind).front().copied()
    }

    /// Whether a prompt has no answer yet.
    pub(super) fn awaits_prompt(&self) -> bool {
        self.awaits(Kind::Prompt) || self.awaits(Kind::Interjection)
    }

    /// Whether a prompt that should start a run has not yet.
    pub(super) fn awaits_start(&self) -> bool {
        self.awaits(Kind::Prompt)
    }

    /// Forgets who asked. The answer is still awaited, so that it is not taken for another's.
    pub(super) fn cancel(&mut self, id: CallId) -> bool {
        matches!(self.calls.complete(id), Match::Live(_))
    }

    /// What has waited too long; hosts ignore what they do not know, so no answer is awaited.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(CallId, Pending)> {
        let (id, pending) = self.calls.pop_expired(now)?;
        self.order(pending.kind).retain(|other| *other != id);
        Some((id, pending))
    }

    /// What is left when the connection has ended.
    pub(super) fn pop_any(&mut self) -> Option<(CallId, Pending)> {
        self.calls.pop_any()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.poll_timeout()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    fn order(&mut self, kind: Kind) -> &mut VecDeque<CallId> {
        let [prompts, interjections, onboardings, queries, requests] = &mut self.orders;
        match kind {
            Kind::Prompt => prompts,
            Kind::Interjection => interjections,
            Kind::Onboarding => onboardings,
            Kind::Status => queries,
            Kind::Admin => requests,
        }
    }

    const fn waiting(&self, kind: Kind) -> &VecDeque<CallId> {
        let [prompts, interjections, onboardings, queries, requests] = &self.orders;
        match kind {
            Kind::Prompt => prompts,
            Kind::Interjection => interjections,
            Kind::Onboarding => onboardings,
            Kind::Status => queries,
            Kind::Admin => requests,
        }
    }
}
