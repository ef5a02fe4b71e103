//! [`PendingRequests`]: requests whose answers name nothing but their type.

use std::collections::VecDeque;

use rpc_core::{CallId, FrameNumber, Instant, Match, PendingCalls, Refused};

/// The kind of an awaited answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A prompt sent while no agent was running, as far as this side knew.
    Prompt,
    /// A prompt sent while an agent was running.
    Interjection,
    Onboarding,
    Status,
    Admin,
}

/// The unanswered requests in the order in which they were sent: hosts answer those of one kind in
/// that order and do not say which one they answer.
#[derive(Debug)]
pub(super) struct PendingRequests {
    /// With the frames of the requests.
    calls: PendingCalls<FrameNumber>,
    order: VecDeque<(Kind, CallId)>,
}

impl PendingRequests {
    pub(super) fn new(seed: u64, max: usize, now: Instant) -> Self {
        Self {
            calls: PendingCalls::new(seed, max, now),
            order: VecDeque::new(),
        }
    }

    /// Checks whether there is room for another.
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
        let id = self.calls.insert(frame, deadline)?;
        self.order.push_back((kind, id));
        Ok(id)
    }

    /// Removes the oldest request of this kind, whose answer has come. `None` if there is none; an
    /// empty one if the request was cancelled.
    pub(super) fn answered(&mut self, kind: Kind) -> Option<Option<CallId>> {
        let at = self.order.iter().position(|(of, _)| *of == kind)?;
        let (_, id) = self.order.remove(at)?;
        let live = matches!(self.calls.complete(id), Match::Live(_));
        Some(live.then_some(id))
    }

    /// Removes the oldest prompt of the likely kind, or else the oldest one of any kind.
    pub(super) fn prompt_answered(&mut self, likely: Kind) -> Option<Option<CallId>> {
        let found = self.answered(likely);
        let found = found.or_else(|| self.answered(Kind::Prompt));
        found.or_else(|| self.answered(Kind::Interjection))
    }

    /// Returns whether a request of this kind is unanswered.
    pub(super) fn awaits(&self, kind: Kind) -> bool {
        self.first(kind).is_some()
    }

    /// Returns the number of unanswered requests of this kind.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.waiting(kind).count()
    }

    /// Returns the request that the next answer of this kind is for.
    pub(super) fn first(&self, kind: Kind) -> Option<CallId> {
        self.waiting(kind).next()
    }

    /// Cancels a request. Its answer is still awaited, so that it is not taken for another's.
    pub(super) fn cancel(&mut self, id: CallId) -> bool {
        matches!(self.calls.complete(id), Match::Live(_))
    }

    /// Removes a request that has waited too long. Hosts ignore what they do not know, so its
    /// answer is no longer awaited.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(CallId, FrameNumber)> {
        let (id, frame) = self.calls.pop_expired(now)?;
        self.order.retain(|(_, other)| *other != id);
        Some((id, frame))
    }

    /// Removes any request, after the end of the connection.
    pub(super) fn pop_any(&mut self) -> Option<(CallId, FrameNumber)> {
        self.calls.pop_any()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.poll_timeout()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    fn waiting(&self, kind: Kind) -> impl Iterator<Item = CallId> {
        let of_kind = self.order.iter().filter(move |(of, _)| *of == kind);
        of_kind.map(|(_, id)| *id)
    }
}
