//! The server's side of one connection: [`ServerConn`].
//!
//! The machine knows what one connection can know: what a frame is, what may come when, and what
//! waits at the gate. Who may come in is decided with [`auth`](crate::auth) and
//! [`trust`](crate::trust); what a session is and who watches it is the business of whoever sees all
//! connections, for example of a [`Hub`](crate::hub::Hub).
//!
//! ```text
//!                  CONNECT            gate            `ONBOARD_SUBMIT`
//!   AwaitConnect ──────────► verdict ──────► Gated ──────────────────► verdict
//!        ▲                    │   │            ▲ CONNECT (again)        │    │
//!        └────── refuse ──────┘   │            └──────── refuse ────────┘    │ welcome
//!                                 ▼                                          ▼
//!                               Ready ◄───────────── accept ────────── verdict on the CONNECT
//! ```

mod commands;
mod config;
mod event;
mod receive;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::backlog::{Backlog, EventBacklog};
use rpc_core::keepalive::Heart;
use rpc_core::rate::Bucket;
use rpc_core::timers::{TimerKind, Timers, later, sooner};
use rpc_core::{CloseFrame, CloseReason, Disconnect, Incoming, Machine, Outbox, Outgoing};

use crate::auth::Address;
use crate::error::binary;
use crate::frame::{Connect, ServerFrame};

pub use config::ServerConfig;
pub use event::{ServerEvent, Warning};

/// Frames that are kept at most while a verdict is awaited, from a caller who reads on although the
/// machine [wants no input](Machine::wants_input).
const MAX_HELD: usize = 64;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The client has not sent a CONNECT that was good.
    AwaitConnect,
    /// The application has to answer a CONNECT, an `ONBOARD_SUBMIT` or an INPUT.
    AwaitVerdict,
    /// The client is a stranger, and its CONNECT waits.
    Gated,
    /// The client is in.
    Ready,
    /// The connection has ended.
    Closed,
}

/// How far the client has come.
enum Stage {
    Outside,
    Gated {
        identity: Address,
        /// What waits. In a box, because few connections have one.
        stash: Box<Connect>,
    },
    Inside,
    Closed,
}

/// What the application has to answer.
enum Awaited {
    Connect {
        connect: Box<Connect>,
        /// The size of its frame.
        size: usize,
    },
    Onboard,
    /// The gate was passed.
    Onboarded {
        signs_commands: bool,
    },
    Input,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Connect,
    Ping,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Connect, Self::Ping];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Ping => "PING",
        }
    }
}

/// The server's side of one open connection.
///
/// What the machine answers by itself, always with an ERROR and never by hanging up: what is no
/// frame, what comes before its time, what no server takes. A second CONNECT of a stranger takes the
/// place of the one that waits at the gate. It sends a PING every 30 s, whatever state it is in.
pub struct ServerConn {
    config: Arc<ServerConfig>,
    stage: Stage,
    awaited: Option<Awaited>,
    /// The client was let through the gate and has sent nothing since.
    is_newcomer: bool,
    /// The client signs its commands. Never taken back: a later CONNECT cannot weaken it.
    signs_commands: bool,
    /// What came while a verdict was awaited.
    held: Backlog<String>,
    held_bytes: usize,
    outbox: Outbox,
    /// Somebody was told that there is no room.
    blocked: bool,
    /// And has not been told since that there is: frames may be waiting outside.
    owes: bool,
    /// Each with the size of its frame.
    events: EventBacklog<ServerEvent>,
    timers: Timers<Timer>,
    /// When the next PING is due.
    ping_at: Instant,
    heart: Heart,
    bucket: Bucket,
}

