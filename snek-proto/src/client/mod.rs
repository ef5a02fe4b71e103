//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! AwaitLogin ─ login ok ─> AwaitUser ─ user ─> AwaitChannels ─ channels ─> Ready
//!     │ refused                │ refused            │ refused               │
//!     └────────────────────────┴────────────────────┴───────> Closed <──────┘
//! ```

mod commands;
mod config;
mod event;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use rpc_core::json::{self, DecodeErrorKind};
use rpc_core::timers::{later, sooner};
use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Disconnect, FrameNumber, Incoming, Instant,
    Machine, MachineCore, Match, Outgoing, PendingCalls,
};
use serde::de::DeserializeOwned;

use crate::codec::encode_request;
use crate::frame::{CallValue, Channel, NoArgs, NoKwargs, ServerFrame, User};

#[cfg(feature = "tokio")]
pub(crate) use commands::checked_channel;
pub use config::{ClientConfig, reconnect_policy};
pub use event::{ClientEvent, Ready, Warning};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Waiting for the answer to `login`.
    AwaitLogin,
    /// Waiting for the answer to `get_user`.
    AwaitUser,
    /// Waiting for the answer to `get_channels`.
    AwaitChannels,
    /// Ready: commands are accepted.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The purpose of a call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Handshake,
    Command,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    purpose: Purpose,
    frame: FrameNumber,
}

/// The client's side of one open connection. It logs in by itself, fetches the user and the
/// channels, and then accepts commands.
///
/// ```
/// use std::time::Instant;
/// use snek_proto::{Machine, Secret};
/// use snek_proto::client::{ClientConfig, ClientConn};
///
/// let config = ClientConfig::new("mybot", Secret::from("mypassword"));
/// let mut conn = ClientConn::new(config, 0x5eed, Instant::now());
/// let login = conn.poll_transmit(); // hand it to your socket
/// assert!(login.is_some());
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    pub(crate) core: MachineCore<ClientEvent>,
    /// Where the connection stands while it is open.
    state: ClientState,
    calls: PendingCalls<Pending>,
    /// Events from before the handshake was done.
    early: VecDeque<(ClientEvent, usize)>,
    early_bytes: usize,
    early_dropped: u64,
    login: Option<CallValue>,
    user: Option<User>,
    stray: u64,
}

