//! [`Link`]: the handle through which an application talks to its connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::call::{CallStream, Completer, Reaper, Waiting, cell, remember};
use super::standing::Standing;
use super::waiters::Waiters;
use super::{LinkConfig, LinkState, Outcome, Protocol};
use crate::error::{CallError, CloseReason, Delivery, Refused};
use crate::message::CloseFrame;
use crate::net::queue;

/// What a command works on, while there is a connection.
pub(super) struct Serving<'a, P: Protocol> {
    pub(super) machine: &'a mut P::Machine,
    pub(super) waiters: &'a mut Waiters<P>,
    pub(super) now: Instant,
    /// Commands still run, so that what is open can be answered; new calls are refused.
    pub(super) draining: bool,
}

pub(super) type Command<P> = Box<dyn FnOnce(Result<Serving<'_, P>, Refused>) + Send>;

/// Orders that overtake commands.
#[derive(Debug, Default)]
pub(super) struct Orders {
    state: Mutex<OrdersState>,
}

#[derive(Debug, Default)]
struct OrdersState {
    close: Option<CloseFrame>,
    drain: Option<(Duration, CloseFrame)>,
    report: Option<DrainReport>,
    redial: Option<u64>,
    abort: bool,
    waker: Option<Waker>,
}

/// An order, as the task sees it.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) close: Option<CloseFrame>,
    pub(super) drain: Option<(Duration, CloseFrame)>,
    /// Dial now, if this is still the generation of the line that is up (or none is).
    pub(super) redial: Option<u64>,
    pub(super) abort: bool,
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, OrdersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, change: impl FnOnce(&mut OrdersState)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the orders that have gathered and asks to be woken for more.
    pub(super) fn poll_take(&self, cx: &Context<'_>) -> Order {
        let mut state = self.lock();
        remember(&mut state.waker, cx);
        Order {
            close: state.close.take(),
            drain: state.drain.take(),
            redial: state.redial.take(),
            abort: std::mem::take(&mut state.abort),
        }
    }

    pub(super) fn report(&self, report: DrainReport) {
        self.lock().report = Some(report);
    }
}

/// What a [`drain`](Link::drain) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Calls that ended by themselves after the drain began.
    pub finished: usize,
    /// Calls that were cut off at the deadline.
    pub aborted: usize,
}

/// A handle to a connection and its successors. Cheap to clone; when the last clone is dropped the
/// connection closes with 1000.
pub struct Link<P: Protocol> {
    commands: mpsc::Sender<Command<P>>,
    shared: Arc<Shared<P>>,
}

pub(super) struct Shared<P: Protocol> {
    pub(super) reaper: Arc<Reaper<P::Call>>,
    pub(super) orders: Orders,
    pub(super) standing: Standing,
    pub(super) config: Arc<LinkConfig>,
    /// Whether a lost line is followed by another.
    pub(super) dials_again: bool,
}

impl<P: Protocol> Clone for Link<P> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<P: Protocol> Link<P> {
    pub(super) const fn new(commands: mpsc::Sender<Command<P>>, shared: Arc<Shared<P>>) -> Self {
        Self { commands, shared }
    }

    /// Starts a call with `start` and waits for its end.
    ///
    /// # Errors
    /// Every [`CallError`]; [`delivery`](CallError::delivery) says whether the peer may have seen
    /// the call. While there is no connection it fails at once with
    /// [`Refused::NotConnected`]; wait with [`ready`](Self::ready).
    ///
    /// # Cancel safety
    /// Dropping the future gives the call up: it is removed here, and cancelled at the peer where
    /// the protocol can. Nothing is sent if the command had not started.
    pub async fn call<F>(&self, start: F) -> Outcome<P>
    where
        F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
    {
        let (completer, waiting) = self.cell();
        self.submit(completer, None, start).await;
        waiting.await
    }

    /// Starts a call that gives items before it ends.
    ///
    /// # Cancel safety
    /// As for [`call`](Self::call). Dropping the [`CallStream`] cancels the call as well.
    pub async fn stream<F>(&self, start: F) -> CallStream<P>
    where
        F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
    {
        let (completer, waiting) = self.cell();
        let (producer, consumer) = queue::queue(self.shared.config.streams.clone());
        let stream = CallStream::new(consumer, waiting);
        self.submit(completer, Some(producer), start).await;
        stream
    }

    /// Runs `command` on the machine and returns what it returns.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] while there is no connection, [`Refused::Closed`] when there will
    /// be none any more. During a [`drain`](Self::drain) commands still run: they may answer what
    /// is open.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: the command may or may not run.
    pub async fn command<R, F>(&self, command: F) -> Result<R, Refused>
    where
        F: FnOnce(&mut P::Machine, Instant) -> R + Send + 'static,
        R: Send + 'static,
    {
        let (sender, mut receiver) = tokio::sync::oneshot::channel();
        let command: Command<P> = Box::new(move |serving| {
            // A caller that went away does not want the result.
            let _ = sender.send(serving.map(|serving| command(serving.machine, serving.now)));
        });
        if self.commands.send(command).await.is_err() {
            return Err(Refused::Closed);
        }
        if self.commands.is_closed() {
            // Nobody may be left to run it, or to drop it: what has not happened does not happen.
            return receiver.try_recv().unwrap_or(Err(Refused::Closed));
        }
        receiver.await.unwrap_or(Err(Refused::Closed))
    }

