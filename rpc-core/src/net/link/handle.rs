//! [`Link`]: the application's handle to its connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::call::{CallStream, Completer, prepare};
use super::inbox::{Command, Inbox, Work};
use super::state_watch::StateWatch;
use super::{LinkConfig, LinkEvent, LinkState, Outcome, Protocol};
use crate::Instant;
use crate::error::{CallError, CloseReason, Delivery, Refused};
use crate::message::CloseFrame;
use crate::net::dial::Node;
use crate::net::queue::{Producer, queue};

/// The result of a drain, for what was open when it began: the calls of a [link](Link::drain), the
/// handlers of a [dispatcher](crate::net::EventDispatcher::drain), the connections of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Those that ended by themselves before the deadline.
    pub finished: usize,
    /// Those that were cut off at the deadline.
    pub aborted: usize,
}

/// A handle to a connection and its successors. Cheap to clone; dropping the last clone closes the
/// connection with 1000.
pub struct Link<P: Protocol> {
    shared: Arc<Shared<P>>,
}

/// What handles, callers and the task share.
pub(super) struct Shared<P: Protocol> {
    pub(super) inbox: Inbox<P>,
    pub(super) state: StateWatch,
    pub(super) config: Arc<LinkConfig>,
    /// Ended with the task.
    pub(super) events: Producer<LinkEvent<P::Event>>,
    /// Whether the link dials again after a lost connection.
    pub(super) dials_again: bool,
}

impl<P: Protocol> Clone for Link<P> {
    fn clone(&self) -> Self {
        self.shared.inbox.add_handle();
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<P: Protocol> Drop for Link<P> {
    fn drop(&mut self) {
        self.shared.inbox.drop_handle();
    }
}

/// A handle that does not keep the connection open, for objects that may outlive it.
pub struct WeakLink<P: Protocol> {
    shared: Weak<Shared<P>>,
}

impl<P: Protocol> WeakLink<P> {
    /// Returns a full handle, unless the last one has been dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Link<P>> {
        let shared = self.shared.upgrade()?;
        shared.inbox.revive().then(|| Link { shared })
    }

    /// Lets the connection's task [collect](Protocol::before_write) what the application left for
    /// it. It needs no room in the queue and is cheap to repeat. Does nothing without a connection.
    pub fn wake(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.inbox.wake();
        }
    }
}

crate::debug::debug_fields!([P: Protocol] WeakLink<P>, _ => {});

impl<P: Protocol> Link<P> {
    /// Creates the first handle.
    pub(super) const fn new(shared: Arc<Shared<P>>) -> Self {
        Self { shared }
    }

    /// Returns a handle that does not keep the connection open.
    #[must_use]
    pub fn downgrade(&self) -> WeakLink<P> {
        WeakLink {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// The queue of [`Events`](super::Events), from which a protocol may take events back.
    #[doc(hidden)]
    #[must_use]
    pub fn events(&self) -> &Producer<LinkEvent<P::Event>> {
        &self.shared.events
    }

    /// Starts a call with `start` and waits for its end. `method` is its name in [spans and
    /// metrics](crate::net::telemetry).
    ///
    /// # Errors
    /// Every [`CallError`]; [`delivery`](CallError::delivery) says whether the peer may have seen
    /// the call. While there is no connection, the call fails at once with
    /// [`Refused::NotConnected`]; wait with [`ready`](Self::ready).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call: it is removed here, and cancelled at the peer if the
    /// protocol can. Nothing is sent if the command had not started.
    pub fn call_with<F>(
        &self,
        method: &'static str,
        start: F,
    ) -> impl Future<Output = Outcome<P>> + Send + use<'_, P, F>
    where
        F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
    {
        // Not an `async fn`: its future, and each one around it, would carry the closure along.
        let (completer, mut waiting) = prepare(Arc::clone(&self.shared), method, None, start);
        async move {
            if let Some(wait) = self.submit(completer) {
                wait.await;
            }
            // Where it is, since awaiting it by value would move it.
            (&mut waiting).await
        }
    }

    /// Like [`call_with`](Self::call_with), for a call that yields items before it ends.
    ///
    /// # Cancel safety
    /// As for [`call_with`](Self::call_with). Dropping the [`CallStream`] cancels the call as well.
    pub fn stream<F>(
        &self,
        method: &'static str,
        start: F,
    ) -> impl Future<Output = CallStream<P>> + Send + use<'_, P, F>
    where
        F: FnOnce(&mut P::Machine, Instant) -> Result<P::Call, Refused> + Send + 'static,
    {
        let (producer, consumer) = queue(self.shared.config.streams.clone());
        let (completer, waiting) = prepare(Arc::clone(&self.shared), method, Some(producer), start);
        let stream = CallStream::new(consumer, waiting);
        async move {
            if let Some(wait) = self.submit(completer) {
                wait.await;
            }
            stream
        }
    }

    /// Runs `command` on the machine and returns its result.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] while there is no connection, [`Refused::Closed`] once there will
    /// be none. During a [`drain`](Self::drain) commands still run, to answer open requests.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the command may or may not run.
    pub fn command<R, F>(
        &self,
        command: F,
    ) -> impl Future<Output = Result<R, Refused>> + Send + use<'_, P, R, F>
    where
        F: FnOnce(&mut P::Machine, Instant) -> R + Send + 'static,
        R: Send + 'static,
    {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let work: Work<P> = Box::new(move |serving| {
            // A caller that went away does not want the result.
            let _ = sender.send(serving.map(|serving| command(serving.machine, serving.now)));
        });
        async {
            match self.shared.inbox.leave(Command::Work(work)).await {
                Ok(()) => receiver.await.unwrap_or(Err(Refused::Closed)),
                Err(_) => Err(Refused::Closed),
            }
        }
    }

    /// Queues `command` for the machine without waiting for it, and without a result.
    ///
    /// # Errors
    /// [`Refused::QueueFull`] if too many commands wait, [`Refused::Closed`] once the link has
    /// ended. While there is no connection the command is dropped.
    pub fn try_command(
        &self,
        command: impl FnOnce(&mut P::Machine, Instant) + Send + 'static,
    ) -> Result<(), Refused> {
        let work: Work<P> = Box::new(move |serving| {
            if let Ok(serving) = serving {
                command(serving.machine, serving.now);
            }
        });
        let left = self.shared.inbox.try_leave(Command::Work(work));
        left.map_err(|(_, why)| why)
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.shared.state.get()
    }

    /// Returns the node of the connection; while there is none, that of the last one. `None` before
    /// the first connection, and if the [`Dialer`](crate::net::Dialer) does not say.
    ///
    /// It changes before the state does, so that a watcher of [`LinkState::Ready`] finds its node.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.shared.state.node()
    }

    /// Returns a receiver of the state as it changes.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<LinkState> {
        self.shared.state.watch()
    }

