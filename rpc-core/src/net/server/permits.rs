//! The number of connections, and their permits: [`Counters`], [`Slots`], [`Permit`].

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, pending, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

use http::StatusCode;
use tokio::sync::oneshot;

use super::config::ServerLimits;
use super::guards::Guards;
use super::service::UNKNOWN;
use crate::machine::Machine;
use crate::message::CloseFrame;
use crate::net::ws::WakeFlag;
use crate::net::{Cancellation, Handle};
use crate::sync::Mutex;

/// Counters of a running server.
#[derive(Debug, Default)]
pub struct Counters {
    open: AtomicUsize,
    websockets: AtomicUsize,
    pub(super) upgraded: AtomicU64,
    rejected: AtomicU64,
    over_limit: AtomicU64,
    pub(super) panicked: AtomicU64,
}

impl Counters {
    /// Returns the number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of open WebSockets.
    #[must_use]
    pub fn websockets(&self) -> usize {
        self.websockets.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that were upgraded to WebSocket.
    #[must_use]
    pub fn upgraded(&self) -> u64 {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Returns the number of peers and requests that a guard, the upgrade hook or the handshake
    /// refused.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Returns the number of connections and upgrades that were refused, or had to make room, at a
    /// limit.
    #[must_use]
    pub fn over_limit(&self) -> u64 {
        self.over_limit.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that ended because a handler or hook panicked.
    #[must_use]
    pub fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(super) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    fn count_over_limit(&self) {
        self.over_limit.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many connections each address has, and may have.
#[derive(Debug)]
struct PerAddress {
    max: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// Connections whose request is not complete or is answered, or that have yet to log in, oldest first.
type Openings = Arc<Mutex<BTreeMap<u64, Waiting>>>;

/// Counts connections, in total and per address. At a limit the oldest connection that has not
/// finished its request makes room for the next one.
#[derive(Debug)]
pub(super) struct Slots {
    counters: Arc<Counters>,
    max: usize,
    /// `None` without a limit per address.
    per_ip: Option<Arc<PerAddress>>,
    openings: Openings,
    next: u64,
}

/// A connection that counts and can be ended to make room.
#[derive(Debug)]
struct Waiting {
    slot: Slot,
    /// The place among the WebSockets, of one that has yet to log in.
    place: Option<Weak<PermitInner>>,
    evict: oneshot::Sender<()>,
}

/// Why a connection is not served, decided before anything was read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Peer(StatusCode, &'static str),
    ServerFull,
    AddressFull,
    /// There are too many WebSockets.
    NoPlace,
}

impl Refusal {
    /// Returns the HTTP status to answer with, and the reason.
    pub(super) const fn answer(self) -> (StatusCode, &'static str) {
        const FULL: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        match self {
            Self::Peer(status, why) => (status, why),
            Self::ServerFull => (FULL, "there are too many connections"),
            Self::AddressFull => (FULL, "there are too many connections from this address"),
            Self::NoPlace => (FULL, "Service Unavailable: Max connections reached"),
        }
    }
}

impl Slots {
    pub(super) fn new(counters: &Arc<Counters>, limits: &ServerLimits) -> Self {
        Self {
            counters: Arc::clone(counters),
            max: limits.max_connections,
            per_ip: limits.max_connections_per_ip.map(|max| {
                let open = Mutex::default();
                Arc::new(PerAddress { max, open })
            }),
            openings: Arc::default(),
            next: 0,
        }
    }

    /// Takes a slot. A peer that is not served takes none, and is refused even if all are taken. An
    /// unspecified address counts in total only.
    pub(super) fn take(
        &mut self,
        peer: SocketAddr,
        guards: &Guards,
    ) -> Result<(Opening, Evicted), Refusal> {
        if let Err((status, why)) = guards.check_peer(peer) {
            self.counters.count_rejected();
            return Err(Refusal::Peer(status, why));
        }
        self.take_served(peer.ip().to_canonical())
            .inspect_err(|_| self.counters.count_over_limit())
    }

    fn take_served(&mut self, address: IpAddr) -> Result<(Opening, Evicted), Refusal> {
        self.counters.open.fetch_add(1, Ordering::Relaxed);
        let mut slot = Slot {
            counters: Arc::clone(&self.counters),
            per_ip: self.per_ip.clone(),
            address: UNKNOWN.ip(),
        };
        slot.count_for(address, &self.openings)?;
        if self.counters.open() > self.max
            // Whoever opens many makes room for itself first.
            && !self.evict(|slot| slot.is_from(address))
            && !self.evict(|_| true)
        {
            return Err(Refusal::ServerFull);
        }
        let opening = Opening {
            number: self.next,
            openings: Arc::clone(&self.openings),
            slot: Mutex::new(Some(slot)),
        };
        self.next += 1;
        let evicted = opening.reopen(None).ok_or(Refusal::ServerFull)?;
        Ok((opening, evicted))
    }

    /// Ends the oldest connection of this kind without a finished request; returns `false` if there
    /// is none.
    pub(super) fn evict(&self, whose: impl Fn(&Slot) -> bool) -> bool {
        evict(&self.openings, &self.counters, |waiting| {
            whose(&waiting.slot)
        })
    }
}

/// Ends the oldest connection of this kind; returns `false` if there is none.
fn evict(openings: &Openings, counters: &Counters, of_kind: impl Fn(&Waiting) -> bool) -> bool {
    let mut openings = openings.lock();
    let oldest = openings.iter().find(|(_, waiting)| of_kind(waiting));
    let oldest = oldest.map(|(number, _)| *number);
    let Some(waiting) = oldest.and_then(|number| openings.remove(&number)) else {
        return false;
    };
    counters.count_over_limit();
    if let Some(place) = waiting.place.and_then(|place| place.upgrade()) {
        Permit(place).release();
    }
    let _ = waiting.evict.send(());
    true
}

/// The connection's side of a [`Slot`]. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Opening {
    number: u64,
    openings: Openings,
    /// The slot, until the connection takes it.
    slot: Mutex<Option<Slot>>,
}

impl Opening {
    /// Notes that the request is complete, so that the connection keeps its slot. Returns `false`
    /// if it had to make room already.
    pub(super) fn finish(&self) -> bool {
        let mut slot = self.slot.lock();
        if let Some(waiting) = self.openings.lock().remove(&self.number) {
            *slot = Some(waiting.slot);
        }
        slot.is_some()
    }

    /// Lets a [finished](Self::finish) connection count for another address, that of the client whom a server
    /// passes on.
    pub(super) fn count_for(&self, address: IpAddr) -> Result<(), Refusal> {
        let mut slot = self.slot.lock();
        let slot = slot.as_mut().ok_or(Refusal::ServerFull)?;
        slot.count_for(address, &self.openings)
            .inspect_err(|_| slot.counters.count_over_limit())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.slot.lock().is_some()
    }

    /// Notes that the connection makes room again if needed, until it is [finished](Self::finish)
    /// again: its request is answered, or it is a WebSocket that has yet to log in. `None` if its
    /// request never was complete, or it had to make room already.
    pub(super) fn reopen(&self, permit: Option<&Permit>) -> Option<Evicted> {
        let place = permit.map(|permit| Arc::downgrade(&permit.0));
        let slot = self.take_slot()?;
        let (evict, evicted) = oneshot::channel();
        let waiting = Waiting { slot, place, evict };
        self.openings.lock().insert(self.number, waiting);
        Some(Evicted(evicted))
    }

    /// Ends the oldest WebSocket that has yet to log in, preferably one of the same address.
    pub(super) fn make_place(&self, counters: &Counters) -> bool {
        let has_place = |waiting: &Waiting| waiting.place.is_some();
        let slot = self.slot.lock();
        let own = slot.as_ref().map(|slot| slot.address);
        let is_its_own = |slot: &Slot| own.is_some_and(|own| slot.is_from(own));
        evict(&self.openings, counters, |it| {
            has_place(it) && is_its_own(&it.slot)
        }) || evict(&self.openings, counters, has_place)
    }

    /// Takes the slot of a connection that is [finished](Self::finish).
    pub(super) fn take_slot(&self) -> Option<Slot> {
        self.slot.lock().take()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.openings.lock().remove(&self.number);
    }
}

/// Tells a connection that it has to make room.
pub(super) struct Evicted(oneshot::Receiver<()>);

impl Evicted {
    /// Waits for the order to make room; forever if the connection keeps its slot.
    pub(super) async fn wait(self) {
        if self.0.await.is_err() {
            pending::<()>().await;
        }
    }
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    counters: Arc<Counters>,
    per_ip: Option<Arc<PerAddress>>,
    address: IpAddr,
}

impl Slot {
    fn is_from(&self, address: IpAddr) -> bool {
        self.per_ip.is_some() && self.address == address && !address.is_unspecified()
    }

    /// Counts for another address from now on, of which an older connection makes room if needed.
    fn count_for(&mut self, address: IpAddr, openings: &Openings) -> Result<(), Refusal> {
        let is_its_own = |it: &Waiting| it.slot.is_from(address);
        let has_room = self.move_to(address)
            || evict(openings, &self.counters, is_its_own) && self.move_to(address);
        has_room.then_some(()).ok_or(Refusal::AddressFull)
    }

    fn move_to(&mut self, address: IpAddr) -> bool {
        if let Some(per_ip) = self.per_ip.as_ref().filter(|_| self.address != address) {
            if !per_ip.add(address) {
                return false;
            }
            per_ip.subtract(self.address);
        }
        self.address = address;
        true
    }
}

impl PerAddress {
    /// Counts a connection, if there is room. An unspecified address has no limit.
    fn add(&self, address: IpAddr) -> bool {
        if address.is_unspecified() {
            return true;
        }
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        let has_room = *count < self.max;
        *count += usize::from(has_room);
        has_room
    }

    fn subtract(&self, address: IpAddr) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(per_ip) = &self.per_ip {
            per_ip.subtract(self.address);
        }
    }
}

/// The place of a WebSocket among [`max_websockets`](ServerLimits::max_websockets). It counts until
/// the handler's future ends, or until it is [released](Self::release). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Permit(Arc<PermitInner>);

#[derive(Debug)]
struct PermitInner {
    counters: Arc<Counters>,
    given_up: AtomicBool,
    opening: OnceLock<Arc<Opening>>,
    /// Most bytes of a message that the peer may send at present.
    max_message: Arc<AtomicUsize>,
    max_before_login: usize,
}

impl Permit {
    /// Takes a place; `None` if all are taken. Upgrades run concurrently, so checking and
    /// counting are one step.
    pub(super) fn take(counters: &Arc<Counters>, limits: &ServerLimits) -> Option<Self> {
        let max = limits.max_websockets.unwrap_or(usize::MAX);
        let open = &counters.websockets;
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < max).then(|| open + 1)
        });
        if taken.is_err() {
            counters.count_over_limit();
            return None;
        }
        Some(Self(Arc::new(PermitInner {
            counters: Arc::clone(counters),
            given_up: AtomicBool::new(false),
            opening: OnceLock::new(),
            max_message: Arc::new(AtomicUsize::new(usize::MAX)),
            max_before_login: limits.max_before_login,
        })))
    }