    /// Runs `command` on the machine without waiting, and without a result.
    ///
    /// # Errors
    /// [`Refused::QueueFull`] if too many commands wait already, [`Refused::Closed`] at the end.
    /// While there is no connection the command is dropped.
    pub fn try_command<F>(&self, command: F) -> Result<(), Refused>
    where
        F: FnOnce(&mut P::Machine, Instant) + Send + 'static,
    {
        let command: Command<P> = Box::new(move |serving| {
            if let Ok(serving) = serving {
                command(serving.machine, serving.now);
            }
        });
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Refused::QueueFull,
                mpsc::error::TrySendError::Closed(_) => Refused::Closed,
            })
    }

    /// Where the link stands now.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.shared.standing.get()
    }

    /// The state as it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<LinkState> {
        self.shared.standing.watch()
    }

    /// Waits until calls can be made and returns the generation.
    ///
    /// # Errors
    /// The reason, if there will be no connection any more.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ready(&self) -> Result<u64, CloseReason> {
        let found = self.shared.standing.wait(|state| match state {
            LinkState::Ready { generation } => Some(Ok(*generation)),
            other => other.ended().cloned().map(Err),
        });
        found.await.unwrap_or(Err(CloseReason::TaskGone))
    }

    /// Waits until the link has ended for good.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn closed(&self) -> CloseReason {
        let ended = self.shared.standing.wait(|state| state.ended().cloned());
        ended.await.unwrap_or(CloseReason::TaskGone)
    }

    /// Closes with 1000 behind what is queued; calls in flight fail with
    /// [`CloseReason::Local`]. A second close is a no-op.
    pub fn close(&self) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, ""));
    }

    /// Closes with this frame.
    pub fn close_with(&self, frame: CloseFrame) {
        self.shared.orders.give(|orders| {
            orders.close.get_or_insert(frame);
        });
    }

    /// Makes a new connection now. If the line of `generation` is still up it is closed first;
    /// if the link waits for its next attempt, the wait ends. If another task has brought the
    /// line back meanwhile, or is about to, nothing happens: however many tasks find a line
    /// dead, one reconnect follows.
    ///
    /// A link that does not dial (an accepted one) ignores it. [`ready`](Self::ready) may still
    /// return the old generation until the order is carried out; calls in flight end with
    /// [`CloseReason::Local`].
    ///
    /// The caller paces itself: a failed attempt falls back to the link's own delays.
    pub fn reconnect(&self, generation: u64) {
        self.shared
            .orders
            // An order for an older line must not take the place of one for this line.
            .give(|orders| orders.redial = orders.redial.max(Some(generation)));
    }

    /// Drops the line without a closing handshake, as a pulled cable does. A link that dials
    /// comes back by its reconnect policy.
    pub fn cut(&self) {
        self.shared.orders.give(|orders| orders.abort = true);
    }

    /// Takes no new calls, waits up to `deadline` for those in flight, then closes with 1000. Of
    /// several drains the earliest deadline counts, and all get the same report.
    ///
    /// # Cancel safety
    /// The drain goes on if the future is dropped; only the report is lost.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        let frame = CloseFrame::new(CloseFrame::NORMAL, "");
        self.drain_with(deadline, frame).await
    }

    /// Drains, then closes with this frame: a server that goes away says 1001.
    ///
    /// # Cancel safety
    /// As for [`drain`](Self::drain).
    pub async fn drain_with(&self, deadline: Duration, frame: CloseFrame) -> DrainReport {
        self.shared.orders.give(|orders| match &mut orders.drain {
            Some((before, _)) => *before = deadline.min(*before),
            none => *none = Some((deadline, frame)),
        });
        self.closed().await;
        self.shared.orders.lock().report.unwrap_or_default()
    }

    fn cell(&self) -> (Completer<P>, Waiting<P>) {
        cell(Arc::clone(&self.shared.reaper))
    }

    async fn submit<F>(
        &self,
        completer: Completer<P>,
        items: Option<queue::Producer<P::Item>>,
        start: F,
    ) where
        F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
    {
        let Ok(permit) = self.commands.reserve().await else {
            return completer.complete(self.never_sent());
        };
        let too_late = completer.twin();
        let dials_again = self.shared.dials_again;
        permit.send(Box::new(move |serving| {
            if completer.is_abandoned() {
                return;
            }
            let started = serving.and_then(|serving| {
                if serving.draining {
                    return Err(Refused::Draining);
                }
                match start(serving.machine, serving.now) {
                    Ok(call) => Ok((call, serving)),
                    // This line is on its way out, but the link is not.
                    Err(Refused::Closed) if dials_again => Err(Refused::NotConnected),
                    Err(refused) => Err(refused),
                }
            });
            match started {
                Err(refused) => completer.complete(Err(refused.into())),
                Ok((call, serving)) => {
                    if !serving.waiters.insert(call, completer, items) {
                        P::cancel(serving.machine, call, serving.now);
                    }
                }
            }
        }));
        if self.commands.is_closed() {
            // It may have come behind the last look into the queue, where it would lie for ever.
            too_late.end_if_queued(self.never_sent());
        }
    }

    /// How a call ends that finds the queue closed.
    fn never_sent(&self) -> Outcome<P> {
        let ended = self.state().ended().cloned();
        Err(CallError::Closed {
            reason: ended.unwrap_or(CloseReason::TaskGone),
            delivery: Delivery::NotSent,
        })
    }
}

impl<P: Protocol> fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("state", &self.shared.standing.get())
            .finish_non_exhaustive()
    }
}