impl ClientConn {
    /// Creates the machine of a connection that was just opened. It sends the login at once. `seed`
    /// generates the call ids of this connection; it should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            core: MachineCore::new(&config.limits),
            state: ClientState::AwaitLogin,
            calls: PendingCalls::new(seed, config.limits.max_pending, now),
            early: VecDeque::new(),
            early_bytes: 0,
            early_dropped: 0,
            login: None,
            user: None,
            stray: 0,
            config,
        };
        conn.core.start_keepalive(&conn.config.keep_alive, now);
        let timeout = conn.config.handshake_timeout;
        conn.core.start_timer("handshake", timeout, now);
        let username = conn.config.username.clone();
        let password = conn.config.password.clone();
        conn.shake("login", &(username, password.expose()), now);
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

    /// Returns the logged-in user, once [ready](ClientState::Ready).
    #[must_use]
    pub const fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Returns how many frames were dropped because they were neither an event nor the answer to a
    /// call in flight: late and repeated answers, and answers to notifications.
    #[must_use]
    pub const fn stray_frames(&self) -> u64 {
        self.stray
    }

    /// Sends the next call of the handshake.
    fn shake(&mut self, method: &str, args: &impl serde::Serialize, now: Instant) {
        let deadline = Some(later(now, self.config.call_timeout));
        let Some(id) = self.calls.next_id() else {
            let reason = violation("no call is allowed in flight");
            return self.shut(reason, CloseFrame::INTERNAL);
        };
        let sent = self
            .core
            .send_with(|buffer| encode_request(buffer, method, args, &NoKwargs {}, id));
        let registered = sent.and_then(|frame| {
            let purpose = Purpose::Handshake;
            let pending = Pending { purpose, frame };
            Ok(self.calls.insert(pending, deadline)?)
        });
        if let Err(refused) = registered {
            // The credentials themselves do not fit, so another attempt would end the same way.
            let message = format!("{method} could not be sent: {refused}");
            self.shut(CloseReason::Authentication { message }, CloseFrame::NORMAL);
        }
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        if let Some((id, answer)) = CallValue::in_order(text, &self.config.limits)
            && matches!(self.calls.get(id), Some(it) if it.purpose == Purpose::Command)
        {
            let _ = self.calls.complete(id);
            let result = Ok(answer);
            return self.push(ClientEvent::Reply { id, result });
        }
        let decode = if self.config.accept_new_message {
            ServerFrame::decode
        } else {
            ServerFrame::decode_strict
        };
        let frame = match decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.warn(error),
        };
        let id = frame.own_call_id();
        if let Some(id) = id
            && let Match::Live(pending) = self.calls.complete(id)
        {
            return match pending.purpose {
                Purpose::Handshake => self.on_handshake(frame, now),
                Purpose::Command => {
                    let result = frame.into_result().map_err(CallError::Remote);
                    self.push(ClientEvent::Reply { id, result });
                }
            };
        }
        match frame.into_event() {
            Some(Ok(event)) => self.deliver(event.into()),
            Some(Err(error)) => self.warn(error),
            None => self.stray += 1,
        }
    }

    fn push(&mut self, event: ClientEvent) {
        let bytes = self.core.take_frame_bytes();
        self.core.push_event(event, bytes);
    }

    fn on_handshake(&mut self, answer: ServerFrame, now: Instant) {
        match self.state {
            ClientState::AwaitLogin => match answer.into_login_result() {
                Ok(login) => {
                    self.login = Some(login);
                    self.state = ClientState::AwaitUser;
                    self.shake("get_user", &[()], now);
                }
                Err(error) => {
                    let message = error.message().to_owned();
                    self.shut(CloseReason::Authentication { message }, CloseFrame::NORMAL);
                }
            },
            ClientState::AwaitUser => match self.read("get_user", answer) {
                Ok(user) => {
                    self.user = Some(user);
                    self.state = ClientState::AwaitChannels;
                    self.shake("get_channels", &NoArgs::default(), now);
                }
                Err(reason) => self.shut(reason, CloseFrame::PROTOCOL_ERROR),
            },
            ClientState::AwaitChannels => match self.read("get_channels", answer) {
                Ok(channels) => self.on_ready(channels),
                Err(reason) => self.shut(reason, CloseFrame::PROTOCOL_ERROR),
            },
            ClientState::Ready | ClientState::Closed => {}
        }
    }

    /// Reads the value of a handshake's answer.
    fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        answer: ServerFrame,
    ) -> Result<T, CloseReason> {
        let answer = answer
            .into_result()
            .map_err(|error| violation(&format!("{method}: {error}")))?;
        json::parse(answer.data().get(), &self.config.limits)
            .map_err(|error| violation(&format!("{method}: {error}")))
    }

    fn on_ready(&mut self, channels: Vec<Channel>) {
        self.state = ClientState::Ready;
        self.core.stop_timer();
        let (Some(user), Some(login)) = (self.user.clone(), self.login.take()) else {
            return;
        };
        let ready = Ready {
            user,
            channels,
            login,
        };
        self.push(ClientEvent::Ready(Box::new(ready)));
        self.early_bytes = 0;
        for (event, bytes) in std::mem::take(&mut self.early) {
            self.core.push_event(event, bytes);
        }
        if self.early_dropped > 0 {
            let count = self.early_dropped;
            let dropped = Warning::EarlyEventsDropped { count };
            self.push(ClientEvent::Warning(dropped));
        }
    }

    /// Passes an event to the application. Until the handshake is done the event waits in a bounded
    /// queue that keeps the newest.
    fn deliver(&mut self, event: ClientEvent) {
        if self.state == ClientState::Ready {
            self.push(event);
            return;
        }
        let bytes = self.core.take_frame_bytes();
        self.early_bytes += bytes;
        self.early.push_back((event, bytes));
        let limits = &self.config.limits;
        while self.early.len() > limits.max_events.max(1)
            || (self.early.len() > 1 && self.early_bytes > limits.max_event_bytes)
        {
            let Some((_, bytes)) = self.early.pop_front() else {
                break;
            };
            self.early_bytes -= bytes;
            self.early_dropped += 1;
        }
    }

    fn warn(&mut self, error: DecodeError) {
        self.deliver(ClientEvent::Warning(Warning::BadFrame(error)));
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        self.core.close(reason, code);
    }
}

fn violation(message: &str) -> CloseReason {
    CloseReason::Violation {
        message: message.to_owned(),
    }
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        match self.core.received(message, now) {
            Some(Incoming::Text(text)) => self.on_text(text, now),
            Some(Incoming::Binary(_)) => self.warn(DecodeError::new(DecodeErrorKind::Binary)),
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            let after = self.config.handshake_timeout.unwrap_or_default();
            return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::NORMAL);
        }
        while self.core.may_expire(now)
            && let Some((id, pending)) = self.calls.pop_expired(now)
        {
            if pending.purpose == Purpose::Handshake {
                let after = self.config.call_timeout;
                return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::NORMAL);
            }
            let delivery = self.core.delivery(pending.frame);
            let result = Err(CallError::TimedOut { delivery });
            self.push(ClientEvent::Reply { id, result });
        }
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, true, now) {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.core.pop_event() {
            return Some(event);
        }
        let reason = self.core.close_reason()?;
        while let Some((id, pending)) = self.calls.pop_any() {
            if pending.purpose == Purpose::Command {
                let reason = reason.clone();
                let delivery = self.core.delivery(pending.frame);
                let result = Err(CallError::Closed { reason, delivery });
                return Some(ClientEvent::Reply { id, result });
            }
        }
        self.core.poll_event(ClientEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let call = self.core.unless_paused(self.calls.poll_timeout());
        sooner(self.core.next_timeout(), call.map(|at| (at, "call")))
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        self.core.wants_input(true)
    }

    /// Closes with this frame. Queued frames are sent first; calls in flight end at once.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns how many calls are in flight. Those of the opening do not count: no one waits for them.
    fn in_flight(&self) -> usize {
        match self.state {
            ClientState::Ready => self.calls.len(),
            _ => 0,
        }
    }

    fn event_bytes(&self) -> usize {
        self.core.event_bytes()
    }
}

// Prints the state, not the contents.
rpc_core::debug_fields!([] ClientConn, this => {
    state: this.state(),
    in_flight: this.calls.len(),
    core: this.core,
});
