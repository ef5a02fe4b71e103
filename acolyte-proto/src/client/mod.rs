//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! Ready ─ close, loss, silence ─> Closed        a connection: there is no opening
//!
//! (sent) ─> accepted ─> queued* ─> started ─> event* ─> done | error        a chat
//!    └────────┴───────────┴── refused, aborted, timed out, closed
//! ```

mod answers;
mod commands;
mod config;
mod event;
mod id;
mod run;
mod stream;
#[cfg(test)]
mod tests;
mod times;
mod transcript;
mod weight;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::backlog::EventBacklog;
use rpc_core::json::DecodeErrorKind;
use rpc_core::keepalive::Heart;
use rpc_core::pause::ReadPause;
use rpc_core::progress::Progress;
use rpc_core::timers::sooner;
use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, Incoming, Machine,
    Outbox, Outgoing, PendingCalls,
};

use run::{Kind, Pending};

#[cfg(feature = "sse")]
pub(crate) use commands::check_request;
pub use config::{ClientConfig, reconnect_policy};
pub use event::{ChatUpdate, ClientEvent, Failure, Outcome, RpcError, Warning};
pub use id::{CallId, RpcForm};
pub use stream::StreamChat;
pub use transcript::{ToolRun, Transcript};

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Nothing: commands are taken.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The client's side of one open connection. It takes commands at once: the protocol has no opening.
///
/// Every chat ends with exactly one [`ChatUpdate::Ended`], whatever the server does: a last message
/// that cannot be read ends it, and so does silence, if
/// [`chat_idle_timeout`](ClientConfig::with_chat_idle_timeout) is set. An `error` that names no request
/// (`rpc_unknown`) is taken for the oldest request that is unanswered.
///
/// ```
/// use std::time::Instant;
/// use acolyte_proto::frame::ChatRequest;
/// use acolyte_proto::client::{ChatUpdate, ClientConfig, ClientConn, ClientEvent};
/// use rpc_core::{Incoming, Machine};
///
/// let now = Instant::now();
/// let mut conn = ClientConn::new(ClientConfig::new(), 0x5eed, now);
/// assert_eq!(conn.poll_event(), Some(ClientEvent::Ready));
/// let chat = conn.start_chat(&ChatRequest::new("hi", "gpt-5-mini"), now)?;
/// assert!(conn.poll_transmit().is_some()); // hand it to your socket
///
/// let answer = format!(r#"{{"id":"{chat}","type":"chat.started"}}"#);
/// conn.handle_message(Incoming::Text(&answer), now);
/// let update = ChatUpdate::Started;
/// assert_eq!(conn.poll_event(), Some(ClientEvent::Chat { id: chat, update }));
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    calls: PendingCalls<Pending, RpcForm>,
    /// How many of the calls the server has said nothing to.
    unanswered: usize,
    /// What the server does for the chats, of which it runs one after the other.
    progress: Progress,
    /// Chats that nobody waits for any more, to be aborted as soon as there is room.
    owed: VecDeque<(CallId, Instant)>,
    outbox: Outbox,
    events: EventBacklog<ClientEvent>,
    pause: ReadPause,
    heart: Heart,
    closed: Option<CloseReason>,
    /// The end has been told to the application.
    told: bool,
    /// The line is gone, so what waits in the outbox was never sent.
    cut: bool,
    stray: u64,
}

