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

mod about;
mod answered;
mod asked;
mod commands;
mod config;
mod event;
mod receive;
mod resume;
mod seen;
mod sign;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rpc_core::backlog::EventBacklog;
use rpc_core::json::DecodeErrorKind;
use rpc_core::pause::ReadPause;
use rpc_core::timers::{TimerKind, Timers, later, sooner};
use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, FrameNumber, Incoming,
    Machine, Outbox, Outgoing, Str, Text,
};

use crate::frame::{Connect, Signed};
use crate::limits::REPLAY_PAUSE;
use answered::Answered;
use asked::Asked;

pub use config::{ClientConfig, reconnect_policy};
pub use event::{ClientEvent, OtherFrame, Reply, Step, Taken, Warning};
pub use resume::{Found, Resume, find_answer};
pub use seen::Seen;
pub use sign::Sign;

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// The answer to the CONNECT.
    AwaitConnected,
    /// What a stranger offers to be let in: the host has asked for it.
    AwaitOnboarding,
    /// A prompt.
    Ready,
    /// The end of a run, or the host's word about a prompt. Prompts are interjections now.
    Running,
    /// The connection has ended.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Connect,
    Onboarded,
    Replay,
    Silence,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Connect, Self::Onboarded, Self::Replay, Self::Silence];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Onboarded => "onboarded",
            Self::Replay => "replay",
            Self::Silence => "silence",
        }
    }
}

/// The client's side of one open connection. It sends the CONNECT that it is given at once, answers
/// PINGs, and takes prompts once it is let in.
///
/// It signs nothing and reads no clock: CONNECT and `ONBOARD_SUBMIT` come signed
/// ([`auth`](crate::auth)). A connection that was lost is followed by a new machine with a CONNECT
/// that names the session and the last event; the host then sends what was missed, and maybe some of
/// it twice ([`Seen`]). The machine sends nothing twice.
///
/// ```
/// use std::time::Instant;
/// use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
/// use connectonion_proto::frame::{Connect, Input, Signed};
/// use rpc_core::{Incoming, Machine};
///
/// let now = Instant::now();
/// let connect = Connect::new(Signed::none()); // sign it: most hosts want that
/// let mut conn = ClientConn::new(ClientConfig::new(), &connect, 0x5eed, now);
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
    state: ClientState,
    /// The stranger was let in, and CONNECTED has not come.
    onboarded: bool,
    session_id: Option<Str>,
    /// A run is going on, as far as the host's frames say.
    run: bool,
    asked: Asked,
    /// The answers of the user that the host may not have.
    answered: Answered,
    /// The host has refused no query about a session.
    answers_queries: bool,
    outbox: Outbox,
    events: EventBacklog<ClientEvent>,
    timers: Timers<Timer>,
    pause: ReadPause,
    /// A silence that was noticed late has been forgiven since the host was heard last.
    forgiven: bool,
    closed: Option<CloseReason>,
    /// The end has been told to the application.
    told: bool,
    /// The line is gone, so what waits in the outbox was never sent.
    cut: bool,
}

impl ClientConn {
    /// A connection that was just opened. It sends this CONNECT at once. `seed` makes the ids of
    /// what is asked; they never leave this side.
    #[must_use]
    pub fn new(
        config: impl Into<Arc<ClientConfig>>,
        connect: &Connect,
        seed: u64,
        now: Instant,
    ) -> Self {
        let config = config.into();
        let sent = config
            .limits
            .clone()
            .with_max_message_bytes(config.max_sent_bytes);
        let mut conn = Self {
            state: ClientState::AwaitConnected,
            onboarded: false,
            session_id: None,
            run: false,
            asked: Asked::new(seed, config.limits.max_pending, now),
            answered: Answered::default(),
            answers_queries: true,
            outbox: Outbox::new(&sent),
            events: EventBacklog::new(),
            timers: Timers::new(),
            pause: ReadPause::default(),
            forgiven: false,
            closed: None,
            told: false,
            cut: false,
            config,
        };
        conn.await_connected(now);
        conn.listen(now);
        if let Err(refused) = conn.outbox.json(connect) {
            conn.fail(&refused.to_string());
        }
        conn
    }

    /// A connection that ends at once, because no CONNECT could be made for it: a key that cannot
    /// sign. Another attempt would end the same way.
    #[must_use]
    pub fn without_connect(config: impl Into<Arc<ClientConfig>>, why: &str, now: Instant) -> Self {
        let connect = Connect::new(Signed::none());
        let mut conn = Self::new(config, &connect, 0, now);
        conn.outbox.discard();
        conn.fail(why);
        conn
    }

