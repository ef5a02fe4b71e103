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
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::backlog::EventBacklog;
use rpc_core::json::{self, DecodeErrorKind};
use rpc_core::keepalive::Heart;
use rpc_core::pause::ReadPause;
use rpc_core::timers::{TimerKind, Timers, later, sooner};
use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, FrameNumber,
    Incoming, Machine, Match, Outbox, Outgoing, PendingCalls,
};
use serde::de::DeserializeOwned;

use crate::codec::{NoArgs, NoKwargs, encode_request};
use crate::error::RpcError;
use crate::frame::{Answer, Channel, ServerFrame, User};

pub use config::{ClientConfig, reconnect_policy};
pub use event::{ClientEvent, Ready, Warning};

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// The answer to `login`.
    AwaitLogin,
    /// The answer to `get_user`.
    AwaitUser,
    /// The answer to `get_channels`.
    AwaitChannels,
    /// Nothing: commands are taken.
    Ready,
    /// The connection has ended.
    Closed,
}

/// What a call in flight is for.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Handshake,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Handshake];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
        }
    }
}

/// The client's side of one open connection. It logs in by itself, fetches the user and the
/// channels, and then takes commands.
///
/// ```
/// use std::time::Instant;
/// use rpc_core::{Machine, Secret};
/// use snek_proto::client::{ClientConfig, ClientConn};
///
/// let config = ClientConfig::new("mybot", Secret::from("mypassword"));
/// let mut conn = ClientConn::new(config, 0x5eed, Instant::now());
/// let login = conn.poll_transmit(); // hand it to your socket
/// assert!(login.is_some());
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    state: ClientState,
    calls: PendingCalls<Pending>,
    outbox: Outbox,
    events: EventBacklog<ClientEvent>,
    /// Events from before the handshake was done.
    early: VecDeque<ClientEvent>,
    early_dropped: u64,
    timers: Timers<Timer>,
    pause: ReadPause,
    heart: Heart,
    login: Option<Answer>,
    user: Option<User>,
    closed: Option<CloseReason>,
    /// The end has been told to the application.
    told: bool,
    /// The line is gone, so what waits in the outbox was never sent.
    cut: bool,
    stray: u64,
}

