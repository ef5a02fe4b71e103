//! The server's side of one connection: [`ServerConn`].
//!
//! The machine knows what one connection can know: what a frame is, what may come when, and what
//! waits at the gate. Who may come in is decided with [`auth`](crate::auth) and
//! [`trust`](crate::trust); what a session is and who watches it is the business of whoever sees all
//! connections, for example of a [`Hub`](crate::hub::Hub).
//!
//! ```text
//!                  CONNECT            gate            ONBOARD_SUBMIT
//!   AwaitConnect ──────────► verdict ──────► Gated ──────────────────► verdict
//!        ▲                    │   │            ▲ CONNECT (again)        │    │
//!        └────── refuse ──────┘   │            └──────── refuse ────────┘    │ welcome
//!                                 ▼                                          ▼
//!                               Ready ◄───────────── accept ────────── verdict on the CONNECT
//! ```

mod config;
mod event;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::backlog::Backlog;
use rpc_core::decode::{FrameCopy, SharedStr};
use rpc_core::keepalive::{Heart, Pulse};
use rpc_core::rate::Bucket;
use rpc_core::timers::{TimerKind, Timers, later, sooner};
use rpc_core::{
    CloseFrame, CloseReason, Disconnect, Incoming, Machine, Outbox, Outgoing, Refused, Text,
};
use serde::Serialize;