    /// Waits until calls can be made and returns the generation.
    ///
    /// # Errors
    /// The reason, once there will be no connection any more.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ready(&self) -> Result<u64, CloseReason> {
        let found = self.shared.state.wait(|state| match state {
            LinkState::Ready { generation } => Some(Ok(*generation)),
            other => other.ended().cloned().map(Err),
        });
        found.await.unwrap_or(Err(CloseReason::TaskGone))
    }

    /// Waits until the link has ended for good. A link that dials ends when it is
    /// [closed](Self::close) or gives up, not with a connection.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn closed(&self) -> CloseReason {
        let ended = self.shared.state.wait(|state| state.ended().cloned());
        ended.await.unwrap_or(CloseReason::TaskGone)
    }

    /// Closes with 1000 after the queued frames; calls in flight fail with [`CloseReason::Local`].
    /// A second close is a no-op.
    pub fn close(&self) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, P::GOODBYE));
    }

    /// Closes with this frame.
    pub fn close_with(&self, frame: CloseFrame) {
        self.shared.inbox.order(|orders| {
            orders.close.get_or_insert(frame);
        });
    }

    /// Opens a new connection now. If the connection of `generation` is still up, it is closed
    /// first; if the link waits for its next attempt, the wait ends. If another task has already
    /// caused a reconnect, nothing happens: however many tasks notice a dead connection, the link
    /// reconnects once.
    ///
    /// A link that does not dial ignores it. [`ready`](Self::ready) may return the old generation
    /// until the task has handled the request; calls in flight end with [`CloseReason::Local`].
    ///
    /// The caller limits its own pace: a failed attempt falls back to the link's own delays.
    pub fn reconnect(&self, generation: u64) {
        self.shared
            .inbox
            // An order for an older line must not take the place of one for this line.
            .order(|orders| orders.redial = orders.redial.max(Some(generation)));
    }

    /// Drops the connection without a closing handshake, like a pulled cable. A link that dials
    /// reconnects by its policy.
    pub fn cut(&self) {
        self.shared.inbox.order(|orders| orders.abort = true);
    }

    /// Accepts no new calls, waits up to `deadline` for those in flight, then closes with 1000. Of
    /// several drains the earliest deadline counts, and all return the same report.
    ///
    /// # Cancel safety
    /// If the future is dropped, the drain goes on; only the report is lost.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        self.shared.inbox.order(|orders| {
            let before = orders.drain.unwrap_or(Duration::MAX);
            orders.drain = Some(deadline.min(before));
        });
        self.closed().await;
        self.shared.inbox.report().unwrap_or_default()
    }

    /// Queues a call for the task. If there is no room yet, returns a future that waits for it:
    /// boxed, because calls rarely need it and it would enlarge all their futures.
    fn submit(
        &self,
        call: Completer<P>,
    ) -> Option<Pin<Box<impl Future<Output = ()> + Send + use<'_, P>>>> {
        let end = |command| {
            if let Command::Call(call) = command {
                call.complete(self.never_sent());
            }
        };
        match self.shared.inbox.try_leave(Command::Call(call)) {
            Ok(()) => None,
            Err((command, Refused::QueueFull)) => Some(Box::pin(async move {
                let left = self.shared.inbox.leave(command).await;
                left.unwrap_or_else(end);
            })),
            Err((command, _)) => {
                end(command);
                None
            }
        }
    }

    /// Returns how a call ends if the queue is closed.
    fn never_sent(&self) -> Outcome<P> {
        let ended = self.state().ended().cloned();
        Err(CallError::Closed {
            reason: ended.unwrap_or(CloseReason::TaskGone),
            delivery: Delivery::NotSent,
        })
    }
}

crate::debug::debug_fields!([P: Protocol] Link<P>, this => { state: this.shared.state.get() });
