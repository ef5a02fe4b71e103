//! Faults of servers, and what every client makes of them: [`prove`] and the list of [`Fault`]s.
//!
//! A crate says once how its client is started and what its server says ([`ClientUnderTest`]); then
//! each fault is one line. Whatever the fault, the same has to hold: every call ends exactly once and
//! says whether it was sent, nothing hangs, the client is back as soon as a healthy server listens on
//! the same port or gives up with the reason, and it never dials without a pause.

mod closes;
mod cuts;
mod frames;
mod jump;
mod pace;
mod silence;
mod stage;

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::raw::RawPeer;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, DriverConfig, Events, Link, LinkConfig, Protocol};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Refused};

pub use jump::clock_jump;

/// A deadline that must not pass. In the good case nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// A deadline that has to pass.
const SHORT: Duration = Duration::from_millis(150);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// Most attempts without a success. Enough for a healthy server on a machine that is so busy that
/// some of the short deadlines pass although nothing is wrong.
const ATTEMPTS: u32 = 40;
/// The largest message of these tests.
const MAX_MESSAGE: usize = 64 * 1024;

/// What a server does wrong, or what befalls a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It accepts and says nothing: the dial times out.
    SilentBeforeTheUpgrade,
    /// It upgrades and then leaves the handshake of the protocol unanswered, at each of its steps.
    SilentInTheHandshake,
    /// It neither reads nor writes any more, and the line stays: pings find out.
    HalfOpen,
    /// It ends or resets the line as soon as it has accepted it.
    CutBeforeTheUpgrade,
    /// It ends or resets the line within its answer to the upgrade.
    CutInTheUpgrade,
    /// It answers the upgrade with an HTTP status.
    UpgradeRefused,
    /// It ends or resets the line at each step of the protocol's handshake.
    CutInTheHandshake,
    /// It ends or resets the line while nothing is under way.
    CutWhileIdle,
    /// It ends or resets the line with a call in flight, and in the middle of the answer.
    CutInACall,
    /// It ends or resets the line within a frame.
    CutInAFrame,
    /// It ends or resets the line while the client closes.
    CutWhileTheClientCloses,
    /// It never reads.
    SlowReader,
    /// It writes byte by byte, but it gets on: that is legal.
    SlowButSteady,
    /// It writes byte by byte, and a deadline passes: that of the dial, of the handshake, or of the
    /// life that the connection has to show.
    SlowWriter,
    /// It sends events faster than they are taken.
    EventFlood,
    /// The same, with a client that would rather lose the line than an event.
    EventFloodThatCloses,
    /// It sends a message over the limit, in one frame or in several.
    OversizedIncoming,
    /// The application wants to send a message over the limit.
    OversizedOutgoing,
    /// It sends text that is not UTF-8.
    InvalidUtf8,
    /// It sends JSON that is nested tens of thousands of times.
    DeepJson,
    /// It masks its frames, which only clients do.
    MaskedFrames,
    /// It breaks the other rules of frames.
    BrokenFrames,
    /// It sends pings without end and takes no pongs.
    PingFlood,
    /// It closes, with a code and without.
    ServerCloses,
    /// It does not answer the client's Close.
    UnansweredClose,
    /// The client drains with a call in flight.
    DrainInACall,
    /// The client drains or closes while it dials, in the handshake, and between two attempts.
    ShutdownWithoutALine,
    /// The client closes with a call in flight.
    CloseInACall,
    /// The connection's task is dropped with a call in flight.
    TaskDropped,
}

/// The settings under which a client is tested. Start it with these and with everything else by
/// default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Terms {
    /// The link.
    pub link: LinkConfig,
    /// How long the protocol's handshake may take.
    pub handshake: Duration,
    /// How long the server may show no life, on the line or about a call.
    pub silence: Duration,
    /// The largest message in bytes, in both directions.
    pub max_message: usize,
}

impl Terms {
    fn new() -> Self {
        let driver = DriverConfig::default()
            .with_write_timeout(PATIENCE)
            .with_close_timeout(SHORT);
        let link = LinkConfig::default()
            .with_connect_timeout(PATIENCE)
            .with_driver(driver);
        let terms = Self {
            link,
            handshake: PATIENCE,
            silence: PATIENCE,
            max_message: MAX_MESSAGE,
        };
        terms.with_attempts(ATTEMPTS)
    }

