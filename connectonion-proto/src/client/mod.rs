//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! (CONNECT sent) ─> AwaitConnected ─ CONNECTED ─────────> Ready <─ run ends ─┐
//!                    │     │    ^                         │   └─ prompt ─> Running
//!                    │ ONBOARD_ │ ONBOARD_SUCCESS         │                  │
//!                    │ REQUIRED │                         │                  │
//!                    │     v    │                         │                  │
//!                    │   AwaitOnboarding                  │                  │
//!                    └─────────> Closed <─────────────────┴──────────────────┘
//! ```

mod commands;
mod config;
mod error_target;
mod event;
mod pending;
mod questions;
mod receive;
mod resume;
mod seen;
mod session;
mod sign;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::json::DecodeErrorKind;
use rpc_core::keepalive::KeepAlive;
use rpc_core::timers::{later, sooner};
use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, FrameNumber,
    Incoming, Instant, Machine, MachineCore, Outgoing,
};

use crate::frame::{Connect, Response};
use crate::id::SessionId;
use pending::PendingRequests;

pub use config::{ClientConfig, reconnect_policy};
pub use event::{CallValue, ClientEvent, Step, Taken, Warning};
#[cfg(feature = "tokio")]
pub(crate) use questions::goes_on;
pub use resume::Resume;
pub use session::ClientSession;
#[cfg(feature = "tokio")]
pub(crate) use session::End;
pub use sign::Sign;

/// The silence after a host's replay, after which it counts as complete. Not in the specification.
const REPLAY_PAUSE: Duration = Duration::from_secs(1);

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Waits for the answer to the CONNECT.
    AwaitConnected,
    /// Waits for onboarding: the host has asked for it.
    AwaitOnboarding,
    /// Open, without a run.
    Ready,
    /// Waits for the end of a run, or for the reply to a prompt. Prompts are interjections now.
    Running,
    /// The connection has ended.
    Closed,
}

/// The client's side of one open connection. It sends the given CONNECT at once, answers PINGs, and
/// accepts prompts once it is admitted.
///
/// It signs nothing and reads no clock: CONNECT and `ONBOARD_SUBMIT` come signed
/// ([`auth`](crate::auth)). It knows nothing of other connections; [`ClientSession`] does, which
/// makes the CONNECT of each and filters its events.
///
/// ```
/// use std::time::Instant;
/// use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
/// use connectonion_proto::frame::{Connect, Input, Signed};
/// use connectonion_proto::{Incoming, Machine};
///
/// let now = Instant::now();
/// let connect = Connect::new(Signed::none()); // sign it: most hosts want that
/// let mut conn = ClientConn::new(ClientConfig::default(), &connect, 0x5eed, now);
/// assert!(conn.poll_transmit().is_some()); // the CONNECT: hand it to your socket
///
/// let answer = r#"{"type":"CONNECTED","session_id":"abc","status":"new"}"#;
/// conn.handle_message(Incoming::Text(answer), now);
/// assert!(matches!(conn.poll_event(), Some(ClientEvent::Connected(_))));
///
/// conn.input(&Input::new("hello"), now)?;
/// assert_eq!(conn.state(), ClientState::Running);
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    pub(crate) core: MachineCore<ClientEvent>,
    /// The state while the connection is open.
    state: ClientState,
    /// The stranger was admitted, and CONNECTED has not come.
    onboarded: bool,
    /// The application was asked for another CONNECT.
    connect_wanted: bool,
    session_id: Option<SessionId>,
    /// A run is in progress, as far as the host's frames show.
    run: bool,
    pending: PendingRequests,
    /// The answers that the host may not have, oldest first, each with the query after it. Hosts confirm
    /// no answer, but they handle frames in order: the reply to the query is its receipt.
    answers: VecDeque<(FrameNumber, Option<CallId>, Response)>,
    /// The host has refused no query about a session.
    answers_queries: bool,
    /// When the replay of a run in progress counts as complete.
    caught_up_at: Option<Instant>,
}

impl ClientConn {
    /// Creates a connection that was just opened and sends this CONNECT at once. `seed` determines
    /// the ids of requests, which never leave this side.
    #[must_use]
    pub fn new(
        config: impl Into<Arc<ClientConfig>>,
        connect: &Connect,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut conn = Self::open(config.into(), seed, now);
        if let Err(refused) = conn.core.send_json(connect) {
            conn.fail(&refused.to_string());
        }
        conn
    }

