//! [`Backlog`]: a queue that is empty most of the time.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::limits::Limits;

/// An empty backlog keeps no more memory than this, in bytes, unless a single item is larger.
const KEPT: usize = 256;

/// A first-in, first-out queue that is empty most of the time, such as the events of one connection
/// among thousands.
///
/// The first item allocates room for as many as came the time before, at first for one. A queue
/// that becomes empty after a burst gives the memory of the burst back, so that the same again costs
/// one allocation, and a larger one another for each doubling.
///
/// ```
/// let mut backlog = rpc_core::backlog::Backlog::new();
/// backlog.push_back("first");
/// backlog.push_back("second");
/// assert_eq!(backlog.pop_front(), Some("first"));
/// assert_eq!(backlog.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Backlog<T> {
    items: VecDeque<T>,
    /// How many items came since the queue was empty, and how many the time before.
    burst: u32,
    last_burst: u32,
}

impl<T> Backlog<T> {
    /// An empty queue, which holds no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            burst: 0,
            last_burst: 0,
        }
    }

    /// Adds an item at the end.
    pub fn push_back(&mut self, item: T) {
        if self.items.capacity() == 0 {
            // Left to itself it would make room for four.
            self.items.reserve_exact(self.last_burst.max(1) as usize);
        }
        self.burst = self.burst.saturating_add(1);
        self.items.push_back(item);
    }

    /// Removes and returns the oldest item.
    pub fn pop_front(&mut self) -> Option<T> {
        self.items.pop_front().inspect(|_| self.settle())
    }

    /// Removes and returns the item at index `at`; 0 is the oldest.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        self.items.remove(at).inspect(|_| self.settle())
    }

    fn settle(&mut self) {
        if !self.items.is_empty() {
            return;
        }
        self.last_burst = std::mem::take(&mut self.burst);
        let capacity = self.items.capacity();
        if capacity > 1 && capacity * size_of::<T>() > KEPT {
            self.items = VecDeque::new();
        }
    }
}

/// The items, oldest first.
impl<T> Deref for Backlog<T> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.items
    }
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The events that wait for the application, and how many bytes they hold.
///
/// Accepts every event. A machine without [room](Self::has_room) wants no more input.
#[derive(Clone, Debug)]
pub(crate) struct EventBacklog<E> {
    events: Backlog<(E, usize)>,
    bytes: usize,
    /// The bytes of the event that was taken last.
    taken: usize,
    max_events: usize,
    max_bytes: usize,
}

impl<E> EventBacklog<E> {
    /// No events.
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            events: Backlog::new(),
            bytes: 0,
            taken: 0,
            max_events: limits.max_events,
            max_bytes: limits.max_event_bytes,
        }
    }

    /// Adds an event that holds `bytes` bytes.
    #[inline]
    pub(crate) fn push(&mut self, event: E, bytes: usize) {
        self.bytes += bytes;
        self.events.push_back((event, bytes));
    }

    /// Removes and returns the oldest event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        self.taken = 0;
        let (event, bytes) = self.events.pop_front()?;
        self.bytes -= bytes;
        self.taken = bytes;
        Some(event)
    }

    /// Returns the bytes of the event that was taken last; 0 if none was left.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// Returns the number of events.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether the events are fewer and smaller than the limits, so that more input is
    /// welcome.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.events.len() < self.max_events && self.bytes < self.max_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_by_number_and_size() {
        let limits = Limits::default();
        let limits = Limits {
            max_events: 2,
            max_event_bytes: 100,
            ..limits
        };
        let mut events = EventBacklog::new(&limits);
        events.push("small", 1);
        assert!(events.has_room());
        events.push("another", 1);
        assert!(!events.has_room());
        assert_eq!(events.pop(), Some("small"));
        assert!(events.has_room());
        events.push("large", 1_000);
        assert_eq!(events.pop(), Some("another"));
        assert_eq!(events.len(), 1);
        assert!(!events.has_room());
        assert_eq!(events.pop(), Some("large"));
        assert!(events.has_room() && events.len() == 0);
    }

    #[test]
    fn memory_of_a_burst_is_released() {
        let mut backlog = Backlog::new();
        for item in 0..100_u64 {
            backlog.push_back(item);
        }
        while backlog.pop_front().is_some() {}
        assert_eq!(backlog.items.capacity(), 0);
    }

    #[test]
    fn a_burst_like_the_last_one_finds_room() {
        let mut backlog = Backlog::new();
        for count in [100, 90] {
            for item in 0..count {
                backlog.push_back([item; 4]);
            }
            while backlog.pop_front().is_some() {}
            assert_eq!(backlog.items.capacity(), 0);
            backlog.push_back([0_usize; 4]);
            assert_eq!(backlog.items.capacity(), count);
            backlog.pop_front();
        }
    }

    #[test]
    fn one_item_at_a_time_reuses_its_memory() {
        let mut backlog = Backlog::new();
        backlog.push_back([0_u8; 4 * KEPT]);
        assert_eq!(backlog.items.capacity(), 1);
        backlog.pop_front();
        assert_eq!(backlog.items.capacity(), 1);
    }

    #[test]
    fn a_few_small_items_allocate_once() {
        let mut backlog = Backlog::new();
        for round in 0..2 {
            for item in 0..4_u64 {
                backlog.push_back(item);
            }
            assert_eq!(backlog.items.capacity(), 4, "round {round}");
            assert_eq!(backlog.remove(1), Some(1));
            while backlog.pop_front().is_some() {}
        }
    }
}