    /// As a ping and its pong: together they last no longer than `silence`.
    #[must_use]
    pub fn keep_alive(&self) -> KeepAlive {
        let half = self.silence / 2;
        KeepAlive::default()
            .with_interval(Some(half))
            .with_pong_timeout(half)
    }

    fn with_attempts(mut self, attempts: u32) -> Self {
        let backoff = BackoffPolicy::new(PAUSE, 1.0).with_max_attempts(Some(attempts));
        self.link.reconnect = ReconnectPolicy::new(backoff);
        self
    }

    fn with_pause(mut self, pause: Duration) -> Self {
        let backoff = BackoffPolicy::new(pause, 1.0).with_max_attempts(Some(ATTEMPTS));
        self.link.reconnect = ReconnectPolicy::new(backoff);
        self
    }

    fn without_reconnects(mut self) -> Self {
        self.link.reconnect = ReconnectPolicy::off();
        self
    }

    fn with_link(mut self, change: impl FnOnce(LinkConfig) -> LinkConfig) -> Self {
        self.link = change(self.link);
        self
    }

    fn with_driver(self, change: impl FnOnce(DriverConfig) -> DriverConfig) -> Self {
        self.with_link(|link| {
            let driver = change(link.driver.clone());
            link.with_driver(driver)
        })
    }

    const fn with_handshake(mut self, deadline: Duration) -> Self {
        self.handshake = deadline;
        self
    }

    const fn with_silence(mut self, deadline: Duration) -> Self {
        self.silence = deadline;
        self
    }
}

/// How a call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// With an answer.
    Answered,
    /// With the connection.
    Closed {
        /// Why the connection ended.
        reason: CloseReason,
        /// Whether the call may have reached the server.
        delivery: Delivery,
    },
    /// No answer came in time.
    TimedOut {
        /// Whether the call may have reached the server.
        delivery: Delivery,
    },
    /// It was refused at once.
    Refused(Refused),
    /// In another way, which is always wrong here.
    Otherwise(String),
}

impl<T, R: Debug> From<Result<T, CallError<R>>> for Ended {
    fn from(end: Result<T, CallError<R>>) -> Self {
        match end {
            Ok(_) => Self::Answered,
            Err(CallError::Closed { reason, delivery }) => Self::Closed { reason, delivery },
            Err(CallError::TimedOut { delivery }) => Self::TimedOut { delivery },
            Err(CallError::Refused(refused)) => Self::Refused(refused),
            Err(other) => Self::Otherwise(format!("{other:?}")),
        }
    }
}

/// A started client: what the test holds of it, its events, and its task.
pub type Started<C> = (
    <C as ClientUnderTest>::Handle,
    Events<<<C as ClientUnderTest>::Protocol as Protocol>::Event>,
    JoinHandle<CloseReason>,
);

/// The events of a client, which calls may want to read too.
pub type SharedEvents<C> = Mutex<Events<<<C as ClientUnderTest>::Protocol as Protocol>::Event>>;

/// The server's end of a line, as far as a healthy server goes.
#[async_trait]
pub trait Line: Send {
    /// The next frame of the client; `None` once the line has ended.
    async fn hear(&mut self) -> Option<Value>;

    /// Says something; `None` if the line has ended.
    async fn say(&mut self, frame: Value) -> Option<()>;
}

#[async_trait]
impl Line for RawPeer {
    async fn hear(&mut self) -> Option<Value> {
        let text = stage::soon(self.next_text()).await.ok()?;
        serde_json::from_str(&text).ok()
    }

    async fn say(&mut self, frame: Value) -> Option<()> {
        self.text(&frame.to_string()).await.ok()
    }
}

/// A client, and what its server says when all is well. On the server's side `None` means that the
/// line has ended.
#[async_trait]
pub trait ClientUnderTest: Sync {
    /// What the link speaks.
    type Protocol: Protocol<Event: Send>;
    /// What calls are made with.
    type Handle: Send + Sync;

    /// How often the server is asked, or asks, before the client is ready.
    const STEPS: usize;
    /// Whether it is the client that calls. If it is the server, a call here is one of the server's
    /// that the client holds, and its answer is refused once the line has gone.
    const CALLS: bool;
    /// Whether silence proves nothing while a call is in flight, so that the call has to end by its own
    /// deadline before the line is found dead.
    const CALLS_OUTLAST_PINGS: bool = false;