    /// Creates a connection that ends at once, because no CONNECT could be made for it: the key
    /// cannot sign. Retrying ends the same way.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn without_connect(config: Arc<ClientConfig>, why: &str, now: Instant) -> Self {
        let mut conn = Self::open(config, 0, now);
        conn.fail(why);
        conn
    }

    fn open(config: Arc<ClientConfig>, seed: u64, now: Instant) -> Self {
        let core = MachineCore::new(&config.limits).with_max_sent_bytes(config.max_sent_bytes);
        let mut conn = Self {
            core,
            state: ClientState::AwaitConnected,
            onboarded: false,
            connect_wanted: false,
            session_id: None,
            run: false,
            pending: PendingRequests::new(seed, config.limits.max_pending, now),
            answers: VecDeque::new(),
            answers_queries: true,
            caught_up_at: None,
            config,
        };
        conn.await_connected(now);
        conn.expect_life(now);
        conn
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        if self.core.is_closed() {
            ClientState::Closed
        } else {
            self.state
        }
    }

    fn await_connected(&mut self, now: Instant) {
        let timeout = self.config.handshake_timeout;
        self.core.start_timer("connect", timeout, now);
    }

    /// Returns the deadline for silence: hosts ping, clients do not.
    fn keep_alive(&self) -> Option<KeepAlive> {
        let timeout = self.config.silence_timeout?;
        Some(KeepAlive {
            pong_timeout: timeout,
            ..KeepAlive::off()
        })
    }

    fn expect_life(&mut self, now: Instant) {
        if let Some(config) = self.keep_alive() {
            self.core.expect_life(&config, now);
        }
    }

    fn unexpected(&mut self, name: &'static str) {
        self.warn(Warning::Unexpected { name });
    }

    fn warn(&mut self, warning: Warning) {
        self.push(ClientEvent::Warning(warning), 0);
    }

    fn push(&mut self, event: ClientEvent, bytes: usize) {
        let bytes = size_of::<ClientEvent>() + bytes;
        self.core.push_event(event, bytes);
    }

    /// Handles an event of a run in progress at CONNECTED: others may follow at once.
    fn await_replay(&mut self, now: Instant) {
        self.caught_up_at = Some(later(now, REPLAY_PAUSE));
    }

    fn end_run(&mut self) {
        self.run = false;
        self.caught_up_at = None;
        self.answers.clear();
        self.settle_state();
    }

    /// Ends a connection for which no CONNECT could be sent; retrying ends the same way.
    fn fail(&mut self, why: &str) {
        let message = format!("the CONNECT could not be sent: {why}");
        let retryable = false;
        let reason = CloseReason::Refused { message, retryable };
        self.shut(reason, CloseFrame::NORMAL);
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        self.core.close(reason, code);
    }

    /// Returns the next of the events that end everything in flight.
    fn last_event(&mut self) -> Option<ClientEvent> {
        let reason = self.core.close_reason()?;
        if let Some((id, sent)) = self.pending.pop_any() {
            let delivery = self.core.delivery(sent);
            let reason = reason.clone();
            let result = Err(CallError::Closed { reason, delivery });
            return Some(ClientEvent::Reply { id, result });
        }
        if std::mem::take(&mut self.run) {
            let reason = reason.clone();
            let delivery = Delivery::Delivered;
            let lost = CallError::Closed { reason, delivery };
            return Some(ClientEvent::RunEnded(Err(lost)));
        }
        let (frame, _, response) = self.answers.pop_front()?;
        Some(match self.core.delivery(frame) {
            Delivery::NotSent => ClientEvent::Unsent(response),
            _ => ClientEvent::Unconfirmed(response),
        })
    }
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(message) = self.core.received(message, now) else {
            return;
        };
        self.expect_life(now);
        match message {
            Incoming::Text(text) => self.on_text(text, now),
            Incoming::Binary(_) => {
                let error = DecodeError::new(DecodeErrorKind::Binary);
                self.warn(Warning::BadFrame(error));
            }
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        if self.core.timer_expired(now) {
            if !self.onboarded || self.connect_wanted {
                let after = self.config.handshake_timeout.unwrap_or_default();
                return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::NORMAL);
            }
            self.connect_wanted = true;
            self.await_connected(now);
            self.push(ClientEvent::ConnectWanted, 0);
        }
        if self.caught_up_at.take_if(|at| *at <= now).is_some() {
            if self.wants_input() {
                self.push(ClientEvent::CaughtUp, 0);
            } else {
                // Without reading it is unknown whether more has come.
                self.await_replay(now);
            }
        }
        if let Some(config) = self.keep_alive()
            && let Some(silence) = self.core.check_keepalive(&config, true, now)
        {
            self.shut(silence, CloseFrame::GOING_AWAY);
        }
        while self.core.may_expire(now)
            && let Some((id, sent)) = self.pending.pop_expired(now)
        {
            let delivery = self.core.delivery(sent);
            let result = Err(CallError::TimedOut { delivery });
            self.push(ClientEvent::Reply { id, result }, 0);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.core.pop_event().or_else(|| self.last_event());
        event.or_else(|| self.core.poll_event(ClientEvent::Closed))
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.is_closed() {
            return None;
        }
        let answer = self.core.unless_paused(self.pending.poll_timeout());
        let replay = self.caught_up_at.map(|at| (at, "replay"));
        let own = sooner(replay, answer.map(|at| (at, "answer")));
        sooner(self.core.next_timeout(), own)
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        self.core.wants_input(true)
    }

    /// Closes with this frame, as [`close`](Self::close) does.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns the number of unanswered prompts and requests, plus the run.
    fn in_flight(&self) -> usize {
        self.pending.len() + usize::from(self.run)
    }

    fn event_bytes(&self) -> usize {
        self.core.event_bytes()
    }
}

// Prints the state, never the contents.
rpc_core::debug_fields!([] ClientConn, this => {
    state: this.state(),
    in_flight: this.in_flight(),
    core: this.core,
});
