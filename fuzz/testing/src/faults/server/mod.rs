//! Faults that every server has to survive, as functions for any [`ServerUnderTest`].
//!
//! Each starts a server with the deadlines that the fault is about, lets a peer misbehave, and looks
//! at three things besides what is promised to that peer: a healthy client that was there before goes
//! on being served meanwhile, another one is served afterwards, and of the peer nothing stays behind.
//! They panic with what did not hold.

mod end;
mod frames;
mod line;
mod opening;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Counters, HttpConfig, ProtocolServer, ServerHandle, ServerProtocol};
use tokio::time::{Instant, sleep, timeout_at};

use super::breach::Breach;
use super::list::{self, Promise};
use super::{End, PATIENCE, RawFrame, RawPeer, broken, check, must, soon};

/// For deadlines that have to pass.
const SHORT: Duration = Duration::from_millis(200);

/// The deadlines and bounds that a server is started with. By default none of the deadlines passes
/// within a test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Terms {
    /// How long a peer may take to send its request.
    pub header: Duration,
    /// How long an upgraded peer may take to become a client.
    pub opening: Duration,
    /// Pings, and when silence counts as death.
    pub keep_alive: KeepAlive,
    /// How long a peer may take nothing of what is written to it.
    pub write: Duration,
    /// How long a peer may take to answer a Close.
    pub close: Duration,
    /// How long requests may go on when the server ends.
    pub shutdown: Duration,
    /// Largest message in bytes.
    pub max_message: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            header: PATIENCE,
            opening: PATIENCE,
            keep_alive: KeepAlive::off(),
            write: PATIENCE,
            // A peer on a busy machine still gets to see the Close.
            close: SHORT * 25,
            shutdown: PATIENCE,
            max_message: 256 * 1024,
        }
    }
}

impl Terms {
    /// With a ping soon, and so much time for its pong that a healthy client on a busy machine is in time.
    fn with_pings() -> Self {
        Self {
            keep_alive: KeepAlive::every(SHORT / 2, SHORT * 10),
            // Who answers no ping is told nothing.
            close: SHORT,
            ..Self::default()
        }
    }

    /// These bounds in a connection's limits.
    #[must_use]
    pub const fn limits(&self, mut limits: Limits) -> Limits {
        limits.max_message_bytes = self.max_message;
        limits.max_outbox_bytes = 4 * self.max_message;
        limits
    }

    /// These deadlines before the upgrade.
    #[must_use]
    pub fn http(&self, mut config: HttpConfig) -> HttpConfig {
        config.limits.header_timeout = self.header;
        config.limits.handshake_timeout = self.header;
        config.limits.write_timeout = self.write;
        config
    }

    /// These deadlines of a connection's transport.
    #[must_use]
    pub const fn driver(&self, mut config: DriverConfig) -> DriverConfig {
        config.write_timeout = self.write;
        config.close_timeout = self.close;
        config
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    counters: Arc<Counters>,
    handle: ServerHandle,
}

impl Serving {
    /// Lets a server run.
    pub fn start<P: ServerProtocol>(server: ProtocolServer<P>) -> Self {
        let serving = Self {
            address: server.local_addr(),
            counters: server.counters(),
            handle: server.handle(),
        };
        tokio::spawn(server.run());
        serving
    }
}

/// A running server, and what its protocol sounds like from a client that does everything by hand.
///
/// All its clients are allowed to do everything. What they say is said on upgraded connections.
#[async_trait]
pub trait ServerUnderTest: Send + Sync + Sized {
    /// Starts a server on these terms, on a free port of the loopback interface.
    async fn start(terms: Terms) -> Self;

    /// The server.
    fn serving(&self) -> &Serving;

    /// A request for the upgrade that it agrees to.
    fn upgrade(&self) -> String;