impl ClientConn {
    /// A connection that was just opened. `seed` makes the request ids of this connection; it
    /// should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            calls: PendingCalls::new(seed, config.limits.max_pending, now),
            unanswered: 0,
            progress: Progress::default(),
            owed: VecDeque::new(),
            outbox: Outbox::new(&config.limits),
            events: EventBacklog::new(),
            pause: ReadPause::default(),
            heart: Heart::new(config.keep_alive, now),
            closed: None,
            told: false,
            cut: false,
            stray: 0,
            config,
        };
        conn.push(ClientEvent::Ready);
        conn
    }

    /// What the connection waits for.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        match self.closed {
            None => ClientState::Ready,
            Some(_) => ClientState::Closed,
        }
    }

    /// How many requests and chats are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// How many messages were dropped because they belong to nothing in flight: late ones of chats
    /// that have ended, answers to what nobody asked.
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
        sooner(self.heart.next_timeout(), call.map(|at| (at, "call")))
    }

    /// Ends a request that is no chat.
    fn fail(&mut self, id: CallId, kind: &Kind, error: CallError<RpcError>) {
        let event = match *kind {
            Kind::Status => ClientEvent::Status {
                id,
                result: Err(error),
            },
            Kind::Task => ClientEvent::TaskStatus {
                id,
                result: Err(error),
            },
            Kind::Abort { chat, quiet: false } => ClientEvent::AbortResult {
                id,
                chat,
                result: Err(error),
            },
            Kind::Abort { quiet: true, .. } | Kind::Chat(_) => return,
        };
        self.push(event);
    }

    /// Ends a chat, unless it has ended. `outcome` is told whether this side aborted it.
    fn end_chat(&mut self, id: CallId, outcome: impl FnOnce(bool) -> Outcome) {
        let is_chat = |call: &Pending| matches!(call.kind, Kind::Chat(_));
        if !self.calls.get(id).is_some_and(is_chat) {
            return;
        }
        if let Some(call) = self.take(id)
            && let Kind::Chat(run) = call.kind
        {
            let update = ChatUpdate::Ended(outcome(run.aborting));
            self.push(ClientEvent::Chat { id, update });
        }
    }

    /// The server has said something to this request.
    fn answered(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(id)
            && !std::mem::replace(&mut call.answered, true)
        {
            self.unanswered -= 1;
        }
    }

    /// Takes a request in flight out.
    fn take(&mut self, id: CallId) -> Option<Pending> {
        let call = self.calls.complete(id).live()?;
        self.unanswered -= usize::from(!call.answered);
        self.progress.ended(call.frame);
        Some(call)
    }

    fn push(&mut self, event: ClientEvent) {
        let weight = event.weight();
        self.events.push(event, weight);
    }

    /// Sends a Close and ends. What is queued still leaves before it.
    fn shut(&mut self, reason: CloseReason, frame: CloseFrame) {
        if self.closed.is_none() {
            self.outbox.close(frame);
            self.end(reason);
        }
    }

    /// Ends. What is in flight ends in [`poll_event`](Machine::poll_event), so that no number of
    /// requests needs room in the queue.
    fn end(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.heart.stop();
        self.owed = VecDeque::new();
    }

    fn delivery(&self, call: &Pending) -> Delivery {
        if call.answered {
            Delivery::Delivered
        } else if self.cut && !self.outbox.was_taken(call.frame) {
            Delivery::NotSent
        } else {
            Delivery::Unknown
        }
    }

    /// Ends a request because the connection has ended.
    fn ended(&mut self, id: CallId, call: &Pending, reason: &CloseReason) {
        let delivery = self.delivery(call);
        let reason = reason.clone();
        if let Kind::Chat(_) = call.kind {
            let update = ChatUpdate::Ended(Outcome::Closed { reason, delivery });
            return self.push(ClientEvent::Chat { id, update });
        }
        self.fail(id, &call.kind, CallError::Closed { reason, delivery });
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
            // Known servers send text only, and known clients take this as text.
            Incoming::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.on_text(text, now),
                Err(_) => {
                    let error = DecodeError::new(DecodeErrorKind::Binary);
                    self.push(ClientEvent::Warning(Warning::BadFrame(error)));
                }
            },
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
        while self.pause.is_over(self.wants_input(), now)
            && let Some(id) = self.calls.peek_expired(now)
        {
            self.on_deadline(id, now);
        }
        let deaf = !self.pause.is_over(self.wants_input(), now);
        if let Some(gone) = self.heart.beat(now, deaf, &mut self.outbox) {
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, gone.to_string());
            self.shut(gone, frame);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.send_owed();
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        loop {
            if let Some(event) = self.events.pop() {
                return Some(event);
            }
            let reason = self.closed.clone()?;
            if let Some((id, call)) = self.calls.pop_any() {
                self.ended(id, &call, &reason);
            } else if self.told {
                return None;
            } else {
                self.told = true;
                return Some(ClientEvent::Closed(reason));
            }
        }
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
            .field("state", &self.state())
            .field("in_flight", &self.calls.len())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
