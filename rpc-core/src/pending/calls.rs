//! [`PendingCalls`]: calls whose id this side chooses.

use std::marker::PhantomData;

use super::slab::{Address, Slab};
use super::{InsertError, Match};
use crate::Instant;
use crate::id::{CallId, Hex16, IdForm};

/// The calls in flight on one connection, each with a tag `T` and an optional deadline.
///
/// The id is the entry's address: slot and generation, mixed with a seed per connection. Looking
/// it up needs no hashing, and whether an unmatched id is [`Match::Late`] or [`Match::Unknown`]
/// needs no memory of ended calls. Ids of one table repeat only after a slot was used four
/// billion times.
///
/// Nothing allocates once the maximum number of concurrent calls was reached.
///
/// This and [`PendingMap`](crate::PendingMap) are one slab of entries with a hierarchical timing
/// wheel threaded through it. A call with a deadline costs one slot and no allocation of its own,
/// and the cost per call stays the same from one call to a million. Deadlines are counted in ticks
/// of one millisecond from an origin given at construction and rounded up, so nothing expires
/// before its deadline.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::{Match, PendingCalls};
///
/// let start = Instant::now();
/// let mut calls = PendingCalls::<&str>::new(0x5eed, 100, start);
/// let id = calls.insert("login", Some(start + Duration::from_secs(30))).unwrap();
/// assert_eq!(calls.complete_text(&id.to_string()), Match::Live("login"));
/// assert_eq!(calls.complete(id), Match::Late);
/// assert_eq!(calls.poll_timeout(), None);
/// ```
pub struct PendingCalls<T, F = Hex16> {
    slab: Slab<T>,
    seed: u64,
    form: PhantomData<fn() -> F>,
}

impl<T, F: IdForm> PendingCalls<T, F> {
    /// Creates an empty table for at most `max` calls (at most `u32::MAX`). `seed` should be random
    /// per connection, so that replies to an earlier one match nothing. Deadlines are counted from
    /// `origin`.
    #[must_use]
    pub fn new(seed: u64, max: usize, origin: Instant) -> Self {
        Self {
            slab: Slab::new(max, origin),
            seed,
            form: PhantomData,
        }
    }

    /// Returns the id that the next [`insert`](Self::insert) will use; `None` when full. Use it to
    /// encode and queue a call before it is registered.
    #[must_use]
    pub fn next_id(&self) -> Option<CallId<F>> {
        self.slab.next_address().map(|address| self.id(address))
    }

    /// Registers a call. `None` waits forever; a deadline in the past expires at once.
    ///
    /// # Errors
    /// [`InsertError::Full`] with the tag; nothing has changed. Retry when a call has ended.
    pub fn insert(
        &mut self,
        tag: T,
        deadline: Option<Instant>,
    ) -> Result<CallId<F>, InsertError<T>> {
        match self.slab.insert(tag, deadline) {
            Ok(address) => Ok(self.id(address)),
            Err(tag) => Err(InsertError::Full {
                tag,
                max: self.slab.max(),
            }),
        }
    }

    /// Returns the tag of a call in flight.
    #[must_use]
    pub fn get(&self, id: CallId<F>) -> Option<&T> {
        self.slab.get(self.live_slot(id)?)
    }

    /// Returns the tag of a call in flight, to change it.
    #[must_use]
    pub fn get_mut(&mut self, id: CallId<F>) -> Option<&mut T> {
        let slot = self.live_slot(id)?;
        self.slab.get_mut(slot)
    }

    /// Gives a call in flight a new deadline; `None` lets it wait forever (for a human). Returns
    /// `false` if it is not in flight.
    pub fn extend(&mut self, id: CallId<F>, deadline: Option<Instant>) -> bool {
        self.live_slot(id)
            .is_some_and(|slot| self.slab.extend(slot, deadline))
    }

    /// Removes a call: its reply has arrived, or its caller cancelled it.
    ///
    /// After [`pop_any`](Self::pop_any) has freed memory, an old id that was never issued may count
    /// as late instead of unknown; a live one is never mistaken.
    pub fn complete(&mut self, id: CallId<F>) -> Match<T> {
        let address = self.address(id);
        match self.slab.slot_state(address) {
            Match::Live(()) => match self.slab.remove(address.slot) {
                Some((_, tag)) => Match::Live(tag),
                None => Match::Late,
            },
            Match::Late => Match::Late,
            Match::Unknown => Match::Unknown,
        }
    }

    /// Like [`complete`](Self::complete), from the id's text. Text that is not in the exact wire
    /// form is [`Match::Unknown`].
    pub fn complete_text(&mut self, text: &str) -> Match<T> {
        match CallId::parse(text) {
            Some(id) => self.complete(id),
            None => Match::Unknown,
        }
    }

    /// Removes a call whose deadline is at or before `now`; call it until `None`. Earliest first,
    /// calls of the same millisecond in the order in which they got the deadline.
    pub fn pop_expired(&mut self, now: Instant) -> Option<(CallId<F>, T)> {
        let (address, tag) = self.slab.pop_expired(now)?;
        Some((self.id(address), tag))
    }

    /// Returns the call that [`pop_expired`](Self::pop_expired) would remove. It stays in flight:
    /// [extend](Self::extend) it beyond `now`, or [complete](Self::complete) it. For deadlines that
    /// move often, which are cheaper to check once they have passed.
    #[must_use]
    pub fn peek_expired(&mut self, now: Instant) -> Option<CallId<F>> {
        let address = self.slab.peek_expired(now)?;
        Some(self.id(address))
    }

    /// Removes any call, roughly by deadline, to end them all when the connection closes. When it
    /// returns `None`, the table has freed its memory.
    pub fn pop_any(&mut self) -> Option<(CallId<F>, T)> {
        let (address, tag) = self.slab.pop_any()?;
        Some((self.id(address), tag))
    }

    /// Returns when to call [`pop_expired`](Self::pop_expired) next: exact while few calls are due
    /// around the same time, otherwise perhaps early, never late. `None` if no call has a deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.slab.poll_timeout()
    }

    /// Returns how many calls are in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns whether no call is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slab.len() == 0
    }

    /// Returns how many calls may be in flight.
    #[must_use]
    pub fn capacity_limit(&self) -> usize {
        self.slab.max()
    }

    /// Returns the calls in flight, in no particular order. Visits every slot: not for hot paths.
    pub fn iter(&self) -> impl Iterator<Item = (CallId<F>, &T)> {
        self.slab
            .iter()
            .map(|(address, tag)| (self.id(address), tag))
    }

    fn id(&self, address: Address) -> CallId<F> {
        let number = u64::from(address.generation) << 32 | u64::from(address.slot);
        CallId::from_raw(self.seed ^ number)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of the number")]
    fn address(&self, id: CallId<F>) -> Address {
        let number = self.seed ^ id.raw();
        Address {
            slot: number as u32,
            generation: (number >> 32) as u32,
        }
    }

    fn live_slot(&self, id: CallId<F>) -> Option<u32> {
        let address = self.address(id);
        (self.slab.slot_state(address) == Match::Live(())).then_some(address.slot)
    }
}

// Prints numbers only: tags may hold private data.
crate::debug::debug_fields!([T, F] PendingCalls<T, F>, this => {
    len: this.slab.len(),
    max: this.slab.max(),
});