    /// Says what makes an upgraded peer a client, up to the server's agreement. `name` is another one
    /// for every client of a test.
    ///
    /// # Errors
    /// What the system says, or that something else came.
    async fn enter(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// Lets something small be asked and answered on a client's connection, whatever else comes
    /// before the answer, and whatever else is under way there.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn exchange(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// The states that an upgraded connection may be in, by name.
    fn states(&self) -> &'static [&'static str];

    /// Brings an upgraded peer into one of the [states](Self::states).
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn bring_to(&self, peer: &mut RawPeer, name: &str, state: &str) -> io::Result<()>;

    /// Lets a handler panic on account of a client, and waits for what is promised then.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn panic(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// Sets a handler to work on account of a client that never returns.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn hang(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// Lets the server have something for a client that is larger than its largest message, and
    /// waits for what is promised then.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn oversize(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// Lets the server send to a client without an end, or until it is given up, and reads nothing.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn pour(&self, peer: &mut RawPeer, name: &str) -> io::Result<()>;

    /// A text that costs the server little and is no Close's reason, for floods.
    fn small_text(&self) -> String;

    /// How a peer ends that has not become a client in time; `None` if being upgraded is enough.
    fn stranger(&self) -> Option<End>;

    /// The code of the Close with which a server goes.
    fn going(&self) -> u16 {
        1001
    }
}

/// Checks every fault that a server has to survive, by the name of what is promised. `FAULT`, from the
/// environment, picks those with that in their names.
///
/// # Panics
/// With the names of those that it does not survive.
#[rustfmt::skip]
pub fn check_all<S: ServerUnderTest + 'static>() {
    list::check_all(vec![
        Promise::new("a_peer_without_a_request_is_disconnected", opening::a_peer_that_asks_for_nothing::<S>),
        Promise::new("a_slow_upgrade_request_is_disconnected", opening::a_request_that_trickles::<S>),
        Promise::new("a_cut_before_the_upgrade_leaves_nothing_behind", opening::a_cut_before_the_upgrade::<S>),
        Promise::new("a_peer_that_never_logs_in_is_disconnected", line::a_stranger_that_says_nothing::<S>),
        Promise::new("a_peer_that_answers_no_ping_is_disconnected", line::a_peer_that_answers_no_ping::<S>),
        Promise::new("a_half_open_connection_is_dropped_in_every_state", line::a_half_open_line::<S>),
        Promise::new("a_peer_that_reads_nothing_is_disconnected", line::a_peer_that_reads_nothing::<S>),
        Promise::new("a_slow_writer_is_served_unless_it_seems_dead", line::a_peer_that_writes_slowly::<S>),
        Promise::new("a_cut_in_every_state_leaves_nothing_behind", line::a_cut_in_every_state::<S>),
        Promise::new("an_end_inside_a_frame_leaves_nothing_behind", line::an_end_inside_a_frame::<S>),
        Promise::new("a_flood_of_messages_ends_with_1008", frames::a_flood_of_messages::<S>),
        Promise::new("a_flood_of_pings_is_answered_or_disconnected", frames::a_flood_of_pings::<S>),
        Promise::new("oversized_frames_end_with_1009", || frames::breach::<S>(Breach::Size)),
        Promise::new("oversized_answers_are_refused", frames::oversized_answers::<S>),
        Promise::new("invalid_utf8_ends_with_1007", || frames::breach::<S>(Breach::Text)),
        Promise::new("deep_json_is_refused_or_ignored", frames::deep_json::<S>),
        Promise::new("a_frame_without_a_mask_ends_with_1002", || frames::breach::<S>(Breach::Mask)),
        Promise::new("broken_framing_ends_with_1002", || frames::breach::<S>(Breach::Frame)),
        Promise::new("a_panicking_handler_ends_its_request_only", end::a_panicking_handler::<S>),
        Promise::new("a_handler_that_never_returns_delays_nothing", end::a_handler_that_never_returns::<S>),
        Promise::new("a_drain_in_the_middle_of_everything_ends_in_time", end::a_drain_ends_everything_in_time::<S>),
        Promise::new("a_peer_that_ignores_the_close_does_not_hold_up_the_end", end::a_drain_past_a_peer_that_ignores_the_close::<S>),
        Promise::new("a_drain_without_time_cuts_what_is_left", end::a_drain_without_time_cuts_what_is_left::<S>),
    ]);
}

