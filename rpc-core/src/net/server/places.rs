//! How many connections there are, and who gets a place: [`Counters`], [`Slots`], [`Place`].

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;

use super::config::ServerLimits;
use super::guards::{GuardRejection, Guards};

/// What a server has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    open: AtomicUsize,
    websockets: AtomicUsize,
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

    /// WebSockets that are open now.
    #[must_use]
    pub fn websockets(&self) -> usize {
        self.websockets.load(Ordering::Relaxed)
    }

    /// Connections that were upgraded to WebSocket.
    #[must_use]
    pub fn upgraded(&self) -> u64 {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Peers and requests that a guard, the upgrade hook or the handshake refused.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Connections and upgrades that were refused because there were too many.
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

    pub(super) fn count_panicked(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    fn count_over_limit(&self) {
        self.over_limit.fetch_add(1, Ordering::Relaxed);
    }
}

type PerAddress = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// Counts connections, in all and per address.
pub(super) struct Slots {
    counters: Arc<Counters>,
    max: usize,
    max_per_ip: Option<usize>,
    /// Empty without a limit per address.
    per_ip: PerAddress,
}

/// Why a connection is not served, before anything was read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Peer(GuardRejection),
    ServerFull,
    AddressFull,
}

impl Refusal {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Peer(rejection) => rejection.status,
            Self::ServerFull => StatusCode::SERVICE_UNAVAILABLE,
            Self::AddressFull => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::Peer(rejection) => rejection.why,
            Self::ServerFull => "there are too many connections",
            Self::AddressFull => "there are too many connections from this address",
        }
    }
}

impl Slots {
    pub(super) fn new(counters: &Arc<Counters>, limits: &ServerLimits) -> Self {
        Self {
            counters: Arc::clone(counters),
            max: limits.max_connections,
            max_per_ip: limits.max_connections_per_ip,
            per_ip: Arc::default(),
        }
    }

    /// Whoever is not served at all takes no place, and is told so even if there is none.
    pub(super) fn take(&self, peer: SocketAddr, guards: &Guards) -> Result<Slot, Refusal> {
        if let Err(rejection) = guards.check_peer(peer) {
            self.counters.count_rejected();
            return Err(Refusal::Peer(rejection));
        }
        self.take_served(peer.ip())
            .inspect_err(|_| self.counters.count_over_limit())
    }

    fn take_served(&self, address: IpAddr) -> Result<Slot, Refusal> {
        if self.counters.open() >= self.max {
            return Err(Refusal::ServerFull);
        }
        let mut per_ip = None;
        if let Some(max) = self.max_per_ip {
            let address = address.to_canonical();
            let mut counts = self.per_ip.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.get(&address).copied().unwrap_or_default();
            if count >= max {
                return Err(Refusal::AddressFull);
            }
            counts.insert(address, count + 1);
            per_ip = Some((Arc::clone(&self.per_ip), address));
        }
        // Only the accept loop adds, so nothing came between.
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

/// The place of a WebSocket among [`max_websockets`](ServerLimits::max_websockets). It counts until
/// the handler's future is over, or until it is [given up](Self::give_up). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    counters: Arc<Counters>,
    given_up: AtomicBool,
}

impl Place {
    /// Takes a place; `None` if there are `max` already. Upgrades come at the same time, so counting
    /// and looking are one step.
    pub(super) fn take(counters: &Arc<Counters>, max: Option<usize>) -> Option<Self> {
        let max = max.unwrap_or(usize::MAX);
        let open = &counters.websockets;
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < max).then(|| open + 1)
        });
        if taken.is_err() {
            counters.count_over_limit();
            return None;
        }
        Some(Self(Arc::new(Held {
            counters: Arc::clone(counters),
            given_up: AtomicBool::new(false),
        })))
    }

    /// Lets another WebSocket have the place, before the handler is over: a handler that tells others
    /// that a client has left gives its place up first. Doing it again does nothing.
    pub fn give_up(&self) {
        if !self.0.given_up.swap(true, Ordering::Relaxed) {
            self.0.counters.websockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !*self.given_up.get_mut() {
            self.counters.websockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
