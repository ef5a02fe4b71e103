//! A bounded [`queue`] from a task to its consumer, with a policy for when it is full.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;

use super::telemetry::Queue;
use crate::backlog::Backlog;
use crate::sync::Mutex;

/// What happens when a consumer does not take items as fast as they arrive.
///
/// *Bounded*, *lossless* and *a handler may make calls at any capacity* cannot all hold. The first
/// three policies give up losslessness, so that replies never wait behind events. `Block` gives up
/// the last: while it waits, replies of the same connection wait too, so a consumer must not await
/// a call before it takes the next item unless the queue has room for the items that arrive
/// meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LagPolicy {
    /// Drops the oldest items and reports how many.
    DropOldest,
    /// Drops all waiting items and keeps the newest one: for values that replace each other.
    Latest,
    /// Closes the connection (or ends the one stream) with
    /// [`SlowConsumer`](crate::CloseReason::SlowConsumer).
    Close,
    /// Stops reading from the peer, while writes and pings of this side go on. If there is no room
    /// for this long, closes with [`SlowConsumer`](crate::CloseReason::SlowConsumer). Items that
    /// have arrived when the connection ends are queued beyond the limits, so that no call waits
    /// for its end.
    Block {
        /// The longest wait.
        deadline: Duration,
    },
}

crate::config! {
    /// The limits of a queue and its policy.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct QueueConfig {
        /// Most items that wait. Default 1,024; 0 counts as 1.
        pub max_items: usize = 1024,
        /// Most bytes that wait, with each item as long as its frame; a single larger item passes if
        /// nothing else waits. Default 16 MiB.
        pub max_bytes: usize = 16 * 1024 * 1024,
        /// What happens when it is full. Default [`LagPolicy::DropOldest`].
        pub policy: LagPolicy = LagPolicy::DropOldest,
    }
}

/// An item of a queue, as its consumer gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Queued<T> {
    /// The next item.
    Item(T),
    /// This many items were dropped here because the consumer was too slow.
    Lagged(u64),
}

/// Notices that may wait besides the items that count.
const MAX_NOTICES: usize = 16;

#[derive(Debug)]
struct Item<T> {
    item: T,
    bytes: usize,
    counts: bool,
}

#[derive(Debug)]
struct State<T> {
    items: Backlog<Item<T>>,
    /// How many of the items count against the limit.
    counted: usize,
    bytes: usize,
    /// The bytes beyond the limits that are taken without waiting.
    relaxed: Option<usize>,
    unreported: u64,
    lost_ever: u64,
    meter: Queue,
    ended: bool,
    abandoned: bool,
    consumer: Option<Waker>,
    producer: Option<Waker>,
    readers: Vec<Reader<T>>,
}

/// Another consumer of the same items, and how an item is cloned for it.
#[derive(Debug)]
struct Reader<T> {
    queue: Producer<T>,
    clone: fn(&T) -> T,
}

impl<T> State<T> {
    /// Passes each reader that is left the item.
    fn copy(&mut self, push: impl Fn(&Reader<T>) -> Push) {
        self.readers
            .retain(|reader| !reader.queue.is_abandoned() && push(reader) == Push::Done);
    }

    fn is_full(&self, config: &QueueConfig, bytes: usize) -> bool {
        self.counted >= config.max_items
            || (self.counted > 0 && self.bytes + bytes > config.max_bytes)
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        let removed = self.items.remove(at)?;
        self.meter.taken(1);
        self.bytes -= removed.bytes;
        self.counted -= usize::from(removed.counts);
        Some(removed.item)
    }

    /// Drops the oldest item that counts; notices stay. Returns `false` if there is none. Skips at
    /// most [`MAX_NOTICES`].
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.items.iter().position(|item| item.counts);
        let dropped = oldest.and_then(|at| self.remove(at)).is_some();
        self.lose(u64::from(dropped));
        dropped
    }

    fn lose(&mut self, items: u64) {
        self.unreported += items;
        self.lost_ever += items;
        self.meter.lost(items);
    }
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    config: QueueConfig,
}

impl<T: Clone> Shared<T> {
    fn subscribe(&self, mut config: QueueConfig) -> Consumer<T> {
        if matches!(config.policy, LagPolicy::Block { .. }) {
            config.policy = LagPolicy::DropOldest;
        }
        let (queue, consumer) = queue(config);
        let mut state = self.state.lock();
        if !state.ended {
            let clone = T::clone;
            state.readers.push(Reader { queue, clone });
        }
        consumer
    }
}

