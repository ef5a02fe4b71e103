//! [`Task`]: owns the driver, the waiters and the reconnects.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::Instrument;

use super::handle::{Link, Shared};
use super::inbox::{Command, Inbox};
use super::session::{After, Session};
use super::state_watch::StateWatch;
use super::{Connection, Events, LinkConfig, LinkEvent, LinkState, Parts, Protocol};
use crate::backlog::Backlog;
use crate::error::{CloseReason, Refused};
use crate::net::dial::{DialError, Dialer, Node};
use crate::net::driver::Driver;
use crate::net::telemetry::{Queue, Side, connection_span};
use crate::net::{queue, time};
use crate::reconnect::{ReconnectPolicy, Reconnector};

pub(super) fn parts<P: Protocol, D: Dialer>(
    protocol: P,
    dialer: D,
    config: Arc<LinkConfig>,
    reconnect: ReconnectPolicy,
) -> Parts<P> {
    let (producer, events) = queue::metered(config.events.clone(), Queue::new(P::SYSTEM));
    let dials_again = !reconnect.backoff.is_off();
    let shared = Arc::new(Shared {
        inbox: Inbox::new(config.max_commands),
        state: StateWatch::new(LinkState::Connecting { attempt: 0 }),
        config,
        events: producer,
        dials_again,
    });
    let front = Front {
        commands: Backlog::new(),
        shared: Arc::clone(&shared),
    };
    let task = Task {
        protocol,
        dialer,
        front,
        reconnector: dials_again.then(|| Box::new(Reconnector::new(reconnect))),
        generation: 0,
        attempt: 0,
    };
    let connection = Connection::new(task.run(), Arc::clone(&shared));
    (Link::new(shared), Events::new(events), connection)
}

/// The task of a connection and its successors.
struct Task<P: Protocol, D: Dialer> {
    protocol: P,
    dialer: D,
    front: Front<P>,
    /// `None` if the link does not reconnect.
    reconnector: Option<Box<Reconnector>>,
    generation: u64,
    attempt: u32,
}

/// The side that faces the application.
pub(super) struct Front<P: Protocol> {
    /// Taken out of the inbox and not yet run.
    pub(super) commands: Backlog<Command<P>>,
    pub(super) shared: Arc<Shared<P>>,
}

/// The driver of one connection. Boxed, because in the task's future it would take space several
/// times, once for each step on its way into the session.
type LineDriver<P, D> = Box<Driver<<P as Protocol>::Machine, <D as Dialer>::Transport>>;

/// Why an offline wait ended.
enum Offline<T> {
    Done(T),
    /// The link ends.
    Stop(CloseReason),
    /// Dial now.
    Redial,
}

impl<P: Protocol, D: Dialer> Task<P, D> {
    /// Connects, serves and reconnects until the link is closed or gives up. Returns the reason.
    fn run(mut self) -> impl Future<Output = CloseReason> {
        let span = connection_span(Side::Client, P::SYSTEM);
        // Not an `async fn`, which would hold all of `self` a second time.
        let work = async move {
            loop {
                if let Some(state) = self.line().await {
                    return self.end(state);
                }
            }
        };
        work.instrument(span)
    }