/// Checks how a connection ended; a reset is as good as an end where nothing was to be said.
#[track_caller]
fn check_end(what: &str, end: End, expected: End) {
    let is_silent = |end| matches!(end, End::Fin | End::Reset);
    let holds = end == expected || is_silent(end) && is_silent(expected);
    check(holds, what, &(end, "instead of", expected));
}

async fn connected<S: ServerUnderTest>(server: &S) -> RawPeer {
    must(
        "connecting",
        RawPeer::connect(server.serving().address).await,
    )
}

async fn upgraded<S: ServerUnderTest>(server: &S) -> RawPeer {
    upgrade(server, connected(server).await).await
}

async fn upgrade<S: ServerUnderTest>(server: &S, mut peer: RawPeer) -> RawPeer {
    let answer = soon(peer.upgrade(&server.upgrade())).await;
    let answer = must("upgrading", answer);
    check(answer.starts_with("HTTP/1.1 101 "), "upgraded", &answer);
    peer
}

async fn client<S: ServerUnderTest>(server: &S, name: &str) -> RawPeer {
    let mut peer = upgraded(server).await;
    must("entering", soon(server.enter(&mut peer, name)).await);
    peer
}

/// A client with little room for what comes.
async fn narrow_client<S: ServerUnderTest>(server: &S, name: &str) -> RawPeer {
    let narrow = RawPeer::connect_narrow(server.serving().address).await;
    let mut peer = upgrade(server, must("connecting", narrow)).await;
    must("entering", server.enter(&mut peer, name).await);
    peer
}

/// A peer in one of the server's states.
async fn peer_in<S: ServerUnderTest>(server: &S, name: &str, state: &str) -> RawPeer {
    let mut peer = upgraded(server).await;
    must(state, soon(server.bring_to(&mut peer, name, state)).await);
    peer
}

async fn is_served<S: ServerUnderTest>(server: &S, peer: &mut RawPeer, name: &str) {
    must("an exchange", soon(server.exchange(peer, name)).await);
}

/// Waits until so many connections are open.
async fn until_open<S: ServerUnderTest>(server: &S, open: usize) {
    let counters = &server.serving().counters;
    soon(async {
        while counters.open() != open {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Does nothing for a moment but what a healthy client does then: it reads, and answers pings.
async fn rest(peer: &mut RawPeer) {
    let until = Instant::now() + Duration::from_millis(5);
    while let Ok(received) = timeout_at(until, peer.receive()).await {
        match must("a healthy client stays", received) {
            Some(frame) if frame.is_ping() => {
                must("answering", peer.frame(RawFrame::pong(frame.payload)).await);
            }
            Some(frame) => check(frame.close_code().is_none(), "it stays", &frame),
            None => broken("a healthy client stays", &"the line has ended"),
        }
    }
}

/// Lets a fault happen to a server on these terms while a healthy client is served; afterwards the
/// server has to be as it was.
async fn survives<S: ServerUnderTest>(terms: Terms, fault: impl AsyncFnOnce(&S)) {
    let server = &S::start(terms).await;
    let mut witness = client(server, "witness").await;
    let is_over = AtomicBool::new(false);
    let fault = async {
        soon(fault(server)).await;
        until_open(server, 1).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let going_on = async {
        while !is_over.load(Ordering::Relaxed) {
            is_served(server, &mut witness, "witness").await;
            rest(&mut witness).await;
        }
    };
    tokio::join!(fault, going_on);
    is_served(server, &mut witness, "witness").await;
    let mut other = client(server, "other").await;
    is_served(server, &mut other, "other").await;
    drop((witness, other));
    until_open(server, 0).await;
    let panicked = server.serving().counters.panicked();
    check(panicked == 0, "nothing panicked", &());
}
