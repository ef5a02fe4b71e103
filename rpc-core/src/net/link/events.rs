//! [`Events`]: the application's end of a link.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::LinkEvent;
use crate::net::queue::{Consumer, Queued};

/// The events of a link, in order and bounded: a stream of the protocol's events.
///
/// [`next_link`](Self::next_link) returns what happens to the link as well, in its place among them.
/// Dropping it only stops delivery.
#[derive(Debug)]
pub struct Events<E> {
    queue: Consumer<LinkEvent<E>>,
}

impl<E> Events<E> {
    /// Creates the end of a queue of one's own.
    #[must_use]
    pub const fn new(queue: Consumer<LinkEvent<E>>) -> Self {
        Self { queue }
    }

    /// Returns a second reader, with a queue of the same limits: it gets a clone of every event and
    /// state from now on. The link never waits for it, so
    /// [`LagPolicy::Block`](crate::net::LagPolicy::Block) acts like `DropOldest`.
    #[must_use]
    pub fn subscribe(&self) -> Self
    where
        E: Clone,
    {
        Self::new(self.queue.subscribe())
    }

    /// Returns the protocol's next event, or `None` once the link has ended and everything was taken.
    /// [`total_lost`](Self::total_lost) counts what was dropped, [`Link::states`](super::Link::states)
    /// has the states.
    ///
    /// # Cancel safety
    /// Cancel-safe: an event is either returned or stays queued.
    pub async fn next(&mut self) -> Option<E> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the next event of the protocol or of the link: a state, or a loss.
    ///
    /// # Cancel safety
    /// Cancel-safe: an event is either returned or stays queued.
    pub async fn next_link(&mut self) -> Option<LinkEvent<E>> {
        poll_fn(|cx| self.poll_link(cx)).await
    }

    /// Returns the protocol's next event that is there, without waiting.
    pub fn try_next(&mut self) -> Option<E> {
        std::iter::from_fn(|| self.try_next_link()).find_map(|next| match next {
            LinkEvent::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Returns the next event of the protocol or of the link that is there, without waiting.
    pub fn try_next_link(&mut self) -> Option<LinkEvent<E>> {
        self.queue.try_next().map(flat)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<E>> {
        loop {
            match ready!(self.poll_link(cx)) {
                Some(LinkEvent::Event(event)) => return Poll::Ready(Some(event)),
                Some(_) => {}
                None => return Poll::Ready(None),
            }
        }
    }

    /// Poll form of [`next_link`](Self::next_link).
    fn poll_link(&mut self, cx: &mut Context<'_>) -> Poll<Option<LinkEvent<E>>> {
        self.queue.poll_queued(cx).map(|next| next.map(flat))
    }

    /// Returns how many events were dropped since the beginning, including reported ones.
    #[must_use]
    pub fn total_lost(&self) -> u64 {
        self.queue.total_lost()
    }
}

fn flat<E>(queued: Queued<LinkEvent<E>>) -> LinkEvent<E> {
    match queued {
        Queued::Item(event) => event,
        Queued::Lagged(events) => LinkEvent::Lagged(events),
    }
}

impl<E> Stream for Events<E> {
    type Item = E;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<E>> {
        self.poll_event(cx)
    }
}
