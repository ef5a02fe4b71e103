//! The two ends of a call: the caller's future and the connection's completer.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::super::queue::{Consumer, Producer, Queued};
use super::handle::Shared;
use super::{Outcome, Protocol};
use crate::Instant;
use crate::error::{CallError, CloseReason, Delivery, Refused};
use crate::net::queue::{remember, wake_from};
use crate::net::telemetry::{CallOutcome, CallSpan, Side};
use crate::sync::Mutex;

/// The closure that starts a call, to be taken once.
pub(super) trait Start<P: Protocol>: Send {
    fn start(&mut self, machine: &mut P::Machine, now: Instant) -> Result<P::Call, Refused>;
}

impl<P: Protocol, F> Start<P> for Option<F>
where
    F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send,
{
    fn start(&mut self, machine: &mut P::Machine, now: Instant) -> Result<P::Call, Refused> {
        let start = self.take().ok_or(Refused::Closed)?;
        start(machine, now)
    }
}

enum Phase<P: Protocol> {
    /// Queued for the task, or ended without being registered.
    Queued,
    /// Registered under this id.
    Registered(P::Call),
    Ended(Outcome<P>),
    Taken,
    Abandoned,
}

/// The state of a call outside the machine, in one allocation.
struct State<P: Protocol, S: ?Sized> {
    phase: Phase<P>,
    caller: Option<Waker>,
    start: S,
}

type Cell<P> = Mutex<State<P, dyn Start<P>>>;

/// The caller's end.
pub(super) struct Waiting<P: Protocol> {
    cell: Arc<Cell<P>>,
    shared: Arc<Shared<P>>,
    span: CallSpan,
    /// Whether the outcome was taken.
    is_over: bool,
}

/// The connection's end. Dropping it without an outcome reports that the task is gone.
pub(super) struct Completer<P: Protocol> {
    cell: Option<Arc<Cell<P>>>,
    /// Where the items of a stream go.
    items: Option<Producer<P::Item>>,
}

/// Creates a call that is not yet queued.
pub(super) fn prepare<P: Protocol>(
    shared: Arc<Shared<P>>,
    method: &'static str,
    items: Option<Producer<P::Item>>,
    start: impl FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
) -> (Completer<P>, Waiting<P>) {
    let cell: Arc<Cell<P>> = Arc::new(Mutex::new(State {
        phase: Phase::Queued,
        caller: None,
        start: Some(start),
    }));
    let completer = Completer {
        cell: Some(Arc::clone(&cell)),
        items,
    };
    let waiting = Waiting {
        cell,
        shared,
        span: CallSpan::new(Side::Client, P::SYSTEM, method),
        is_over: false,
    };
    (completer, waiting)
}

impl<P: Protocol> Completer<P> {
    /// Starts the call and remembers its id; `None` if its caller is gone.
    pub(super) fn start(
        &self,
        machine: &mut P::Machine,
        now: Instant,
    ) -> Option<Result<P::Call, Refused>> {
        let mut state = self.cell.as_ref()?.lock();
        if matches!(state.phase, Phase::Abandoned) {
            return None;
        }
        let started = state.start.start(machine, now);
        if let Ok(call) = started {
            state.phase = Phase::Registered(call);
        }
        Some(started)
    }

    pub(super) const fn items(&self) -> Option<&Producer<P::Item>> {
        self.items.as_ref()
    }

    /// Ends the call.
    pub(super) fn complete(mut self, outcome: Outcome<P>) {
        // The items end behind it, so that a consumer that sees their end finds the outcome.
        if let Some(cell) = self.cell.take() {
            finish(&cell, outcome);
        }
    }
}

fn finish<P: Protocol>(cell: &Cell<P>, outcome: Outcome<P>) {
    let mut state = cell.lock();
    state.phase = Phase::Ended(outcome);
    wake_from(state, |state| state.caller.take());
}

impl<P: Protocol> Drop for Completer<P> {
    fn drop(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        let delivery = match cell.lock().phase {
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

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<P>> {
        let mut state = self.cell.lock();
        if !matches!(state.phase, Phase::Ended(_)) {
            remember(&mut state.caller, cx);
            return Poll::Pending;
        }
        let Phase::Ended(outcome) = std::mem::replace(&mut state.phase, Phase::Taken) else {
            return Poll::Pending;
        };
        drop(state);
        self.is_over = true;
        let counted = outcome.as_ref().map(P::outcome);
        self.span.end(counted.unwrap_or(CallOutcome::Error));
        Poll::Ready(outcome)
    }
}

impl<P: Protocol> Drop for Waiting<P> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.cell.lock();
        let earlier = std::mem::replace(&mut state.phase, Phase::Abandoned);
        drop(state);
        if let Phase::Registered(call) = earlier {
            self.shared.inbox.abandon(call);
        }
    }
}

/// A call that yields items before it ends. Dropping it cancels the call.
///
/// A stream that has lost items, because its queue was full and its policy drops, ends with
/// [`CloseReason::SlowConsumer`]: what follows a gap makes no sense.
pub struct CallStream<P: Protocol> {
    items: Consumer<P::Item>,
    end: Waiting<P>,
    has_gap: bool,
    ended: bool,
}

impl<P: Protocol> CallStream<P> {
    pub(super) const fn new(items: Consumer<P::Item>, end: Waiting<P>) -> Self {
        Self {
            items,
            end,
            has_gap: false,
            ended: false,
        }
    }

    /// Returns the next item; `None` after the last one. Then [`outcome`](Self::outcome) says how
    /// the call ended.
    ///
    /// # Cancel safety
    /// Cancel-safe: an item is either returned or stays queued.
    pub async fn next(&mut self) -> Option<P::Item> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<P::Item>> {
        if self.has_gap {
            return Poll::Ready(None);
        }
        let next = ready!(self.items.poll_queued(cx));
        self.has_gap = matches!(next, Some(Queued::Lagged(_)));
        Poll::Ready(match next {
            Some(Queued::Item(item)) => Some(item),
            _ => None,
        })
    }

    /// Takes items beyond the queue's limits from now on, up to this many bytes more, and drops what
    /// comes after, so that the stream never holds up its connection: while a call about this one
    /// waits for its answer, for example. `None` ends that.
    pub fn relax(&self, more_bytes: Option<usize>) {
        self.items.relax(more_bytes);
    }

    /// Waits for the end of the call, skipping remaining items. `None` if the outcome was taken
    /// before.
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
        while let Poll::Ready(Some(_)) = self.poll_item(cx) {}
        if self.has_gap {
            self.ended = true;
            let (reason, delivery) = (CloseReason::SlowConsumer, Delivery::Delivered);
            return Poll::Ready(Some(Err(CallError::Closed { reason, delivery })));
        }
        let outcome = Pin::new(&mut self.end).poll(cx);
        self.ended = outcome.is_ready();
        outcome.map(Some)
    }
}

crate::debug::debug_fields!([P: Protocol] CallStream<P>, _ => {});
