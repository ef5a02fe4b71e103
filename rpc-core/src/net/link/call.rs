//! A call's two ends: the caller's future and the connection's completer.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::super::queue::{Consumer, Queued};
use super::{Outcome, Protocol};
use crate::error::{CallError, CloseReason, Delivery};

/// Calls whose callers went away, and how to wake the task that has to know.
#[derive(Debug)]
pub(super) struct Reaper<C> {
    state: Mutex<(Vec<C>, Option<Waker>)>,
}

impl<C> Default for Reaper<C> {
    fn default() -> Self {
        Self {
            state: Mutex::new((Vec::new(), None)),
        }
    }
}

impl<C> Reaper<C> {
    fn lock(&self) -> MutexGuard<'_, (Vec<C>, Option<Waker>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, call: C) {
        let mut state = self.lock();
        state.0.push(call);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes what has gathered and asks to be woken for more.
    pub(super) fn poll_take(&self, cx: &Context<'_>) -> Vec<C> {
        let mut state = self.lock();
        remember(&mut state.1, cx);
        std::mem::take(&mut state.0)
    }
}

/// Keeps the task's waker; one that wakes the same task already stays as it is.
pub(super) fn remember(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

enum Phase<P: Protocol> {
    /// In the command queue, or ended without being registered.
    Queued,
    /// Registered under this id.
    Registered(P::Call),
    Ended(Outcome<P>),
    Taken,
    Abandoned,
}

struct Cell<P: Protocol> {
    state: Mutex<(Phase<P>, Option<Waker>)>,
    reaper: Arc<Reaper<P::Call>>,
}

impl<P: Protocol> Cell<P> {
    fn lock(&self) -> MutexGuard<'_, (Phase<P>, Option<Waker>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller's end.
pub(super) struct Waiting<P: Protocol>(Arc<Cell<P>>);

/// The connection's end. Dropped without an outcome, it says that the task is gone.
pub(super) struct Completer<P: Protocol>(Option<Arc<Cell<P>>>);

pub(super) fn cell<P: Protocol>(reaper: Arc<Reaper<P::Call>>) -> (Completer<P>, Waiting<P>) {
    let cell = Arc::new(Cell {
        state: Mutex::new((Phase::Queued, None)),
        reaper,
    });
    (Completer(Some(Arc::clone(&cell))), Waiting(cell))
}

impl<P: Protocol> Completer<P> {
    /// Whether the caller went away before anything was done.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|cell| matches!(cell.lock().0, Phase::Abandoned))
    }

    /// Remembers the id; false if the caller has gone meanwhile.
    pub(super) fn register(&self, call: P::Call) -> bool {
        let Some(cell) = &self.0 else { return false };
        let mut state = cell.lock();
        if matches!(state.0, Phase::Abandoned) {
            return false;
        }
        state.0 = Phase::Registered(call);
        true
    }

    /// A second hold on the call, for [`Twin::end_if_queued`].
    pub(super) fn twin(&self) -> Twin<P> {
        Twin(self.0.clone())
    }

    /// Ends the call.
    pub(super) fn complete(mut self, outcome: Outcome<P>) {
        if let Some(cell) = self.0.take() {
            finish(&cell, outcome);
        }
    }
}

/// A hold on a call whose [`Completer`] lies in a queue.
pub(super) struct Twin<P: Protocol>(Option<Arc<Cell<P>>>);

impl<P: Protocol> Twin<P> {
    /// Ends the call unless something has happened to it already.
    pub(super) fn end_if_queued(self, outcome: Outcome<P>) {
        let Some(cell) = self.0 else { return };
        let mut state = cell.lock();
        // The caller itself comes this way, so nobody has to be woken.
        if matches!(state.0, Phase::Queued) {
            state.0 = Phase::Ended(outcome);
        }
    }
}

fn finish<P: Protocol>(cell: &Cell<P>, outcome: Outcome<P>) {
    let mut state = cell.lock();
    if matches!(state.0, Phase::Ended(_) | Phase::Abandoned | Phase::Taken) {
        return;
    }
    state.0 = Phase::Ended(outcome);
    let waker = state.1.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<P: Protocol> Drop for Completer<P> {
    fn drop(&mut self) {
        let Some(cell) = self.0.take() else { return };
        let delivery = match cell.lock().0 {
            Phase::Queued => Delivery::NotSent,
            _ => Delivery::Unknown,
        };
        finish(
            &cell,
            Err(CallError::Closed {
                reason: CloseReason::TaskGone,
                delivery,
            }),
        );
    }
}

impl<P: Protocol> Future for Waiting<P> {
    type Output = Outcome<P>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<P>> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut state.0, Phase::Taken) {
            Phase::Ended(outcome) => Poll::Ready(outcome),
            earlier => {
                state.0 = earlier;
                remember(&mut state.1, cx);
                Poll::Pending
            }
        }
    }
}

impl<P: Protocol> Drop for Waiting<P> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let earlier = std::mem::replace(&mut state.0, Phase::Abandoned);
        drop(state);
        if let Phase::Registered(call) = earlier {
            self.0.reaper.push(call);
        }
    }
}

/// A call that gives items before it ends. Dropping it cancels the call.
pub struct CallStream<P: Protocol> {
    items: Consumer<P::Item>,
    end: Waiting<P>,
    ended: bool,
}

impl<P: Protocol> CallStream<P> {
    pub(super) const fn new(items: Consumer<P::Item>, end: Waiting<P>) -> Self {
        Self {
            items,
            end,
            ended: false,
        }
    }

    /// The next item; `None` after the last one. Then [`outcome`](Self::outcome) says how it ended.
    ///
    /// # Cancel safety
    /// Cancel-safe: an item is either returned or stays queued.
    pub async fn next(&mut self) -> Option<Queued<P::Item>> {
        self.items.next().await
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_queued(&mut self, cx: &mut Context<'_>) -> Poll<Option<Queued<P::Item>>> {
        self.items.poll_queued(cx)
    }

    /// How the call ended; items that were not taken are skipped. `None` if it was asked before.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn outcome(&mut self) -> Option<Outcome<P>> {
        poll_fn(|cx| self.poll_outcome(cx)).await
    }

    /// Poll form of [`outcome`](Self::outcome).
    pub fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome<P>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // A full queue would keep the end from coming.
        while let Poll::Ready(Some(_)) = self.items.poll_queued(cx) {}
        let outcome = Pin::new(&mut self.end).poll(cx);
        self.ended = outcome.is_ready();
        outcome.map(Some)
    }
}

impl<P: Protocol> fmt::Debug for CallStream<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallStream")
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}
