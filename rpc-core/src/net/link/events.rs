//! [`Events`]: the application's end of a link.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::LinkEvent;
use crate::net::queue::{Consumer, Queued};

/// The events of a link, in order and bounded: a stream of [`LinkEvent`]s.
///
/// Dropping it only stops delivery.
#[derive(Debug)]
pub struct Events<E> {
    queue: Consumer<LinkEvent<E>>,
}

impl<E> Events<E> {
    pub(in crate::net) const fn new(queue: Consumer<LinkEvent<E>>) -> Self {
        Self { queue }
    }

    /// Returns the next event, or `None` once the link has ended and everything was taken.
    ///
    /// # Cancel safety
    /// Cancel-safe: an event is either returned or stays queued.
    pub async fn next(&mut self) -> Option<LinkEvent<E>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the next event that is there, without waiting.
    pub fn try_next(&mut self) -> Option<LinkEvent<E>> {
        self.queue.try_next().map(flat)
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<LinkEvent<E>>> {
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
    type Item = LinkEvent<E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LinkEvent<E>>> {
        self.poll_event(cx)
    }
}
