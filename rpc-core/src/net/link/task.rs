//! [`Connection`]: the task that owns the driver, the waiters and the reconnects.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument;

use super::handle::{Link, Shared};
use super::inbox::{Command, Inbox, tidy};
use super::session::{After, Session};
use super::{Events, LinkConfig, LinkEvent, LinkState, Parts, Protocol};
use crate::error::{CloseReason, Refused};
use crate::net::dial::{DialError, Dialer};
use crate::net::driver::{Driver, clock};
use crate::net::observe::Tap;
use crate::net::queue::{self, Producer};
use crate::reconnect::{Dial, Reconnector};

pub(super) fn parts<P: Protocol, D: Dialer>(
    protocol: P,
    dialer: D,
    config: LinkConfig,
) -> Parts<P, D> {
    let (state, watcher) = watch::channel(LinkState::Connecting { attempt: 0 });
    let (producer, events) = queue::queue(config.events.clone());
    let shared = Arc::new(Shared {
        inbox: Inbox::new(config.max_commands),
        state: watcher,
        streams: config.streams.clone(),
        dials_again: !config.reconnect.is_off(),
    });
    let front = Front {
        commands: VecDeque::new(),
        state,
        events: producer,
        shared: Arc::clone(&shared),
    };
    let connection = Connection {
        protocol,
        dialer,
        config,
        front,
        generation: 0,
        attempt: 0,
    };
    (Link::new(shared), Events::new(events), connection)
}

/// The connection itself and all its successors. Spawn [`run`](Self::run).
///
/// Dropping it ends every call with [`CloseReason::TaskGone`].
pub struct Connection<P: Protocol, D: Dialer> {
    protocol: P,
    dialer: D,
    config: LinkConfig,
    front: Front<P>,
    generation: u64,
    attempt: u32,
}

/// What faces the application.
pub(super) struct Front<P: Protocol> {
    /// Taken out of the inbox and not yet carried out.
    pub(super) commands: VecDeque<Command<P>>,
    pub(super) state: watch::Sender<LinkState>,
    pub(super) events: Producer<LinkEvent<P::Event>>,
    pub(super) shared: Arc<Shared<P>>,
}

/// Why an offline wait ended.
enum Offline<T> {
    Done(T),
    /// Stop for good.
    Stop(CloseReason),
    /// Do not wait any longer.
    Redial,
}

impl<P: Protocol, D: Dialer> Connection<P, D> {
    /// Connects, serves, reconnects, until the link is closed or gives up. Returns the reason.
    ///
    /// # Cancel safety
    /// Dropping the future drops the line without a closing handshake; every call ends.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn run(self) -> impl Future<Output = CloseReason> {
        // Not an `async fn`, which would hold all of `self` a second time.
        let span = tracing::debug_span!("link", protocol = std::any::type_name::<P>());
        self.work().instrument(span)
    }

    async fn work(mut self) -> CloseReason {
        let mut reconnector = Reconnector::new(self.config.reconnect);
        let dials_again = self.front.shared.dials_again;
        loop {
            self.set_state(LinkState::Connecting {
                attempt: self.attempt,
            });
            let reason = match self.connect().await {
                Offline::Stop(reason) => return self.end(LinkState::Closed { reason }),
                Offline::Redial => continue,
                Offline::Done(Err(error)) => CloseReason::from(&error),
                Offline::Done(Ok(transport)) => {
                    reconnector.on_open(clock());
                    let (reason, after) = self.serve(transport, &mut reconnector).await;
                    match after {
                        After::Stop => return self.end(LinkState::Closed { reason }),
                        _ if !dials_again => return self.end(LinkState::Closed { reason }),
                        After::Redial => {
                            let retry_in = Duration::ZERO;
                            let exhausted = false;
                            self.set_state(LinkState::Lost {
                                cause: reason,
                                retry_in,
                                exhausted,
                            });
                            continue;
                        }
                        After::Retry => reason,
                    }
                }
            };
            let now = clock();
            let dial = reconnector.on_lost(reason.retry(), now, (self.config.entropy)());
            let (at, exhausted) = match dial {
                Dial::GiveUp => return self.end(LinkState::GaveUp { cause: reason }),
                Dial::Now => (now, false),
                Dial::At { at, .. } => (at, dial.starts_new_cycle()),
            };
            let retry_in = at.saturating_duration_since(now);
            self.set_state(LinkState::Lost {
                cause: reason,
                retry_in,
                exhausted,
            });
            self.attempt = self.attempt.saturating_add(1);
            let pause = tokio::time::sleep_until(at.into());
            if let Offline::Stop(reason) = self.front.offline(pause).await {
                return self.end(LinkState::Closed { reason });
            }
        }
    }

    async fn connect(&mut self) -> Offline<Result<D::Transport, DialError>> {
        let after = self.config.connect_timeout;
        let dial = async {
            match tokio::time::timeout(after, self.dialer.dial()).await {
                Ok(dialled) => dialled,
                Err(_) => Err(DialError::TimedOut { after }),
            }
        };
        let mut dial = pin!(dial);
        loop {
            match self.front.offline(dial.as_mut()).await {
                // It is being done already.
                Offline::Redial => {}
                other => return other,
            }
        }
    }

    /// Serves one connection. Returns why it ended and what follows.
    async fn serve(
        &mut self,
        transport: D::Transport,
        reconnector: &mut Reconnector,
    ) -> (CloseReason, After) {
        let machine = self.protocol.open(clock(), (self.config.entropy)());
        let tap = Tap {
            observer: self.config.observer.clone(),
            redact: P::redact,
        };
        let driver = Driver::with_config(machine, transport, self.config.driver.clone());
        let mut session = Session::new(driver.tapped(tap), &mut self.protocol, &mut self.front);
        let generation = self.generation + 1;
        let reason = poll_fn(|cx| {
            let was_ready = session.is_ready();
            let polled = session.poll(cx, generation);
            if session.is_ready() && !was_ready {
                reconnector.on_ready(clock());
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

    fn set_state(&self, state: LinkState) {
        self.front.set_state(state);
    }

    /// The final state: nothing more comes.
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

/// However the task ends, a panic included, nobody is left to believe that it goes on.
impl<P: Protocol> Drop for Front<P> {
    fn drop(&mut self) {
        let ended = self.state.borrow().ended().is_some();
        if !ended {
            let reason = CloseReason::TaskGone;
            self.set_state(LinkState::Closed { reason });
        }
        drop(self.close());
    }
}

impl<P: Protocol> Front<P> {
    pub(super) fn set_state(&self, state: LinkState) {
        tracing::debug!(?state, "link");
        self.events.notice(LinkEvent::State(state.clone()));
        self.state.send_replace(state);
    }

    /// Takes no more commands; those that were not carried out.
    fn close(&mut self) -> impl Iterator<Item = Command<P>> + use<P> {
        let mut left = std::mem::take(&mut self.commands);
        left.append(&mut self.shared.inbox.close());
        left.into_iter()
    }

    /// Waits for `work` without a connection: commands are refused, orders are heard.
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
            for command in self.commands.drain(..) {
                command.refuse(Refused::NotConnected);
            }
            tidy(&mut self.commands);
            self.shared.inbox.make_room(refused);
            if found.orphaned {
                return Poll::Ready(Offline::Stop(CloseReason::Local));
            }
            work.as_mut().poll(cx).map(Offline::Done)
        })
        .await
    }
}

impl<P: Protocol, D: Dialer> fmt::Debug for Connection<P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("state", &*self.front.state.borrow())
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
