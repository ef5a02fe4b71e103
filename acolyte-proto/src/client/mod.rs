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

use rpc_core::json::DecodeErrorKind;
use rpc_core::progress::Progress;
use rpc_core::timers::sooner;
use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, Incoming, Machine,
    MachineCore, Outgoing, PendingCalls,
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
    core: MachineCore<ClientEvent>,
    calls: PendingCalls<Pending, RpcForm>,
    /// How many of the calls the server has said nothing to.
    unanswered: usize,
    /// What the server does for the chats, of which it runs one after the other.
    progress: Progress,
    /// Chats that nobody waits for any more, to be aborted as soon as there is room.
    deferred: VecDeque<(CallId, Instant)>,
    stray: u64,
}

impl ClientConn {
    /// A connection that was just opened. `seed` makes the request ids of this connection; it
    /// should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            core: MachineCore::new(&config.limits),
            calls: PendingCalls::new(seed, config.limits.max_pending, now),
            unanswered: 0,
            progress: Progress::default(),
            deferred: VecDeque::new(),
            stray: 0,
            config,
        };
        conn.core.start_keepalive(&conn.config.keep_alive, now);
        conn.push(ClientEvent::Ready);
        conn
    }

    /// What the connection waits for.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        if self.core.is_closed() {
            ClientState::Closed
        } else {
            ClientState::Ready
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
        let call = self.core.unless_paused(self.calls.poll_timeout());
        sooner(self.core.next_timeout(), call.map(|at| (at, "call")))
    }

    /// Ends a request that is no chat.
    fn fail(&mut self, id: CallId, kind: &Kind, error: CallError<RpcError>) {
        if let Some(event) = failed(id, kind, error) {
            self.push(event);
        }
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
        self.core.push_event(event, weight);
    }

    fn delivery(&self, call: &Pending) -> Delivery {
        if call.answered {
            Delivery::Delivered
        } else {
            self.core.delivery(call.frame)
        }
    }

    /// The event with which a request ends because the connection has ended.
    fn ended(&self, id: CallId, call: &Pending, reason: CloseReason) -> Option<ClientEvent> {
        let delivery = self.delivery(call);
        if let Kind::Chat(_) = call.kind {
            let update = ChatUpdate::Ended(Outcome::Closed { reason, delivery });
            return Some(ClientEvent::Chat { id, update });
        }
        failed(id, &call.kind, CallError::Closed { reason, delivery })
    }
}

/// The event with which a request ends that is no chat; `None` if nobody waits for it.
fn failed(id: CallId, kind: &Kind, error: CallError<RpcError>) -> Option<ClientEvent> {
    Some(match *kind {
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
        Kind::Abort { quiet: true, .. } | Kind::Chat(_) => return None,
    })
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        match self.core.received(message, now) {
            Some(Incoming::Text(text)) => self.on_text(text, now),
            // Known servers send text only, and known clients take this as text.
            Some(Incoming::Binary(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => self.on_text(text, now),
                Err(_) => {
                    let error = DecodeError::new(DecodeErrorKind::Binary);
                    self.push(ClientEvent::Warning(Warning::BadFrame(error)));
                }
            },
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.core.may_expire(now)
            && let Some(id) = self.calls.peek_expired(now)
        {
            self.on_deadline(id, now);
        }
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, true, now) {
            self.core.close(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.flush_deferred();
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.core.pop_event() {
            return Some(event);
        }
        let reason = self.core.close_reason()?;
        while let Some((id, call)) = self.calls.pop_any() {
            let ended = self.ended(id, &call, reason.clone());
            if ended.is_some() {
                return ended;
            }
        }
        self.core.poll_event(ClientEvent::Closed)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        self.core.wants_input(true)
    }
}

/// Prints where it stands, nothing of what it carries.
impl fmt::Debug for ClientConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConn")
            .field("state", &self.state())
            .field("in_flight", &self.calls.len())
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}