/// The outcome of [`Producer::push`]. Exhaustive: there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// The item is queued, or the consumer is gone.
    Done,
    /// There is no room and the policy is [`LagPolicy::Close`].
    Overflow,
}

/// The producer's end. Dropping it ends the queue after the waiting items.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
}

/// The consumer's end: a stream of [`Queued`] items. Dropping it only stops delivery.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
}

/// Creates the two ends of a queue. A [`Link`](super::Link) has its own; use this one from many
/// connections to one listener.
///
/// ```
/// use rpc_core::net::{QueueConfig, Queued, queue};
///
/// let (producer, mut consumer) = queue(QueueConfig { max_items: 1, ..QueueConfig::default() });
/// producer.push("first", 5);
/// producer.push("second", 6);
/// assert_eq!(consumer.try_next(), Some(Queued::Lagged(1)));
/// assert_eq!(consumer.try_next(), Some(Queued::Item("second")));
/// ```
#[must_use]
pub fn queue<T>(config: QueueConfig) -> (Producer<T>, Consumer<T>) {
    metered(config, Queue::default())
}

/// Creates a queue that is counted.
pub(super) fn metered<T>(mut config: QueueConfig, meter: Queue) -> (Producer<T>, Consumer<T>) {
    config.max_items = config.max_items.max(1);
    let state = State {
        items: Backlog::new(),
        counted: 0,
        bytes: 0,
        relaxed: None,
        unreported: 0,
        lost_ever: 0,
        meter,
        ended: false,
        abandoned: false,
        consumer: None,
        producer: None,
        readers: Vec::new(),
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        config,
    });
    let same = Arc::clone(&shared);
    (Producer { shared: same }, Consumer { shared })
}

impl<T> Producer<T> {
    /// Adds an item of this many bytes. With [`LagPolicy::Block`] this does not wait and
    /// always takes the item: that policy is for a [`Link`](super::Link), which waits for room
    /// first.
    pub fn push(&self, item: T, bytes: usize) -> Push {
        let config = &self.shared.config;
        let full = |state: &State<T>| state.is_full(config, bytes);
        let mut state = self.shared.state.lock();
        state.copy(|reader| reader.queue.push((reader.clone)(&item), bytes));
        if state.abandoned {
            state.unreported += 1;
            return Push::Done;
        }
        if state
            .relaxed
            .is_some_and(|more| state.bytes + bytes > config.max_bytes.saturating_add(more))
        {
            state.lost_ever += 1;
            return Push::Done;
        }
        match config.policy {
            LagPolicy::Close if full(&state) => return Push::Overflow,
            LagPolicy::Latest if full(&state) => while state.drop_oldest() {},
            LagPolicy::DropOldest => while full(&state) && state.drop_oldest() {},
            LagPolicy::Close | LagPolicy::Latest | LagPolicy::Block { .. } => {}
        }
        Self::store(state, item, bytes, true);
        Push::Done
    }

    /// Adds a notice: it takes no room from items and is not dropped in favour of later items. If
    /// too many notices wait already, it is dropped and counted as lost.
    pub(crate) fn notice(&self, item: T) {
        let mut state = self.shared.state.lock();
        state.copy(|reader| {
            reader.queue.notice((reader.clone)(&item));
            Push::Done
        });
        if state.abandoned {
            return;
        }
        if state.items.len() - state.counted >= MAX_NOTICES {
            state.lose(1);
            return;
        }
        Self::store(state, item, 0, false);
    }

    fn store(mut state: MutexGuard<'_, State<T>>, item: T, bytes: usize, counts: bool) {
        state.bytes += bytes;
        state.counted += usize::from(counts);
        state.items.push_back(Item {
            item,
            bytes,
            counts,
        });
        state.meter.pushed();
        wake_from(state, |state| state.consumer.take());
    }

    /// Takes back the waiting items that are `wanted`; it is asked about the newest first. Returns
    /// them, oldest first, and how many items were dropped without the consumer's knowledge so far.
    #[doc(hidden)]
    pub fn take_back(&self, mut wanted: impl FnMut(&T) -> bool) -> (Vec<T>, u64) {
        let mut state = self.shared.state.lock();
        let mut taken = Vec::new();
        for at in (0..state.items.len()).rev() {
            if state.items.get(at).is_some_and(|it| wanted(&it.item)) {
                taken.extend(state.remove(at));
            }
        }
        taken.reverse();
        wake(state.producer.take());
        (taken, state.unreported)
    }

