//! Faults that every client has to survive, for any [`ClientUnderTest`].
//!
//! A crate says once how its client is started and what its server says. Whatever the fault, the same has to hold: every call ends exactly once and
//! says whether it was sent, nothing hangs, the client is back as soon as a healthy server listens on
//! the same port or gives up with the reason, and it never dials without a pause.

mod clock_jump;
mod closes;
mod cuts;
mod frames;
mod harness;
mod pace;
mod silence;

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, Events, Link, LinkConfig, Protocol};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Refused};

use self::clock_jump::clock_jump;
use super::breach::Breach;
use super::list::{self, Promise};
use super::raw::RawPeer;
use super::{PATIENCE, soon};

/// A deadline that has to pass.
const SHORT: Duration = Duration::from_millis(150);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// Most attempts without a success. Enough for a healthy server on a machine that is so busy that
/// some of the short deadlines pass although nothing is wrong.
const ATTEMPTS: u32 = 40;
/// The largest message of these tests.
const MAX_MESSAGE: usize = 64 * 1024;

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
        let mut link = LinkConfig {
            connect_timeout: PATIENCE,
            reconnect: ReconnectPolicy::new(BackoffPolicy::new(PAUSE, 1.0)),
            ..LinkConfig::default()
        };
        link.driver.write_timeout = PATIENCE;
        link.driver.close_timeout = SHORT;
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
        KeepAlive::every(half, half)
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    const fn with_attempts(mut self, attempts: u32) -> Self {
        self.link.reconnect.backoff.max_attempts = Some(attempts);
        self
    }

    fn reconnecting(mut self, dials_again: bool) -> Self {
        if !dials_again {
            self.link.reconnect = ReconnectPolicy::off();
        }
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
    async fn recv(&mut self) -> Option<Value>;

    /// Says something; `None` if the line has ended.
    async fn send(&mut self, frame: Value) -> Option<()>;
}

#[async_trait]
impl Line for RawPeer {
    async fn recv(&mut self) -> Option<Value> {
        let text = soon(self.next_text()).await.ok()?;
        serde_json::from_str(&text).ok()
    }

    async fn send(&mut self, frame: Value) -> Option<()> {
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
    type Handle: Deref<Target = Link<Self::Protocol>> + Send + Sync;

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

    /// An event that the application did not ask for.
    fn event(&self, number: usize) -> Value;

    /// Frames with this as a part. A client may skip them, and has to go on.
    fn frames_with(&self, json: &str) -> Vec<String>;
}

/// Checks every fault that a client has to survive, by the name of what is promised. `FAULT`, from the
/// environment, picks those with that in their names.
///
/// # Panics
/// With the names of those that it does not survive.
#[rustfmt::skip]
pub fn check_all<C: ClientUnderTest + 'static>(client: &'static C) {
    list::check_all(vec![
        fault(client, "a_server_that_never_upgrades_times_out", silence::before_the_upgrade),
        fault(client, "a_stalled_handshake_times_out", silence::in_the_handshake),
        fault(client, "a_half_open_connection_is_detected", silence::half_open),
        fault(client, "a_cut_before_the_upgrade_is_retried", cuts::before_the_upgrade),
        fault(client, "a_cut_in_the_upgrade_is_retried", cuts::in_the_upgrade),
        fault(client, "the_status_of_a_refused_upgrade_decides_about_a_retry", cuts::upgrade_refused),
        fault(client, "a_cut_in_the_handshake_is_retried", cuts::in_the_handshake),
        fault(client, "an_idle_connection_that_is_cut_is_reopened", cuts::while_idle),
        fault(client, "a_call_ends_at_once_when_its_connection_is_cut", cuts::in_a_call),
        fault(client, "half_a_frame_is_not_reported", cuts::in_a_frame),
        fault(client, "a_client_that_is_cut_while_it_closes_is_closed", cuts::while_the_client_closes),
        fault(client, "a_server_that_never_reads_is_disconnected", pace::slow_reader),
        fault(client, "a_server_may_write_byte_by_byte", pace::slow_but_steady),
        fault(client, "trickling_bytes_move_no_deadline", pace::slow_writer),
        fault(client, "a_flood_of_events_is_dropped_and_counted", pace::event_flood),
        fault(client, "a_flood_of_events_ends_the_connection_if_so_configured", pace::event_flood_that_closes),
        fault(client, "a_message_over_the_limit_is_refused_with_1009", |it| frames::breach(it, Breach::Size)),
        fault(client, "a_message_over_the_limit_is_not_sent", frames::oversized_outgoing),
        fault(client, "invalid_utf8_is_refused_with_1007", |it| frames::breach(it, Breach::Text)),
        fault(client, "deep_json_is_skipped_or_passed_through", frames::deep_json),
        fault(client, "masked_frames_are_refused_with_1002", |it| frames::breach(it, Breach::Mask)),
        fault(client, "broken_frames_are_refused_with_1002", |it| frames::breach(it, Breach::Frame)),
        fault(client, "a_flood_of_pings_is_read_as_fast_as_its_pongs_are_taken", frames::ping_flood),
        fault(client, "a_close_of_the_server_is_answered_and_reported", closes::by_the_server),
        fault(client, "an_unanswered_close_ends_in_time", closes::unanswered),
        fault(client, "a_drain_waits_for_calls_and_counts_them", closes::drain_in_a_call),
        fault(client, "a_shutdown_without_a_connection_ends_at_once", closes::without_a_line),
        fault(client, "a_close_ends_the_calls_in_flight", closes::in_a_call),
        fault(client, "calls_end_when_the_connection_task_is_dropped", closes::task_dropped),
        Promise::on_a_paused_clock("a_clock_that_jumps_gives_one_fresh_chance", move || clock_jump(client)),
    ]);
}

fn fault<C: ClientUnderTest, F: Future>(
    client: &'static C,
    name: &'static str,
    check: impl Fn(&'static C) -> F + Send + Sync + 'static,
) -> Promise {
    Promise::new(name, move || check(client))
}
