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

use std::collections::VecDeque;
use std::sync::Arc;

use rpc_core::Instant;
use rpc_core::progress::Progress;
use rpc_core::timers::sooner;
use rpc_core::{
    CallError, CloseFrame, CloseReason, Delivery, Disconnect, Incoming, Machine, MachineCore,
    Outgoing, PendingCalls,
};

use crate::error::RpcError;
use run::{Kind, Pending};

#[cfg(feature = "sse")]
pub(crate) use commands::check_request;
pub use config::{ClientConfig, reconnect_policy};
pub use event::{CallValue, ChatUpdate, ClientEvent, Failure, Outcome, Warning};
pub use id::CallId;
use id::RpcForm;
pub use stream::StreamChat;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Open: commands are accepted.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The client's side of one open connection. It accepts commands at once: the protocol has no
/// opening frame.
///
/// Every chat ends with exactly one [`ChatUpdate::Ended`], whatever the server does: a last message
/// that cannot be read ends it, and so does silence, if
/// [`chat_idle_timeout`](ClientConfig::chat_idle_timeout) is set. An `error` that names no
/// request (`rpc_unknown`) counts for the oldest unanswered request.
///
/// ```
/// use std::time::Instant;
/// use acolyte_proto::frame::ChatRequest;
/// use acolyte_proto::client::{ChatUpdate, ClientConfig, ClientConn, ClientEvent};
/// use acolyte_proto::{Incoming, Machine};
///
/// let now = Instant::now();
/// let mut conn = ClientConn::new(ClientConfig::default(), 0x5eed, now);
/// assert_eq!(conn.poll_event(), Some(ClientEvent::Ready));
/// let chat = conn.chat(&ChatRequest::new("hi", "gpt-5-mini"), now)?;
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
    pub(crate) core: MachineCore<ClientEvent>,
    calls: PendingCalls<Pending, RpcForm>,
    /// How many of the calls the server has not answered at all.
    unanswered: usize,
    /// The server's progress through the chats, which it runs one at a time.
    progress: Progress,
    /// Chats given up by the application, to be aborted as soon as there is room.
    deferred: VecDeque<(CallId, Instant)>,
    stray: u64,
}

impl ClientConn {
    /// Creates a connection that was just opened. `seed` determines the request ids of this
    /// connection and should be random.
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

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        if self.core.is_closed() {
            ClientState::Closed
        } else {
            ClientState::Ready
        }
    }

    /// Returns how many messages were dropped because they belong to nothing in flight: late
    /// messages of ended chats, and answers to requests that were never made.
    #[must_use]
    pub const fn stray_frames(&self) -> u64 {
        self.stray
    }

    /// Ends a request other than a chat.
    fn fail(&mut self, id: CallId, kind: &Kind, error: CallError<RpcError>) {
        if let Some(event) = failed(id, kind, error) {
            self.push(event);
        }
    }

    /// Ends a chat that has not ended yet. The argument of `outcome` says whether this client
    /// aborted it.
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

    /// Notes that the server has answered this request.
    fn answered(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(id)
            && !std::mem::replace(&mut call.answered, true)
        {
            self.unanswered -= 1;
        }
    }

    /// Removes a request in flight.
    fn take(&mut self, id: CallId) -> Option<Pending> {
        let call = self.calls.complete(id).live()?;
        self.unanswered -= usize::from(!call.answered);
        self.progress.ended(call.frame);
        Some(call)
    }

    fn push(&mut self, event: ClientEvent) {
        let bytes = self.core.take_frame_bytes();
        self.core.push_event(event, bytes);
    }

    fn delivery(&self, call: &Pending) -> Delivery {
        if call.answered {
            Delivery::Delivered
        } else {
            self.core.delivery(call.frame)
        }
    }

    /// Returns the event for a request that ends with the connection.
    fn ended(&self, id: CallId, call: &Pending, reason: CloseReason) -> Option<ClientEvent> {
        let delivery = self.delivery(call);
        if let Kind::Chat(_) = call.kind {
            let update = ChatUpdate::Ended(Outcome::Closed { reason, delivery });
            return Some(ClientEvent::Chat { id, update });
        }
        failed(id, &call.kind, CallError::Closed { reason, delivery })
    }
}

/// Returns the event for a failed request other than a chat; `None` if the request was cancelled.
fn failed(id: CallId, kind: &Kind, error: CallError<RpcError>) -> Option<ClientEvent> {
    let result = Err(error);
    match kind {
        Kind::Abort { quiet: true, .. } | Kind::Chat(_) => None,
        _ => Some(ClientEvent::Reply { id, result }),
    }
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        // Known servers send text only, and known clients take a binary message as text.
        match self.core.received(message, now).and_then(Incoming::text) {
            Some(Ok(text)) => self.on_text(text, now),
            Some(Err(error)) => self.push(ClientEvent::Warning(Warning::BadFrame(error))),
            None => {}
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

    /// Closes with this frame. Queued frames are sent first; requests in flight end at once.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.flush_deferred();
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns the number of requests and chats in flight.
    fn in_flight(&self) -> usize {
        self.calls.len()
    }

    fn event_bytes(&self) -> usize {
        self.core.event_bytes()
    }
}

rpc_core::debug_fields!([] ClientConn, this => {
    state: this.state(),
    in_flight: this.calls.len(),
    core: this.core,
});