impl ClientConn {
    /// A connection that was just opened. It sends the login at once. `seed` makes the call ids of
    /// this connection; it should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            state: ClientState::AwaitLogin,
            calls: PendingCalls::new(seed, config.limits.max_pending, now),
            outbox: Outbox::new(&config.limits),
            events: EventBacklog::new(),
            early: VecDeque::new(),
            early_dropped: 0,
            timers: Timers::new(),
            pause: ReadPause::default(),
            heart: Heart::new(config.keep_alive, now),
            login: None,
            user: None,
            closed: None,
            told: false,
            cut: false,
            stray: 0,
            config,
        };
        if let Some(timeout) = conn.config.handshake_timeout {
            conn.timers.set(Timer::Handshake, later(now, timeout));
        }
        let username = conn.config.username.clone();
        let password = conn.config.password.clone();
        conn.shake("login", &(username, password.expose()), now);
        conn
    }

    /// What the connection waits for.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        self.state
    }

    /// Who is logged in, once [ready](ClientState::Ready).
    #[must_use]
    pub const fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// How many calls are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// How many frames were dropped because they answered no call in flight and were no event:
    /// late and repeated answers, answers to what nobody waited for.
    #[must_use]
    pub const fn stray_frames(&self) -> u64 {
        self.stray
    }

    /// When [`handle_timeout`](Machine::handle_timeout) is wanted next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.closed.is_some() {
            return None;
        }
        let call = self.calls.poll_timeout();
        let call = call.and_then(|at| self.pause.suspend(at, self.wants_input()));
        let beat = self.heart.next_timeout();
        let timer = sooner(self.timers.next_timeout(), beat);
        sooner(timer, call.map(|at| (at, "call")))
    }

    /// Sends the next call of the handshake.
    fn shake(&mut self, method: &str, args: &impl serde::Serialize, now: Instant) {
        let deadline = Some(later(now, self.config.call_timeout));
        let Some(id) = self.calls.next_id() else {
            return self.shut(
                violation("no call is allowed in flight"),
                CloseFrame::INTERNAL,
            );
        };
        let sent = self
            .outbox
            .encode(|buffer| encode_request(buffer, method, args, &NoKwargs {}, id));
        let registered = sent.and_then(|frame| {
            let pending = Pending {
                purpose: Purpose::Handshake,
                frame,
            };
            Ok(self.calls.insert(pending, deadline)?)
        });
        if let Err(refused) = registered {
            // The credentials themselves do not fit, so another attempt would end the same way.
            let message = format!("{method} could not be sent: {refused}");
            self.shut(CloseReason::Authentication { message }, CloseFrame::NORMAL);
        }
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        let decode = if self.config.accept_new_message {
            ServerFrame::decode
        } else {
            ServerFrame::decode_strict
        };
        let frame = match decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.warn(error),
        };
        let id = frame.call_id().and_then(|id| CallId::parse(&id.as_text()?));
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
        let weight = event.weight();
        self.events.push(event, weight);
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

    /// The value of a handshake's answer.
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
        self.timers.stop(Timer::Handshake);
        let (Some(user), Some(login)) = (self.user.clone(), self.login.take()) else {
            return;
        };
        let ready = Ready {
            user,
            channels,
            login,
        };
        self.push(ClientEvent::Ready(Box::new(ready)));
        for event in std::mem::take(&mut self.early) {
            self.push(event);
        }
        if self.early_dropped > 0 {
            let dropped = Warning::EarlyEventsDropped {
                count: self.early_dropped,
            };
            self.push(ClientEvent::Warning(dropped));
        }
    }

    /// Gives the application an event; before the handshake is done it has to wait, in a bounded
    /// queue that keeps the newest.
    fn deliver(&mut self, event: ClientEvent) {
        if self.state == ClientState::Ready {
            self.push(event);
            return;
        }
        if self.early.len() >= self.config.limits.max_events {
            self.early.pop_front();
            self.early_dropped += 1;
        }
        self.early.push_back(event);
    }

    fn warn(&mut self, error: DecodeError) {
        self.deliver(ClientEvent::Warning(Warning::BadFrame(error)));
    }

    /// Sends a Close and ends. What is queued still leaves before it.
    fn shut(&mut self, reason: CloseReason, code: u16) {
        let words = match &reason {
            CloseReason::Local | CloseReason::Authentication { .. } => String::new(),
            other => other.to_string(),
        };
        self.shut_with(reason, CloseFrame::new(code, words));
    }

    fn shut_with(&mut self, reason: CloseReason, frame: CloseFrame) {
        if self.closed.is_none() {
            self.outbox.close(frame);
            self.end(reason);
        }
    }

    /// Ends. Calls in flight end in [`poll_event`](Machine::poll_event), so that no number of
    /// them needs room in the queue.
    fn end(&mut self, reason: CloseReason) {
        self.state = ClientState::Closed;
        self.closed = Some(reason);
        self.timers.stop_all();
        self.heart.stop();
        self.early = VecDeque::new();
    }

    fn delivery(&self, pending: Pending) -> Delivery {
        if self.cut && !self.outbox.was_taken(pending.frame) {
            Delivery::NotSent
        } else {
            Delivery::Unknown
        }
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
        if self.closed.is_some() {
            return;
        }
        self.heart.heard();
        self.pause.note(self.wants_input(), now);
        match message {
            Incoming::Text(text) => self.on_text(text, now),
            Incoming::Binary(_) => self.warn(DecodeError::new(DecodeErrorKind::Binary)),
            _ => {}
        }
        self.pause.note(self.wants_input(), now);
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        if self.closed.is_none() {
            self.cut = true;
            self.outbox.discard();
            self.end(why.into());
        } else {
            // Whatever was to follow the Close cannot leave any more.
            self.outbox.discard();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        if self.timers.pop_expired(now).is_some() {
            let after = self
                .config
                .handshake_timeout
                .unwrap_or(self.config.call_timeout);
            return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::NORMAL);
        }
        while self.pause.is_over(self.wants_input(), now)
            && let Some((id, pending)) = self.calls.pop_expired(now)
        {
            if pending.purpose == Purpose::Handshake {
                let after = self.config.call_timeout;
                return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::NORMAL);
            }
            let error = CallError::TimedOut {
                delivery: self.delivery(pending),
            };
            self.push(ClientEvent::Reply {
                id,
                result: Err(error),
            });
        }
        let deaf = !self.pause.is_over(self.wants_input(), now);
        if let Some(gone) = self.heart.beat(now, deaf, &mut self.outbox) {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.events.pop() {
            return Some(event);
        }
        let reason = self.closed.as_ref()?;
        while let Some((id, pending)) = self.calls.pop_any() {
            if pending.purpose == Purpose::Command {
                let delivery = self.delivery(pending);
                let error = CallError::<RpcError>::Closed {
                    reason: reason.clone(),
                    delivery,
                };
                return Some(ClientEvent::Reply {
                    id,
                    result: Err(error),
                });
            }
        }
        if self.told {
            return None;
        }
        self.told = true;
        Some(ClientEvent::Closed(reason.clone()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn wants_input(&self) -> bool {
        self.events.has_room(&self.config.limits)
    }
}

/// Prints where it stands, nothing of what it carries.
impl fmt::Debug for ClientConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConn")
            .field("state", &self.state)
            .field("in_flight", &self.calls.len())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