use crate::auth::Address;
use crate::error::{binary, refusal, unknown_type};
use crate::frame::{
    ClientFrame, Connect, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck,
    ServerFrame,
};
use crate::limits::{AUTHENTICATE_FIRST, PROMPT_REQUIRED};

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
    /// The application has to answer a CONNECT, an ONBOARD_SUBMIT or an INPUT.
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
    Connect(Box<Connect>),
    Onboard,
    /// The gate was passed.
    Onboarded,
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
    /// What came while a verdict was awaited.
    held: Backlog<String>,
    held_bytes: usize,
    outbox: Outbox,
    /// Somebody was told that there is no room.
    is_blocked: bool,
    /// Each with the size of its frame.
    events: Backlog<(ServerEvent, usize)>,
    event_bytes: usize,
    timers: Timers<Timer>,
    /// When the next PING is due.
    ping_at: Instant,
    heart: Heart,
    bucket: Option<Bucket>,
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
        let rate = config.limits.max_message_rate;
        Self {
            stage: Stage::Outside,
            awaited: None,
            is_newcomer: false,
            held: Backlog::new(),
            held_bytes: 0,
            outbox: Outbox::new(&config.limits),
            is_blocked: false,
            events: Backlog::new(),
            event_bytes: 0,
            timers,
            ping_at,
            heart: Heart::new(config.keep_alive, now),
            bucket: rate.map(|rate| Bucket::new(rate, now)),
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

    /// Lets the client in: the answer to a CONNECT.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no CONNECT waits, [`Refused::Closed`], [`Refused::QueueFull`] if the
    /// client reads too slowly, [`Refused::TooLarge`]. Nothing has changed then.
    pub fn accept(&mut self, connected: &Connected) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Connect(_) | Awaited::Onboarded))?;
        self.outbox.json(connected)?;
        self.stage = Stage::Inside;
        self.timers.stop(Timer::Connect);
        self.answered();
        Ok(())
    }

    /// Lets the CONNECT wait until this stranger has become a contact.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept); [`Refused::UnknownId`] also if the client is in already.
    pub fn gate(&mut self, identity: Address, required: &OnboardRequired) -> Result<(), Refused> {
        let is_inside = matches!(self.stage, Stage::Inside);
        self.check_awaited(|it| matches!(it, Awaited::Connect(_)) && !is_inside)?;
        self.outbox.json(required)?;
        if let Some(Awaited::Connect(stash)) = self.awaited.take() {
            self.stage = Stage::Gated { identity, stash };
        }
        self.answered();
        Ok(())
    }

    /// Makes a contact of the stranger: the answer to an ONBOARD_SUBMIT. The CONNECT that waits is
    /// handed out [next](ServerEvent::Onboarded).
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn welcome(&mut self, success: &OnboardSuccess) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Onboard))?;
        self.outbox.json(success)?;
        if let Stage::Gated { identity, stash } = std::mem::replace(&mut self.stage, Stage::Outside)
        {
            self.is_newcomer = true;
            self.awaited = Some(Awaited::Onboarded);
            let connect = *stash;
            self.push(ServerEvent::Onboarded { identity, connect }, 0);
        }
        Ok(())
    }

    /// A run has begun: the answer to an INPUT that nothing is sent for.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no INPUT waits, [`Refused::Closed`].
    pub fn begun(&mut self) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.answered();
        Ok(())
    }

    /// The agent that works already will read the prompt: the answer to an INPUT.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn acknowledge(&mut self, ack: &RuntimeInputAck) -> Result<(), Refused> {
        self.check_awaited(|it| matches!(it, Awaited::Input))?;
        self.outbox.json(ack)?;
        self.answered();
        Ok(())
    }

    /// Refuses the frame that waits for an answer. The connection stays open and where it was: at
    /// the gate with the CONNECT that waits there, or inside with its session.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn refuse(&mut self, error: &ErrorFrame) -> Result<(), Refused> {
        self.check_awaited(|_| true)?;
        self.outbox.json(error)?;
        self.answered();
        Ok(())
    }

    /// Sends a frame that answers no CONNECT and no INPUT: SESSION_STATUS, ADMIN_RESULT, ERROR.
    ///
    /// # Errors
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], [`Refused::Encode`], [`Refused::Closed`].
    /// Nothing has changed then.
    pub fn tell(&mut self, frame: &impl Serialize) -> Result<(), Refused> {
        self.outbox.json(frame).map(drop)
    }

    /// As [`tell`](Self::tell), of a frame that was encoded before, sharing its bytes.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell).
    pub fn tell_text(&mut self, frame: Text) -> Result<(), Refused> {
        self.outbox.text(frame).map(drop)
    }

    /// Sends a frame that was encoded before, sharing its bytes: an event, an OUTPUT.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell), and [`Refused::NotReady`] if the client is not in.
    pub fn send(&mut self, frame: Text) -> Result<(), Refused> {
        match self.stage {
            Stage::Inside => self.outbox.text(frame).map(drop),
            Stage::Closed => Err(Refused::Closed),
            Stage::Outside | Stage::Gated { .. } => Err(Refused::NotReady),
        }
    }

    /// Whether there is room for events without crowding out answers. If there is none,
    /// [`ServerEvent::Writable`] tells when there is again.
    pub fn has_room(&mut self) -> bool {
        self.is_blocked = !self.outbox.has_slack();
        !self.is_blocked
    }

    /// Closes with code 1000. What is queued is sent first.
    pub fn close(&mut self, now: Instant) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, ""), now);
    }

    /// Closes with this frame (1012 or 1001 when the server goes away). What is queued is sent first.
    pub fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.shut_with(CloseReason::Local, frame);
    }

    /// When [`handle_timeout`](Machine::handle_timeout) is wanted next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let timer = self.timers.poll_timeout();
        let timer = timer.map(|(at, kind)| (at, kind.name()));
        let heart = self.heart.poll_timeout();
        let heart = heart.map(|(at, kind)| (at, kind.name()));
        sooner(timer, heart)
    }

    fn check_awaited(&self, fits: impl Fn(&Awaited) -> bool) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        match &self.awaited {
            Some(awaited) if fits(awaited) => Ok(()),
            _ => Err(Refused::UnknownId),
        }
    }

    /// What was awaited has been answered: goes on with what came after it, until the next question.
    fn answered(&mut self) {
        self.awaited = None;
        while self.awaited.is_none()
            && !self.is_closed()
            && let Some(text) = self.held.pop_front()
        {
            self.held_bytes -= text.len();
            self.on_text(&text);
        }
    }

    fn on_text(&mut self, text: &str) {
        if self.awaited.is_some() {
            return self.hold(text);
        }
        let frame = match ClientFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.object(&refusal(text, &error), error.into()),
        };
        let is_newcomer = self.is_newcomer;
        if !matches!(frame, ClientFrame::Pong) {
            self.is_newcomer = false;
        }
        let copy = || FrameCopy::of(text);
        let size = text.len();
        match frame {
            ClientFrame::Pong => self.push(ServerEvent::Pong, 0),
            ClientFrame::Connect(connect) => {
                let connect = connect.to_shared(&copy());
                self.awaited = Some(Awaited::Connect(Box::new(connect.clone())));
                self.push(ServerEvent::Connect { connect }, size);
            }
            ClientFrame::SessionQuery(query) => {
                let query = query.to_shared(&copy());
                self.push(ServerEvent::SessionQuery { query }, size);
            }
            ClientFrame::Admin(request) => {
                let request = request.to_shared(&copy());
                self.push(ServerEvent::Admin { request }, size);
            }
            ClientFrame::OnboardSubmit(submit) => match &self.stage {
                Stage::Gated { identity, .. } => {
                    let (identity, submit) = (*identity, submit.to_shared(&copy()));
                    self.awaited = Some(Awaited::Onboard);
                    self.push(ServerEvent::Onboard { identity, submit }, size);
                }
                Stage::Outside => self.not_connected("ONBOARD_SUBMIT"),
                _ => {
                    let error = ErrorFrame::new("onboarding is not required");
                    self.object(&error, Warning::NotGated);
                }
            },
            ClientFrame::Unknown(unknown) => {
                let tag = SharedStr::from(&*unknown.tag);
                self.object(&unknown_type(&unknown), Warning::UnknownType { tag });
            }
            ClientFrame::Input(input) => {
                let is_empty = |prompt: Option<&str>| prompt.is_none_or(str::is_empty);
                let has_no_prompt = is_empty(input.prompt.as_deref())
                    && is_empty(input.signed.text("prompt").as_deref());
                if has_no_prompt && is_newcomer {
                    return self.push(ServerEvent::Warning(Warning::EmptyInput), 0);
                }
                if !matches!(self.stage, Stage::Inside) {
                    return self.not_connected("INPUT");
                }
                if has_no_prompt {
                    return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
                }
                let input = input.to_shared(&copy());
                self.awaited = Some(Awaited::Input);
                self.push(ServerEvent::Input { input }, size);
            }
            ClientFrame::Response(response) if self.is_inside(response.answer.name()) => {
                let response = response.to_shared(&copy());
                self.push(ServerEvent::Response { response }, size);
            }
            ClientFrame::ModeChange(change) if self.is_inside("mode_change") => {
                let change = change.to_shared(&copy());
                self.push(ServerEvent::ModeChange { change }, size);
            }
            ClientFrame::PromptUpdate(update) if self.is_inside("prompt_update") => {
                let update = update.to_shared(&copy());
                self.push(ServerEvent::PromptUpdate { update }, size);
            }
            ClientFrame::Interrupt if self.is_inside("INTERRUPT") => {
                self.push(ServerEvent::Interrupt, 0);
            }
            // Answered by `is_inside`.
            ClientFrame::Response(_)
            | ClientFrame::ModeChange(_)
            | ClientFrame::PromptUpdate(_)
            | ClientFrame::Interrupt => {}
        }
    }

    /// Whether the client is in; if not, it is told to come in first.
    fn is_inside(&mut self, tag: &'static str) -> bool {
        let is_inside = matches!(self.stage, Stage::Inside);
        if !is_inside {
            self.not_connected(tag);
        }
        is_inside
    }

    fn not_connected(&mut self, tag: &'static str) {
        let error = ErrorFrame::new(AUTHENTICATE_FIRST);
        self.object(&error, Warning::NotConnected { tag });
    }

    /// Answers a frame that is not handed out.
    fn object(&mut self, error: &ErrorFrame, warning: Warning) {
        let size = match &warning {
            Warning::UnknownType { tag } => tag.len(),
            _ => 0,
        };
        self.push(ServerEvent::Warning(warning), size);
        if self.outbox.json(error).is_err() {
            // The client asks and does not read the answers.
            self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
        }
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

    fn push(&mut self, event: ServerEvent, size: usize) {
        self.event_bytes += size;
        self.events.push_back((event, size));
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
        self.is_blocked = false;
        self.timers.stop_all();
        self.heart.stop();
        self.held = Backlog::new();
        self.held_bytes = 0;
        self.push(ServerEvent::Closed(reason), 0);
    }
}

