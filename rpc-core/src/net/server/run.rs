//! [`Server`]: the accept loop, the count of connections, and the drain.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::config::ServerConfig;
use super::connection::{Accepted, refuse, serve};
use super::shutdown::{Drain, DrainReport, ShutdownHandle};
use crate::net::{Cancellation, Canceller};

/// How long accepting pauses after the system refused it (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Most peers over the limits that are told so at once; further ones are hung up on.
const MAX_REFUSALS: usize = 64;

/// A server that listens, and serves once [`run`](Self::run) is polled.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local: SocketAddr,
    shared: Arc<Shared>,
    canceller: Canceller,
    drain: Drain,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ServerConfig,
    pub(super) cancellation: Cancellation,
    pub(super) counters: Arc<Counters>,
}

/// What a server has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    open: AtomicUsize,
    upgraded: AtomicU64,
    rejected: AtomicU64,
    over_limit: AtomicU64,
    panicked: AtomicU64,
}

impl Counters {
    /// Connections that are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that were upgraded to WebSocket.
    #[must_use]
    pub fn upgraded(&self) -> u64 {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Requests that a guard, the upgrade hook or the handshake refused.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Connections that were refused because there were too many.
    #[must_use]
    pub fn over_limit(&self) -> u64 {
        self.over_limit.load(Ordering::Relaxed)
    }

    /// Connections that ended because a handler or hook panicked.
    #[must_use]
    pub fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(super) fn count_upgraded(&self) {
        self.upgraded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

impl Server {
    /// Listens on an address. Port 0 takes a free one; see [`local_addr`](Self::local_addr).
    ///
    /// # Errors
    /// What the system says. Retrying helps once the address is free.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::from_listener(TcpListener::bind(address).await?, config)
    }

    /// Takes a listener that was made elsewhere (socket activation, special options).
    ///
    /// # Errors
    /// If the listener has no local address.
    pub fn from_listener(listener: TcpListener, mut config: ServerConfig) -> io::Result<Self> {
        let local = listener.local_addr()?;
        config.guards = config.guards.for_bind(local);
        let (canceller, cancellation) = Cancellation::new();
        let shared = Arc::new(Shared {
            config,
            cancellation,
            counters: Arc::default(),
        });
        Ok(Self {
            listener,
            local,
            shared,
            canceller,
            drain: Drain::new(),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A handle that ends the server.
    #[must_use]
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.drain.handle()
    }

    /// The server's counters; they go on counting while it runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Serves until a [`ShutdownHandle`] drains it. `handler` is called once per upgraded
    /// connection, and its future runs in a task of its own; a panic in it ends that connection
    /// only. Needs a runtime with I/O and time enabled.
    ///
    /// # Cancel safety
    /// Dropping the future stops accepting and cuts all connections.
    pub async fn run<H, F>(self, handler: H) -> DrainReport
    where
        H: Fn(Accepted) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Self {
            listener,
            shared,
            canceller,
            mut drain,
            ..
        } = self;
        let handler = Arc::new(handler);
        let mut slots = Slots::new(&shared);
        let mut connections = JoinSet::new();
        let mut refusals = JoinSet::new();
        let mut paused_until: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = drain.requested() => break,
                Some(ended) = connections.join_next() => note_end(&shared, ended),
                Some(_) = refusals.join_next() => {}
                () = sleep_until(paused_until.unwrap_or_else(Instant::now)),
                    if paused_until.is_some() => paused_until = None,
                accepted = listener.accept(), if paused_until.is_none() => match accepted {
                    Ok((tcp, peer)) => match slots.take(peer.ip()) {
                        Ok(slot) => {
                            let (shared, handler) = (Arc::clone(&shared), Arc::clone(&handler));
                            connections.spawn(serve(slot, shared, handler, tcp, peer));
                        }
                        Err(full) => {
                            tracing::debug!(%peer, ?full, "too many connections");
                            if refusals.len() < MAX_REFUSALS && can_say_no(&shared) {
                                refusals.spawn(refuse(tcp, full.status_line()));
                            }
                        }
                    },
                    Err(error) if is_peers_fault(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "accepting failed; a short pause follows");
                        paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                },
            }
        }
        drop((listener, refusals));
        canceller.cancel();
        let report = finish(&shared, &mut drain, connections).await;
        drain.report(report);
        report
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

/// A peer that expects TLS cannot read a plain answer.
#[cfg(feature = "tls")]
fn can_say_no(shared: &Shared) -> bool {
    shared.config.tls.is_none()
}

#[cfg(not(feature = "tls"))]
const fn can_say_no(_: &Shared) -> bool {
    true
}

fn is_peers_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

type PerAddress = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// Counts connections, in all and per address.
struct Slots {
    counters: Arc<Counters>,
    max: usize,
    max_per_ip: Option<usize>,
    /// Empty without a limit per address.
    per_ip: PerAddress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Server,
    Address,
}

impl Full {
    const fn status_line(self) -> &'static str {
        match self {
            Self::Server => "503 Service Unavailable",
            Self::Address => "429 Too Many Requests",
        }
    }
}

impl Slots {
    fn new(shared: &Shared) -> Self {
        Self {
            counters: Arc::clone(&shared.counters),
            max: shared.config.limits.max_connections,
            max_per_ip: shared.config.limits.max_connections_per_ip,
            per_ip: Arc::default(),
        }
    }

    fn take(&mut self, address: IpAddr) -> Result<Slot, Full> {
        let refuse = |full| {
            self.counters.over_limit.fetch_add(1, Ordering::Relaxed);
            Err(full)
        };
        if self.counters.open() >= self.max {
            return refuse(Full::Server);
        }
        let mut per_ip = None;
        if let Some(max) = self.max_per_ip {
            let address = address.to_canonical();
            let mut counts = self.per_ip.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.get(&address).copied().unwrap_or_default();
            if count >= max {
                return refuse(Full::Address);
            }
            counts.insert(address, count + 1);
            per_ip = Some((Arc::clone(&self.per_ip), address));
        }
        self.counters.open.fetch_add(1, Ordering::Relaxed);
        Ok(Slot {
            counters: Arc::clone(&self.counters),
            per_ip,
        })
    }
}

/// A connection that counts until it is dropped.
pub(super) struct Slot {
    counters: Arc<Counters>,
    per_ip: Option<(PerAddress, IpAddr)>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
        if let Some((counts, address)) = &self.per_ip {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = counts.get_mut(address) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(address);
                }
            }
        }
    }
}