    /// Ends the queue after the waiting items, as dropping this does.
    pub fn end(&self) {
        let mut state = self.shared.state.lock();
        state.ended = true;
        state.readers = Vec::new();
        wake_from(state, |state| state.consumer.take());
    }

    /// Returns another consumer, with a queue of its own: it gets a clone of every item from now on.
    /// The producer never waits for it, so [`LagPolicy::Block`] acts like
    /// [`LagPolicy::DropOldest`]; [`LagPolicy::Close`] ends its queue.
    #[must_use]
    pub fn subscribe(&self, config: QueueConfig) -> Consumer<T>
    where
        T: Clone,
    {
        self.shared.subscribe(config)
    }

    /// Returns whether the consumer is gone.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.state.lock().abandoned
    }

    /// For `Block`: waits for room. Other policies always have room.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let config = &self.shared.config;
        if !matches!(config.policy, LagPolicy::Block { .. }) {
            return Poll::Ready(());
        }
        let mut state = self.shared.state.lock();
        if state.abandoned
            || state.relaxed.is_some()
            || (state.counted < config.max_items && state.bytes <= config.max_bytes)
        {
            return Poll::Ready(());
        }
        remember(&mut state.producer, cx);
        Poll::Pending
    }

    /// Returns the longest wait of `Block`.
    pub(crate) fn block_deadline(&self) -> Option<Duration> {
        match self.shared.config.policy {
            LagPolicy::Block { deadline } => Some(deadline),
            _ => None,
        }
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> Consumer<T> {
    /// Returns the next item, or `None` once the producer has ended and everything was taken.
    ///
    /// # Cancel safety
    /// Cancel-safe: an item is either returned or stays queued.
    pub async fn next(&mut self) -> Option<Queued<T>> {
        poll_fn(|cx| self.poll_queued(cx)).await
    }

    /// Returns the next item that is there, without waiting.
    pub fn try_next(&mut self) -> Option<Queued<T>> {
        Self::take(&mut self.shared.state.lock())
    }

    /// Takes up to this many bytes beyond the limits without waiting, and drops what comes after.
    pub(super) fn relax(&self, more_bytes: Option<usize>) {
        let mut state = self.shared.state.lock();
        state.relaxed = more_bytes;
        wake(state.producer.take());
    }

    /// Returns another consumer, with a queue of the same limits: see [`Producer::subscribe`].
    #[must_use]
    pub fn subscribe(&self) -> Self
    where
        T: Clone,
    {
        self.shared.subscribe(self.shared.config.clone())
    }

    /// Returns how many items were dropped since the beginning, including reported ones.
    #[must_use]
    pub fn total_lost(&self) -> u64 {
        self.shared.state.lock().lost_ever
    }

    fn take(state: &mut State<T>) -> Option<Queued<T>> {
        if state.unreported > 0 {
            return Some(Queued::Lagged(std::mem::take(&mut state.unreported)));
        }
        let item = state.remove(0)?;
        wake(state.producer.take());
        Some(Queued::Item(item))
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_queued(&mut self, cx: &mut Context<'_>) -> Poll<Option<Queued<T>>> {
        let mut state = self.shared.state.lock();
        match Self::take(&mut state) {
            Some(item) => Poll::Ready(Some(item)),
            None if state.ended => Poll::Ready(None),
            None => {
                remember(&mut state.consumer, cx);
                Poll::Pending
            }
        }
    }
}

impl<T> Stream for Consumer<T> {
    type Item = Queued<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Queued<T>>> {
        self.poll_queued(cx)
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.abandoned = true;
        state.unreported += state.counted as u64;
        state.counted = 0;
        state.bytes = 0;
        let items = std::mem::take(&mut state.items);
        state.meter.taken(items.len());
        let producer = state.producer.take();
        drop(state);
        drop(items);
        wake(producer);
    }
}

// Not the items, which may be secret.
crate::debug::debug_fields!([T] Consumer<T>, this => { lost: this.total_lost() });

/// Wakes a task, if one waits.
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Takes a task's waker out of a state, and wakes the task once that is unlocked.
pub(super) fn wake_from<S: ?Sized>(
    mut state: MutexGuard<'_, S>,
    take: impl FnOnce(&mut S) -> Option<Waker>,
) {
    let waker = take(&mut state);
    drop(state);
    wake(waker);
}

/// Stores the task's waker, unless the stored one already wakes the same task.
pub(super) fn remember(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

#[cfg(test)]
mod tests;