    /// Runs one connection, from its dial to the wait before the next one. Returns the final state
    /// if there is no next one.
    async fn line(&mut self) -> Option<LinkState> {
        self.front.set_state(LinkState::Connecting {
            attempt: self.attempt,
        });
        let (reason, after) = match self.connect().await {
            Offline::Stop(reason) => return Some(LinkState::Closed { reason }),
            Offline::Redial => return None,
            Offline::Done(Err(error)) => (CloseReason::from(&error), After::Retry),
            Offline::Done(Ok(driver)) => {
                let served = self.serve(driver).await;
                if self.reconnector.is_none() {
                    return Some(LinkState::Closed { reason: served.0 });
                }
                served
            }
        };
        let now = time::now();
        let (at, exhausted) = match (after, &mut self.reconnector) {
            (After::Stop, _) => return Some(LinkState::Closed { reason }),
            (After::Retry, None) => return Some(LinkState::GaveUp { cause: reason }),
            (After::Redial, _) => (None, false),
            (After::Retry, Some(reconnector)) => {
                let entropy = (self.front.shared.config.entropy)();
                match reconnector.on_lost(reason.retry(), now, entropy) {
                    None => return Some(LinkState::GaveUp { cause: reason }),
                    Some(dial) => (Some(dial.at), dial.starts_new_cycle()),
                }
            }
        };
        self.front.set_state(LinkState::Lost {
            cause: reason,
            retry_in: at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now)),
            exhausted,
        });
        let at = at?;
        self.attempt = self.attempt.saturating_add(1);
        let pause = Box::pin(time::sleep_until(at));
        match self.front.offline(pause).await {
            Offline::Stop(reason) => Some(LinkState::Closed { reason }),
            Offline::Done(()) | Offline::Redial => None,
        }
    }

    /// Dials, and creates a driver with a fresh machine.
    async fn connect(&mut self) -> Offline<Result<LineDriver<P, D>, DialError>> {
        let after = self.front.shared.config.connect_timeout;
        // In boxes, this and the pause between two lines: the task's future would keep their places
        // while the line is up.
        let mut dial = Box::pin(async {
            match time::timeout(after, self.dialer.dial()).await {
                Ok(dialled) => dialled,
                Err(_) => Err(DialError::TimedOut { after }),
            }
        });
        let dialled = loop {
            match self.front.offline(dial.as_mut()).await {
                // It is being done already.
                Offline::Redial => {}
                Offline::Stop(reason) => return Offline::Stop(reason),
                Offline::Done(dialled) => break dialled,
            }
        };
        drop(dial);
        Offline::Done(dialled.map(|transport| {
            let node = self.dialer.node();
            let peer = node.as_ref().map(Node::address);
            if let Some(node) = &node {
                tracing::debug!(%node, "connected");
            }
            self.front.shared.state.set_node(node);
            let config = &self.front.shared.config;
            let machine = self.protocol.open(time::now(), (config.entropy)());
            let (driver, generation) = (&config.driver, self.generation + 1);
            Box::new(Driver::for_client::<P>(
                machine, transport, driver, peer, generation,
            ))
        }))
    }

    /// Serves one connection. Returns why it ended and what follows.
    async fn serve(&mut self, driver: LineDriver<P, D>) -> (CloseReason, After) {
        let reconnector = &mut self.reconnector;
        if let Some(reconnector) = reconnector {
            reconnector.on_open();
        }
        let mut session = Session::new(driver, &mut self.protocol, &mut self.front);
        let generation = self.generation + 1;
        let reason = poll_fn(|cx| {
            let was_ready = session.is_ready();
            let polled = session.poll(cx, generation);
            if let Some(reconnector) = reconnector
                && session.is_ready()
                && !was_ready
            {
                reconnector.on_ready();
            }
            polled
        })
        .await;
        let (ready, after) = session.end(&reason);
        if ready {
            self.generation = generation;
            self.attempt = 0;
        }
        (reason, after)
    }

    /// Sets the final state.
    fn end(mut self, state: LinkState) -> CloseReason {
        let reason = state.ended().cloned().unwrap_or(CloseReason::TaskGone);
        // First, so that whoever finds the queue closed finds the reason too.
        self.front.set_state(state);
        // What was on its way here was never sent.
        for command in self.front.close() {
            command.refuse(Refused::Closed);
        }
        reason
    }
}

/// Marks the link closed however the task ends, also by a panic.
impl<P: Protocol> Drop for Front<P> {
    fn drop(&mut self) {
        if self.shared.state.get().ended().is_none() {
            let reason = CloseReason::TaskGone;
            self.set_state(LinkState::Closed { reason });
        }
        drop(self.close());
        self.shared.events.end();
    }
}

impl<P: Protocol> Front<P> {
    pub(super) fn set_state(&self, state: LinkState) {
        let node = self.shared.state.node().map(tracing::field::display);
        match &state {
            // Not what the application asked for.
            LinkState::Lost {
                cause, retry_in, ..
            } if !retry_in.is_zero() => {
                // The peer may have chosen the words.
                let cause = cause.to_string();
                tracing::warn!(
                    ?cause,
                    ?retry_in,
                    node,
                    "the connection was lost, or could not be made"
                );
            }
            LinkState::GaveUp { cause } => {
                let cause = cause.to_string();
                tracing::warn!(
                    ?cause,
                    node,
                    "there is no connection, and no further attempt"
                );
            }
            state => tracing::debug!(?state, node, "link"),
        }
        self.shared.events.notice(LinkEvent::State(state.clone()));
        self.shared.state.set(state);
    }

    /// Closes the queue and returns the commands that were not run.
    fn close(&mut self) -> impl Iterator<Item = Command<P>> + use<P> {
        let left = [
            std::mem::take(&mut self.commands),
            self.shared.inbox.close(),
        ];
        let all = |mut commands: Backlog<_>| std::iter::from_fn(move || commands.pop_front());
        left.into_iter().flat_map(all)
    }

    /// Waits for `work` without a connection: refuses commands and handles orders.
    async fn offline<F: Future>(&mut self, work: F) -> Offline<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let found = self.shared.inbox.poll_take(cx, &mut self.commands);
            let orders = found.orders.unwrap_or_default();
            if orders.drain.is_some() {
                return Poll::Ready(Offline::Stop(CloseReason::Drained));
            }
            if orders.close.is_some() {
                return Poll::Ready(Offline::Stop(CloseReason::Local));
            }
            if orders.redial.is_some() {
                return Poll::Ready(Offline::Redial);
            }
            let refused = self.commands.len();
            while let Some(command) = self.commands.pop_front() {
                command.refuse(Refused::NotConnected);
            }
            self.shared.inbox.make_room(refused);
            if found.orphaned {
                return Poll::Ready(Offline::Stop(CloseReason::Local));
            }
            work.as_mut().poll(cx).map(Offline::Done)
        })
        .await
    }
}
