//! The server's side of one connection: [`ServerConn`].
//!
//! The machine handles what one connection can decide: it decodes frames, checks their order, and
//! keeps the CONNECT of a stranger. [`auth`](crate::auth) and `trust` decide who is
//! admitted; a component that sees all connections handles the [sessions](crate::session).
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

use std::sync::Arc;
use std::time::Duration;

use rpc_core::backlog::Backlog;
use rpc_core::timers::{later, sooner};
use rpc_core::{
    CloseFrame, CloseReason, Disconnect, Incoming, Instant, Machine, MachineCore, Outgoing,
};

use crate::auth::Address;
use crate::error::binary;
use crate::frame::{Connect, ServerFrame};

pub use config::ServerConfig;
pub use event::{ServerEvent, Warning};

/// The number of frames kept while a verdict is awaited, if the caller reads on although the
/// machine [wants no input](Machine::wants_input).
const MAX_HELD: usize = 64;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The client has not sent an acceptable CONNECT.
    AwaitConnect,
    /// A CONNECT, an `ONBOARD_SUBMIT`, an INPUT or another signed command waits for the application's reply.
    AwaitVerdict,
    /// The client is a stranger, and its CONNECT is kept.
    Gated,
    /// The client is admitted.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The client's progress.
enum Phase {
    Outside,
    Gated {
        identity: Address,
        /// The kept CONNECT. Boxed, because few connections have one.
        stash: Box<Connect>,
    },
    Inside,
}

/// The frame that waits for the application's reply.
enum Awaited {
    Connect {
        connect: Box<Connect>,
        /// The size of its frame.
        size: usize,
    },
    Onboard,
    /// The kept CONNECT, after onboarding.
    Onboarded {
        signs_commands: bool,
    },
    Input,
    /// A signed command, or one of an administrator.
    Command,
}

/// The server's side of one open connection.
///
/// The machine replies to some frames itself, always with an ERROR and never by closing: invalid
/// frames, frames that come too early, frames that no server accepts. A second CONNECT of a
/// stranger replaces the kept one. It sends a PING every 30 s, in every state.
pub struct ServerConn {
    config: Arc<ServerConfig>,
    core: MachineCore<ServerEvent>,
    phase: Phase,
    awaited: Option<Awaited>,
    /// The client went through onboarding and has sent nothing since.
    is_newcomer: bool,
    /// The client signs its commands. Never reset: a later CONNECT cannot revoke it.
    signs_commands: bool,
    /// Frames that came while a verdict was awaited.
    held: Backlog<String>,
    held_bytes: usize,
    /// The application has learned that there is no room.
    blocked: bool,
    /// It has not learned since that there is: frames may be waiting outside.
    owes: bool,
    /// When the next PING is due.
    ping_at: Option<Instant>,
}

impl ServerConn {
    /// Creates a connection that was just accepted.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, now: Instant) -> Self {
        let config = config.into();
        let mut core = MachineCore::new(&config.limits)
            .with_max_sent_bytes(config.max_sent_bytes)
            .with_login();
        core.start_keepalive(&config.keep_alive, now);
        core.start_timer("connect", config.handshake_timeout, now);
        Self {
            core,
            phase: Phase::Outside,
            awaited: None,
            is_newcomer: false,
            signs_commands: false,
            held: Backlog::new(),
            held_bytes: 0,
            blocked: false,
            owes: false,
            ping_at: config.ping_interval.map(|interval| later(now, interval)),
            config,
        }
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ServerState {
        if self.core.is_closed() {
            return ServerState::Closed;
        }
        match (&self.phase, &self.awaited) {
            (_, Some(_)) => ServerState::AwaitVerdict,
            (Phase::Outside, None) => ServerState::AwaitConnect,
            (Phase::Gated { .. }, None) => ServerState::Gated,
            (Phase::Inside, None) => ServerState::Ready,
        }
    }

    fn buffer(&mut self, text: &str) {
        let has_room =
            self.held.len() < MAX_HELD && self.held_bytes < self.config.limits.max_event_bytes;
        if !has_room {
            return self.shut(CloseReason::SlowConsumer, CloseFrame::TRY_AGAIN);
        }
        self.held_bytes += text.len();
        self.held.push_back(text.to_owned());
    }

    fn ping(&mut self, at: Instant, now: Instant) {
        self.ping_at = self.config.ping_interval.map(|interval| {
            // Counted from the opening, unless this comes so late that the next one is due too.
            let next = later(at, interval);
            // An interval of zero would spin.
            let interval = interval.max(Duration::from_millis(1));
            if next > now {
                next
            } else {
                later(now, interval)
            }
        });
        // One more is of no use to a client that has much to read.
        if self.core.has_slack() {
            let _ = self.core.send_json(&ServerFrame::Ping);
        }
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        self.core.close(reason, code);
    }
}

impl Machine for ServerConn {
    type Event = ServerEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(message) = self.core.received(message, now) else {
            return;
        };
        let rate = self.config.limits.max_message_rate;
        if !self.core.within_rate(rate, now) {
            return self.shut(CloseReason::RateLimited, CloseFrame::POLICY);
        }
        let max = self.config.limits.max_message_bytes;
        if message.is_data() && message.len() > max {
            return self.shut(CloseReason::TooLarge { max }, CloseFrame::TOO_BIG);
        }
        match message.text() {
            Some(Ok(text)) => self.on_text(text),
            Some(Err(_)) => self.object(&binary(), Warning::Binary),
            None => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            let after = self.config.handshake_timeout.unwrap_or_default();
            return self.shut(CloseReason::HandshakeTimeout { after }, CloseFrame::POLICY);
        }
        let ping_at = self.ping_at.filter(|at| *at <= now && !self.is_closed());
        if let Some(at) = ping_at {
            self.ping(at, now);
        }
        // A client that still has much to read cannot have seen the ping behind it.
        let can_receive = self.wants_input();
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.core.poll_transmit();
        if self.blocked && self.core.has_slack() {
            self.blocked = false;
            self.core.push_event(ServerEvent::Writable, 0);
        }
        frame
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.core.poll_event(ServerEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let ping = self.ping_at.filter(|_| !self.is_closed());
        let ping = ping.map(|at| (at, "PING"));
        sooner(self.core.next_timeout(), ping)
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        let has_room = self.awaited.is_none() && self.core.has_slack();
        self.core.wants_input(has_room)
    }

    /// Returns 1 while the connection has frames of its session to come, and no room for them.
    fn in_flight(&self) -> usize {
        usize::from(self.owes && !self.is_closed())
    }

    /// Closes with this frame (1012 or 1001 at a shutdown). Queued frames are sent first.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }
}

// Prints the state, never the contents.
rpc_core::debug_fields!([] ServerConn, this => { state: this.state(), core: this.core });
