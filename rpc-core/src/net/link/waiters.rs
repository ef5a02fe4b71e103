//! [`Waiters`]: the callers that wait for calls on the current connection.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::task::{Context, Poll};
use std::time::Duration;

use super::super::queue::{Producer, Push};
use super::call::Completer;
use super::{Outcome, Protocol};
use crate::error::{CallError, CloseReason, Delivery};

/// The callers of one connection, by call id.
pub(super) struct Waiters<P: Protocol> {
    calls: HashMap<P::Call, Completer<P>, BuildHasherDefault<IdHasher>>,
}

/// Mixes the bits of an id by one multiplication. The machine chooses the ids, so a peer cannot
/// make them collide.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The map looks at both ends of the hash, and the product's low bits depend on few others.
        self.0 ^ self.0 >> 32
    }
}

impl<P: Protocol> Waiters<P> {
    pub(super) fn new() -> Self {
        Self {
            calls: HashMap::default(),
        }
    }

    /// Registers a caller.
    pub(super) fn insert(&mut self, call: P::Call, caller: Completer<P>) {
        self.calls.insert(call, caller);
    }

    /// Ends a call. Ignores a call without a waiter, whose caller is gone.
    pub(super) fn complete(&mut self, call: P::Call, outcome: Outcome<P>) {
        if let Some(caller) = self.calls.remove(&call) {
            caller.complete(outcome);
        }
    }

    /// Removes a call whose caller is gone; returns `false` if it had ended already.
    pub(super) fn forget(&mut self, call: P::Call) -> bool {
        self.calls.remove(&call).is_some()
    }

    /// Returns ready when a stream has room for an item. A call without a waiter always has.
    pub(super) fn poll_room(&self, call: P::Call, cx: &mut Context<'_>) -> Poll<()> {
        let items = self.items(call);
        items.map_or(Poll::Ready(()), |items| items.poll_room(cx))
    }

    /// Returns the longest wait for room.
    pub(super) fn block_deadline(&self, call: P::Call) -> Option<Duration> {
        self.items(call).and_then(Producer::block_deadline)
    }

    /// Pushes an item to a stream.
    pub(super) fn push(&self, call: P::Call, item: P::Item, bytes: usize) -> Push {
        let items = self.items(call);
        items.map_or(Push::Done, |items| items.push(item, bytes))
    }

    /// Ends all remaining calls, in case the machine did not.
    pub(super) fn fail_all(&mut self, reason: &CloseReason) {
        for (_, caller) in self.calls.drain() {
            caller.complete(Err(CallError::Closed {
                reason: reason.clone(),
                delivery: Delivery::Unknown,
            }));
        }
    }

    fn items(&self, call: P::Call) -> Option<&Producer<P::Item>> {
        self.calls.get(&call)?.items()
    }
}