impl Machine for ServerConn {
    type Event = ServerEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if self.is_closed() {
            return;
        }
        self.heart.heard();
        let data = matches!(message, Incoming::Text(_) | Incoming::Binary(_));
        if data && self.bucket.as_mut().is_some_and(|bucket| !bucket.take(now)) {
            return self.shut(CloseReason::RateLimited, CloseFrame::POLICY);
        }
        let max = self.config.limits.max_message_bytes;
        if data && message.len() > max {
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
        while let Some(pulse) = self.heart.pop_due(now, deaf) {
            match pulse {
                Pulse::Ping => self.outbox.ping(),
                Pulse::Dead => {
                    let after = self.config.keep_alive.pong_timeout;
                    self.outbox.abort();
                    return self.end(CloseReason::KeepAlive { after });
                }
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.outbox.pop();
        if self.is_blocked && self.outbox.has_slack() {
            self.is_blocked = false;
            self.push(ServerEvent::Writable, 0);
        }
        frame
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        let (event, size) = self.events.pop_front()?;
        self.event_bytes -= size;
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    fn wants_input(&self) -> bool {
        let limits = &self.config.limits;
        self.is_closed()
            || (self.awaited.is_none()
                && self.events.len() < limits.max_events
                && self.event_bytes < limits.max_event_bytes
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