    pub(super) fn max_message(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0.max_message)
    }

    /// Notes that the peer has logged in, here or at another server. Returns `false` if the connection had to
    /// make room before.
    pub fn logged_in(&self) -> bool {
        self.0.max_message.store(usize::MAX, Ordering::Relaxed);
        self.0.opening.get().is_none_or(|opening| opening.finish())
    }

    pub(super) fn for_connection(self, opening: Arc<Opening>) -> Self {
        self.0.opening.get_or_init(|| opening);
        self
    }

    /// Frees place and slot: the handler has ended.
    pub(super) fn end(self) {
        self.release();
        if let Some(opening) = self.0.opening.get() {
            opening.finish();
            drop(opening.take_slot());
        }
    }

    /// Frees the place for another WebSocket before the handler ends: for a handler that reports to
    /// others that its client has left. A second call is a no-op.
    pub fn release(&self) {
        if !self.0.given_up.swap(true, Ordering::Relaxed) {
            self.0.counters.websockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the shutdown signal for [`serve`](crate::net::serve()), given by `cancellation`. As it is
/// polled in every turn of the connection, it also makes room for others while the peer has not
/// logged in.
pub(super) fn until_login<M: Machine + Send + 'static>(
    permit: Option<&Permit>,
    handle: &Handle<M>,
    is_logged_in: fn(&M) -> bool,
    cancellation: Cancellation,
) -> impl Future<Output = ()> + Send + use<M> {
    let permit = permit.cloned();
    let opening = permit.as_ref().and_then(|it| it.0.opening.get());
    let evicted = opening.and_then(|it| it.reopen(permit.as_ref()));
    if let Some(permit) = &permit {
        let before_login = permit.0.max_before_login;
        permit.0.max_message.store(before_login, Ordering::Relaxed);
    }
    let mut evicted = evicted.map(|evicted| Box::pin(evicted.wait()));
    let (handle, mut cancelled) = (handle.clone(), Box::pin(cancellation.into_cancelled()));
    let flag = Arc::<WakeFlag>::default();
    let waker = Arc::clone(&flag).into();
    poll_fn(move |cx| {
        if let Some(order) = &mut evicted {
            if handle.read(is_logged_in) {
                permit.as_ref().map(Permit::logged_in);
                evicted = None;
            } else if order.as_mut().poll(cx).is_ready() {
                evicted = None;
                let why = Refusal::ServerFull.answer().1;
                handle.close_with(CloseFrame::new(CloseFrame::TRY_AGAIN, why));
            }
        }
        if !flag.take(cx) {
            return Poll::Pending;
        }
        cancelled.as_mut().poll(&mut Context::from_waker(&waker))
    })
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        if !*self.given_up.get_mut() {
            self.counters.websockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