    /// What the connection waits for.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        self.state
    }

    /// The session, once the client is let in.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Whether an agent is at work, as far as the host's frames say.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.run
    }

    /// How much is under way: prompts and questions without an answer, and the run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.asked.len() + usize::from(self.run)
    }

    /// When [`handle_timeout`](Machine::handle_timeout) is wanted next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.closed.is_some() {
            return None;
        }
        let answer = self.asked.poll_timeout();
        let answer = answer.and_then(|at| self.pause.suspend(at, self.wants_input()));
        sooner(self.timers.next_timeout(), answer.map(|at| (at, "answer")))
    }

    fn await_connected(&mut self, now: Instant) {
        match self.config.connect_timeout {
            Some(timeout) => self.timers.set(Timer::Connect, later(now, timeout)),
            None => self.timers.stop(Timer::Connect),
        }
    }

    /// From now on silence counts.
    fn listen(&mut self, now: Instant) {
        if let Some(timeout) = self.config.silence_timeout {
            self.timers.set(Timer::Silence, later(now, timeout));
        }
    }

    fn pong(&mut self) {
        // Without room for it, silence is what a host hears that does not read.
        let _ = self.outbox.text(pong());
    }

    fn unexpected(&mut self, name: &'static str) {
        self.warn(Warning::Unexpected { name });
    }

    fn warn(&mut self, warning: Warning) {
        self.push(ClientEvent::Warning(warning), 0);
    }

    fn push(&mut self, event: ClientEvent, bytes: usize) {
        self.events.push(event, size_of::<ClientEvent>() + bytes);
    }

    /// An event of a run that was found going on: others may follow at once.
    fn await_replay(&mut self, now: Instant) {
        self.timers.set(Timer::Replay, later(now, REPLAY_PAUSE));
    }

    fn end_run(&mut self) {
        self.run = false;
        self.timers.stop(Timer::Replay);
        self.answered.clear();
        self.settle_state();
    }

    /// No CONNECT could be sent, and another attempt would end the same way.
    fn fail(&mut self, why: &str) {
        let message = format!("the CONNECT could not be sent: {why}");
        let retryable = false;
        self.end(CloseReason::Refused { message, retryable });
    }

    /// Sends a Close and ends. What is queued still leaves before it.
    fn shut(&mut self, reason: CloseReason, code: u16) {
        let words = match &reason {
            CloseReason::Authentication { .. } | CloseReason::Refused { .. } => String::new(),
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

    /// Ends. What is under way ends in [`poll_event`](Machine::poll_event), so that no number of
    /// questions needs room in the queue.
    fn end(&mut self, reason: CloseReason) {
        self.state = ClientState::Closed;
        self.closed.get_or_insert(reason);
        self.timers.stop_all();
    }

    /// The next of the events with which everything ends that was under way.
    fn last_events(&mut self, reason: &CloseReason) -> Option<ClientEvent> {
        if let Some((id, pending)) = self.asked.pop_any() {
            let delivery = self.delivery(pending.frame);
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
        let (frame, response) = self.answered.pop()?;
        Some(match self.delivery(frame) {
            Delivery::NotSent => ClientEvent::Unsent(response),
            _ => ClientEvent::Unconfirmed(response),
        })
    }

    fn delivery(&self, frame: FrameNumber) -> Delivery {
        if self.cut && !self.outbox.was_taken(frame) {
            Delivery::NotSent
        } else {
            Delivery::Unknown
        }
    }

    fn on_silence(&mut self, at: Instant, now: Instant) {
        let Some(patience) = self.config.silence_timeout else {
            return;
        };
        // Whoever does not read hears nothing, and neither does a machine that slept.
        let slept = now.saturating_duration_since(at) > patience;
        if !self.wants_input() || (slept && !self.forgiven) {
            self.forgiven = true;
            return self.listen(now);
        }
        let silence = CloseReason::KeepAlive { after: patience };
        self.shut(silence, CloseFrame::GOING_AWAY);
    }
}

fn pong() -> Text {
    Text::new(Bytes::from_static(br#"{"type":"PONG"}"#)).unwrap_or_default()
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        self.forgiven = false;
        self.listen(now);
        self.pause.note(self.wants_input(), now);
        match message {
            Incoming::Text(text) => self.on_text(text, now),
            Incoming::Binary(_) => {
                let error = DecodeError::new(DecodeErrorKind::Binary);
                self.warn(Warning::BadFrame(error));
            }
            _ => {}
        }
        self.pause.note(self.wants_input(), now);
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        // Whatever is queued cannot leave any more.
        self.outbox.discard();
        if self.closed.is_none() {
            self.cut = true;
            self.end(why.into());
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        while let Some((at, _)) = self.timers.poll_timeout()
            && let Some(timer) = self.timers.pop_expired(now)
        {
            match timer {
                Timer::Connect => {
                    let after = self.config.connect_timeout.unwrap_or_default();
                    let late = CloseReason::HandshakeTimeout { after };
                    return self.shut(late, CloseFrame::NORMAL);
                }
                Timer::Onboarded => {
                    self.await_connected(now);
                    self.push(ClientEvent::ConnectWanted, 0);
                }
                // Whoever does not read does not know whether more has come.
                Timer::Replay if !self.wants_input() => self.await_replay(now),
                Timer::Replay => self.push(ClientEvent::CaughtUp, 0),
                Timer::Silence => self.on_silence(at, now),
            }
            if self.closed.is_some() {
                return;
            }
        }
        while self.pause.is_over(self.wants_input(), now)
            && let Some((id, pending)) = self.asked.pop_expired(now)
        {
            let delivery = self.delivery(pending.frame);
            let result = Err(CallError::TimedOut { delivery });
            self.push(ClientEvent::Reply { id, result }, 0);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.events.pop() {
            return Some(event);
        }
        let reason = self.closed.clone()?;
        if self.told {
            return None;
        }
        let last = self.last_events(&reason);
        self.told = last.is_none();
        Some(last.unwrap_or(ClientEvent::Closed(reason)))
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
            .field("in_flight", &self.in_flight())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
