//! [`Waiters`]: who waits for which call on the current connection.

use std::collections::HashMap;
use std::task::{Context, Poll};
use std::time::Duration;

use super::super::queue::{Producer, Push};
use super::call::Completer;
use super::{Outcome, Protocol};
use crate::error::{CallError, CloseReason, Delivery};

struct Waiter<P: Protocol> {
    completer: Completer<P>,
    items: Option<Producer<P::Item>>,
}

/// The callers of one connection, by call id.
pub(super) struct Waiters<P: Protocol> {
    calls: HashMap<P::Call, Waiter<P>>,
}

/// What became of a stream's item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Done,
    /// The stream's policy is `Close` and there is no room.
    Overflow,
}

impl<P: Protocol> Waiters<P> {
    pub(super) fn new() -> Self {
        Self {
            calls: HashMap::new(),
        }
    }

    /// Registers a caller; false if the caller has gone and the call should be cancelled.
    pub(super) fn insert(
        &mut self,
        call: P::Call,
        completer: Completer<P>,
        items: Option<Producer<P::Item>>,
    ) -> bool {
        let wanted = completer.register(call);
        if wanted {
            self.calls.insert(call, Waiter { completer, items });
        }
        wanted
    }

    /// Ends a call. A call without a waiter (its caller went away) is ignored.
    pub(super) fn complete(&mut self, call: P::Call, outcome: Outcome<P>) {
        if let Some(waiter) = self.calls.remove(&call) {
            // The items end first, so that a consumer that sees their end finds the outcome.
            let Waiter { completer, items } = waiter;
            completer.complete(outcome);
            drop(items);
        }
    }

    /// Forgets a call whose caller went away; false if it had ended already.
    pub(super) fn forget(&mut self, call: P::Call) -> bool {
        self.calls.remove(&call).is_some()
    }

    /// Whether a stream has room for an item. A call without a waiter always has.
    pub(super) fn poll_room(&self, call: P::Call, cx: &mut Context<'_>) -> Poll<()> {
        match self.items(call) {
            Some(items) => items.poll_room(cx),
            None => Poll::Ready(()),
        }
    }

    /// The longest wait for room.
    pub(super) fn block_deadline(&self, call: P::Call) -> Option<Duration> {
        self.items(call).and_then(Producer::block_deadline)
    }

    /// Gives a stream an item.
    pub(super) fn push(&self, call: P::Call, item: P::Item) -> Pushed {
        let weight = P::item_weight(&item);
        match self.items(call).map(|items| items.push(item, weight)) {
            Some(Push::Overflow) => Pushed::Overflow,
            Some(Push::Done) | None => Pushed::Done,
        }
    }

    /// Ends whatever is left: the safety net behind the machine's own duty.
    pub(super) fn fail_all(&mut self, reason: &CloseReason) {
        for (_, waiter) in self.calls.drain() {
            waiter.completer.complete(Err(CallError::Closed {
                reason: reason.clone(),
                delivery: Delivery::Unknown,
            }));
        }
    }

    fn items(&self, call: P::Call) -> Option<&Producer<P::Item>> {
        self.calls.get(&call)?.items.as_ref()
    }
}
