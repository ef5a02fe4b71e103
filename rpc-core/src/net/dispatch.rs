//! [`EventDispatcher`]: handlers that run beside the reader of the events.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

use super::link::{DrainReport, Events, LinkEvent};
use super::time;

/// Runs handlers for events beside the reader, up to a maximum number at once. At the maximum it
/// takes no further event, so events wait in their own bounded queue.
///
/// Handlers run while [`next`](Self::next) or [`drain`](Self::drain) is awaited, all in the task that
/// awaits it, so no runtime is needed. One that waits or panics does not block others; one that
/// computes for long does, so it moves that to `tokio::task::spawn_blocking`. Dropping the dispatcher
/// drops them.
///
/// ```
/// use std::time::Duration;
/// use rpc_core::net::EventDispatcher;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut dispatcher = EventDispatcher::new(16);
/// dispatcher.spawn(async { /* handle an event */ });
/// let report = dispatcher.drain(Duration::from_secs(5)).await;
/// assert_eq!((report.finished, report.aborted), (1, 0));
/// # }
/// ```
#[derive(Debug)]
pub struct EventDispatcher {
    handlers: FuturesUnordered<Handler>,
    max: usize,
}

/// A handler, and what it panicked with.
type Handler = Pin<Box<dyn Future<Output = Result<(), Box<dyn Any + Send>>> + Send>>;

/// The result of [`EventDispatcher::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatch<E> {
    /// An event, and there is room for its handler.
    Event(LinkEvent<E>),
    /// A handler panicked.
    Panicked,
    /// There are no further events.
    End,
}

impl EventDispatcher {
    /// Creates a dispatcher for at most `max_handlers` handlers at once, at least 1.
    #[must_use]
    pub fn new(max_handlers: usize) -> Self {
        Self {
            handlers: FuturesUnordered::new(),
            max: max_handlers.max(1),
        }
    }

    /// Starts a handler.
    pub fn spawn(&mut self, handler: impl Future<Output = ()> + Send + 'static) {
        let handler = AssertUnwindSafe(handler).catch_unwind();
        self.handlers.push(Box::pin(handler));
    }

    /// Waits for the next event and room for its handler, or for a panic.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn next<E>(&mut self, events: &mut Events<E>) -> Dispatch<E> {
        loop {
            let has_room = self.handlers.len() < self.max;
            tokio::select! {
                biased;
                Some(ended) = self.handlers.next() => if ended.is_err() {
                    return Dispatch::Panicked;
                },
                event = events.next_link(), if has_room => {
                    return event.map_or(Dispatch::End, Dispatch::Event);
                }
            }
        }
    }

    /// Waits until all handlers have ended, for at most `timeout`, and aborts the rest.
    ///
    /// # Cancel safety
    /// Cancel-safe: the handlers go on when [`next`](Self::next) or this is awaited again.
    pub async fn drain(&mut self, timeout: Duration) -> DrainReport {
        let at_start = self.handlers.len();
        let all = async { while self.handlers.next().await.is_some() {} };
        // Time that has run out ends the wait as well.
        let _ = time::timeout(timeout, all).await;
        let mut report = DrainReport::default();
        report.aborted = self.handlers.len();
        report.finished = at_start - report.aborted;
        self.handlers.clear();
        report
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::net::queue::{Producer, QueueConfig, queue};

    fn events() -> (Producer<LinkEvent<u32>>, Events<u32>) {
        let (producer, consumer) = queue(QueueConfig::default());
        (producer, Events::new(consumer))
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_waits_until_there_is_room_for_its_handler() {
        let (producer, mut events) = events();
        let mut dispatcher = EventDispatcher::new(1);
        let (done, wait) = oneshot::channel::<()>();
        dispatcher.spawn(wait.map(drop));
        producer.push(LinkEvent::Event(7), 1);
        assert!(dispatcher.next(&mut events).now_or_never().is_none());
        done.send(()).unwrap();
        let next = dispatcher.next(&mut events).await;
        assert_eq!(next, Dispatch::Event(LinkEvent::Event(7)));
        drop(producer);
        assert_eq!(dispatcher.next(&mut events).await, Dispatch::End);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_reported_and_others_continue() {
        let (producer, mut events) = events();
        let mut dispatcher = EventDispatcher::new(4);
        dispatcher.spawn(async { panic!("asked to") });
        producer.push(LinkEvent::Event(1), 1);
        let mut found = [
            dispatcher.next(&mut events).await,
            dispatcher.next(&mut events).await,
        ];
        found.sort_by_key(|one| *one == Dispatch::Panicked);
        assert_eq!(
            found,
            [Dispatch::Event(LinkEvent::Event(1)), Dispatch::Panicked]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_counts_who_finished_and_who_was_aborted() {
        let mut dispatcher = EventDispatcher::new(4);
        dispatcher.spawn(tokio::time::sleep(Duration::from_secs(1)));
        dispatcher.spawn(std::future::pending());
        let report = dispatcher.drain(Duration::from_secs(2)).await;
        assert_eq!((report.finished, report.aborted), (1, 1));
    }
}