impl ServerConn {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, now: Instant) -> Self {
        let config = config.into();
        let mut timers = Timers::new();
        if let Some(timeout) = config.connect_timeout {
            timers.set(Timer::Connect, later(now, timeout));
        }
        let ping_at = later(now, config.ping_interval.unwrap_or_default());
        if config.ping_interval.is_some() {
            timers.set(Timer::Ping, ping_at);
        }
        let sent = config.limits.clone();
        let sent = sent.with_max_message_bytes(config.max_sent_bytes);
        Self {
            stage: Stage::Outside,
            awaited: None,
            is_newcomer: false,
            signs_commands: false,
            held: Backlog::new(),
            held_bytes: 0,
            outbox: Outbox::new(&sent),
            blocked: false,
            owes: false,
            events: EventBacklog::new(),
            timers,
            ping_at,
            heart: Heart::new(config.keep_alive, now),
            bucket: Bucket::new(config.limits.max_message_rate, now),
            config,
        }
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn state(&self) -> ServerState {
        match (&self.stage, &self.awaited) {
            (Stage::Closed, _) => ServerState::Closed,
            (_, Some(_)) => ServerState::AwaitVerdict,
            (Stage::Outside, None) => ServerState::AwaitConnect,
            (Stage::Gated { .. }, None) => ServerState::Gated,
            (Stage::Inside, None) => ServerState::Ready,
        }
    }

    /// When [`handle_timeout`](Machine::handle_timeout) is wanted next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        sooner(self.timers.next_timeout(), self.heart.next_timeout())
    }

    fn hold(&mut self, text: &str) {
        let has_room =
            self.held.len() < MAX_HELD && self.held_bytes < self.config.limits.max_event_bytes;
        if !has_room {
            return self.shut(CloseReason::SlowConsumer, CloseFrame::TRY_AGAIN);
        }
        self.held_bytes += text.len();
        self.held.push_back(text.to_owned());
    }

    fn ping(&mut self, now: Instant) {
        if let Some(interval) = self.config.ping_interval {
            // Counted from the opening, unless this comes so late that the next one is due too.
            let next = later(self.ping_at, interval);
            self.ping_at = if next > now {
                next
            } else {
                later(now, interval)
            };
            self.timers.set(Timer::Ping, self.ping_at);
        }
        // One more is of no use to a client that has much to read.
        if self.outbox.has_slack() {
            let _ = self.outbox.json(&ServerFrame::Ping);
        }
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        let frame = CloseFrame::new(code, reason.to_string());
        self.shut_with(reason, frame);
    }

    fn shut_with(&mut self, reason: CloseReason, frame: CloseFrame) {
        if !self.is_closed() {
            self.outbox.close(frame);
            self.end(reason);
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.stage = Stage::Closed;
        self.awaited = None;
        self.blocked = false;
        self.owes = false;
        self.timers.stop_all();
        self.heart.stop();
        self.held = Backlog::new();
        self.held_bytes = 0;
        self.events.push(ServerEvent::Closed(reason), 0);
    }
}

impl Machine for ServerConn {
    type Event = ServerEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if self.is_closed() {
            return;
        }
        self.heart.heard();
        if !self.bucket.admits(now) {
            return self.shut(CloseReason::RateLimited, CloseFrame::POLICY);
        }
        let max = self.config.limits.max_message_bytes;
        if message.is_data() && message.len() > max {
            return self.shut(CloseReason::TooLarge { max }, CloseFrame::TOO_BIG);
        }
        match message {
            Incoming::Text(text) => self.on_text(text),
            Incoming::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.on_text(text),
                Err(_) => self.object(&binary(), Warning::Binary),
            },
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.outbox.discard();
        if !self.is_closed() {
            self.end(why.into());
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while !self.is_closed()
            && let Some(timer) = self.timers.pop_expired(now)
        {
            match timer {
                Timer::Connect => {
                    let after = self.config.connect_timeout.unwrap_or_default();
                    self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::POLICY);
                }
                Timer::Ping => self.ping(now),
            }
        }
        if self.is_closed() {
            return;
        }
        // A client that still has much to read cannot have seen the ping behind it.
        let deaf = !self.wants_input();
        if let Some(gone) = self.heart.beat(now, deaf, &mut self.outbox) {
            self.outbox.abort();
            self.end(gone);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.outbox.pop();
        if self.blocked && self.outbox.has_slack() {
            self.blocked = false;
            self.events.push(ServerEvent::Writable, 0);
        }
        frame
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    fn wants_input(&self) -> bool {
        self.is_closed()
            || (self.awaited.is_none()
                && self.events.has_room(&self.config.limits)
                && self.outbox.has_slack())
    }
}

/// Prints where it stands, nothing of what it carries.
impl fmt::Debug for ServerConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConn")
            .field("state", &self.state())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
