//! [`AcceptLoop`]: what a server accepts, runs and drains.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::config::HttpConfig;
use super::connection::{Accepted, Arrival, Handler, open, refuse, serve};
use super::listener::Listener;
use super::permits::{Counters, Slots};
use super::service::{Service, UNKNOWN};
use super::shutdown::Drain;
use crate::net::ws::ReceiveBudget;
use crate::net::{Cancellation, Canceller, DrainReport};
use crate::sync::Mutex;

/// How long accepting pauses after the system refused it (no file descriptors left), unless a
/// connection ends first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Most refusals that are being sent at once. A further one replaces the oldest.
const MAX_REFUSALS: usize = 256;

/// A server without its protocol: listens or is mounted, and serves once [`run`](Self::run) is polled.
#[derive(Debug)]
pub(super) struct AcceptLoop {
    /// `None` if the server is mounted.
    listener: Option<Listener>,
    /// From the [`Service`] and the handles.
    arrivals: UnboundedReceiver<Arrival>,
    pub(super) local: SocketAddr,
    pub(super) shared: Arc<Shared>,
    canceller: Canceller,
    pub(super) drain: Drain,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    pub(super) cancellation: Cancellation,
    pub(super) counters: Arc<Counters>,
    pub(super) receiving: Arc<ReceiveBudget>,
}

impl AcceptLoop {
    pub(super) async fn bind(
        address: impl ToSocketAddrs,
        mut config: HttpConfig,
    ) -> io::Result<Self> {
        let listener = match config.listener.take() {
            Some(listener) => Listener::from_std(listener.try_clone()?)?,
            None => Listener::bind(address).await?,
        };
        let local = listener.local_addr()?;
        config.guards = config.guards.for_bind(local);
        config.limits = config.limits.for_bind(local, config.guards.peers);
        Ok(Self::new(Some(listener), local, config))
    }

    pub(super) fn mount(config: HttpConfig) -> (Self, Service) {
        let server = Self::new(None, UNKNOWN, config);
        let shared = Arc::clone(&server.shared);
        let slots = Slots::new(&shared.counters, &shared.config.limits);
        let service = Service {
            slots: Arc::new(Mutex::new(slots)),
            shared,
            arrivals: server.drain.handle().arrivals,
        };
        (server, service)
    }

    fn new(listener: Option<Listener>, local: SocketAddr, config: HttpConfig) -> Self {
        let (canceller, cancellation) = Cancellation::new();
        let (sender, arrivals) = unbounded_channel();
        let drain = Drain::new(sender, cancellation.clone());
        let receiving = Arc::new(ReceiveBudget::new(config.limits.max_receiving));
        let shared = Arc::new(Shared {
            config,
            receiving,
            cancellation,
            counters: Arc::default(),
        });
        Self {
            listener,
            arrivals,
            local,
            shared,
            canceller,
            drain,
        }
    }

    /// Calls `handler` once per connection and runs its future in a task of its own, until the server is
    /// drained.
    pub(super) async fn run<F: Future<Output = ()> + Send + 'static>(
        self,
        handler: impl Fn(Accepted) -> F + Send + Sync + 'static,
    ) -> DrainReport {
        let Self {
            listener,
            mut arrivals,
            shared,
            canceller,
            mut drain,
            ..
        } = self;
        let handler: Arc<Handler> = Arc::new(move |accepted| Box::pin(handler(accepted)));
        let mut slots = Slots::new(&shared.counters, &shared.config.limits);
        let mut connections = JoinSet::new();
        let (mut refusals, mut sent) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
        let mut paused_until: Option<Instant> = None;
        let mut was_exhausted = false;
        loop {
            tokio::select! {
                biased;
                () = drain.requested() => break,
                Some(ended) = connections.join_next() => {
                    note_end(&shared, ended);
                    paused_until = None;
                }
                Some(_) = refusals.join_next() => {}
                () = sleep_until(paused_until.unwrap_or_else(Instant::now)),
                    if paused_until.is_some() => paused_until = None,
                Some(arrival) = arrivals.recv() => {
                    connections.spawn(serve(arrival, Arc::clone(&handler)));
                }
                accepted = accept(listener.as_ref()), if paused_until.is_none() => match accepted {
                    Ok((tcp, peer)) => match slots.take(peer, &shared.config.guards) {
                        Ok((opening, evicted)) => {
                            let arrival = open(Arc::clone(&shared), tcp, peer, opening, evicted);
                            connections.spawn(serve(Box::pin(arrival), Arc::clone(&handler)));
                        }
                        Err(refusal) => {
                            tracing::debug!(%peer, why = refusal.answer().1, "connection refused");
                            // A peer that expects TLS cannot read a plain reply.
                            if !shared.config.is_tls() {
                                if sent.len() == MAX_REFUSALS {
                                    sent.retain(|refusal| !refusal.is_finished());
                                }
                                if sent.len() == MAX_REFUSALS {
                                    hang_up(&mut sent);
                                }
                                sent.push_back(refusals.spawn(refuse(tcp, refusal)));
                            }
                        }
                    },
                    Err(error) if is_peers_fault(&error) => {}
                    Err(error) => {
                        // No file descriptors are left: EMFILE, ENFILE, and WSAEMFILE on Windows.
                        let is_exhausted = matches!(error.raw_os_error(), Some(23 | 24 | 10_024));
                        let room = is_exhausted && (hang_up(&mut sent) || slots.evict(|_| true));
                        if !room || !std::mem::replace(&mut was_exhausted, true) {
                            tracing::warn!(%error, room, "accepting failed; a short pause follows");
                        }
                        paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                },
            }
        }
        drop((listener, refusals));
        canceller.cancel();
        // Who is upgraded already is told goodbye.
        arrivals.close();
        while let Ok(arrival) = arrivals.try_recv() {
            connections.spawn(serve(arrival, Arc::clone(&handler)));
        }
        let report = finish(&shared, &mut drain, connections).await;
        drain.report(report);
        report
    }
}

/// Accepts the next connection; waits forever without a listener.
async fn accept(listener: Option<&Listener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn finish(shared: &Shared, drain: &mut Drain, mut connections: JoinSet<()>) -> DrainReport {
    let mut report = DrainReport::default();
    while !connections.is_empty() {
        tokio::select! {
            biased;
            Some(ended) = connections.join_next() => {
                note_end(shared, ended);
                report.finished += 1;
            }
            () = drain.deadline() => break,
        }
    }
    connections.abort_all();
    while let Some(ended) = connections.join_next().await {
        // One may have ended between the deadline and the abort.
        match &ended {
            Err(error) if error.is_cancelled() => report.aborted += 1,
            _ => report.finished += 1,
        }
        note_end(shared, ended);
    }
    report
}

fn note_end(shared: &Shared, ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        shared.counters.panicked.fetch_add(1, Ordering::Relaxed);
        tracing::error!("a connection ended because its handler panicked");
    }
}

/// Disconnects the peer whose refusal is oldest; returns `false` if none is left.
fn hang_up(sent: &mut VecDeque<AbortHandle>) -> bool {
    let mut live = std::iter::from_fn(|| sent.pop_front()).filter(|refusal| !refusal.is_finished());
    live.next().inspect(AbortHandle::abort).is_some()
}

fn is_peers_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