    /// A dialer of this address.
    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer;

    /// Starts a client, and its task.
    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self>
    where
        Self: Sized;

    /// The handle's link.
    fn link<'h>(&self, handle: &'h Self::Handle) -> &'h Link<Self::Protocol>;

    /// One step of the handshake, from 0: hears what the client says, and answers.
    async fn step(&self, line: &mut dyn Line, step: usize) -> Option<()>;

    /// Makes a call and waits for its end.
    async fn call(&self, handle: &Self::Handle, events: &SharedEvents<Self>) -> Ended
    where
        Self: Sized;

    /// Hears the call, and gives what is needed to answer it.
    async fn called(&self, line: &mut dyn Line) -> Option<Value>;

    /// Says something to the call that does not end it, if the protocol has that.
    async fn progress(&self, line: &mut dyn Line, call: &Value) -> Option<()>;

    /// Answers the call, or hears the client's answer.
    async fn answer(&self, line: &mut dyn Line, call: &Value) -> Option<()>;

    /// Sends about so many bytes in one message, at least as many.
    async fn load(&self, handle: &Self::Handle, bytes: usize) -> Ended;

    /// Something that the application is told although it has not asked.
    fn event(&self, number: usize) -> Value;

    /// Frames with this as a part. A client may skip them, and has to go on.
    fn frames_with(&self, json: &str) -> Vec<String>;
}

/// Lets a fault happen to a client.
///
/// # Panics
/// If what is promised does not hold.
pub async fn prove<C: ClientUnderTest>(client: &C, fault: Fault) {
    let proof: Pin<Box<dyn Future<Output = ()> + '_>> = match fault {
        Fault::SilentBeforeTheUpgrade => Box::pin(silence::before_the_upgrade(client)),
        Fault::SilentInTheHandshake => Box::pin(silence::in_the_handshake(client)),
        Fault::HalfOpen => Box::pin(silence::half_open(client)),
        Fault::CutBeforeTheUpgrade => Box::pin(cuts::before_the_upgrade(client)),
        Fault::CutInTheUpgrade => Box::pin(cuts::in_the_upgrade(client)),
        Fault::UpgradeRefused => Box::pin(cuts::upgrade_refused(client)),
        Fault::CutInTheHandshake => Box::pin(cuts::in_the_handshake(client)),
        Fault::CutWhileIdle => Box::pin(cuts::while_idle(client)),
        Fault::CutInACall => Box::pin(cuts::in_a_call(client)),
        Fault::CutInAFrame => Box::pin(cuts::in_a_frame(client)),
        Fault::CutWhileTheClientCloses => Box::pin(cuts::while_the_client_closes(client)),
        Fault::SlowReader => Box::pin(pace::slow_reader(client)),
        Fault::SlowButSteady => Box::pin(pace::slow_but_steady(client)),
        Fault::SlowWriter => Box::pin(pace::slow_writer(client)),
        Fault::EventFlood => Box::pin(pace::event_flood(client)),
        Fault::EventFloodThatCloses => Box::pin(pace::event_flood_that_closes(client)),
        Fault::OversizedIncoming => Box::pin(frames::oversized_incoming(client)),
        Fault::OversizedOutgoing => Box::pin(frames::oversized_outgoing(client)),
        Fault::InvalidUtf8 => Box::pin(frames::invalid_utf8(client)),
        Fault::DeepJson => Box::pin(frames::deep_json(client)),
        Fault::MaskedFrames => Box::pin(frames::masked(client)),
        Fault::BrokenFrames => Box::pin(frames::broken(client)),
        Fault::PingFlood => Box::pin(frames::ping_flood(client)),
        Fault::ServerCloses => Box::pin(closes::by_the_server(client)),
        Fault::UnansweredClose => Box::pin(closes::unanswered(client)),
        Fault::DrainInACall => Box::pin(closes::drain_in_a_call(client)),
        Fault::ShutdownWithoutALine => Box::pin(closes::without_a_line(client)),
        Fault::CloseInACall => Box::pin(closes::in_a_call(client)),
        Fault::TaskDropped => Box::pin(closes::task_dropped(client)),
    };
    proof.await;
}
