//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! (token sent) ─> AwaitHello ─ hello ─> Ready
//!                     │ refused, silence  │
//!                     └─────> Closed <────┘
//! ```

mod commands;
mod config;
mod event;
mod pending;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rpc_core::Instant;
use rpc_core::json::{DecodeErrorKind, find_member};
use rpc_core::progress::Progress;
use rpc_core::timers::sooner;
use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, Incoming, Json,
    Machine, MachineCore, Outgoing, PendingCalls, Str,
};

use crate::error::{ErrorKind, RpcError, readable};
use crate::frame::{Frequent, Hello, ServerFrame, StreamEvent, Token};
use crate::id::UNREADABLE_ID;
use crate::limits::{AUTH_FAILED_CODE, CHAT_IDLE_TIMEOUT};
use pending::{Kind, Pending};

pub use config::{ClientConfig, reconnect_policy};
pub use event::{ChatSummary, ClientEvent};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Waiting for the gateway's hello.
    AwaitHello,
    /// Ready: commands are accepted.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The result of a request of any kind.
type End = Result<Json, CallError<RpcError>>;

/// The client's side of one open connection. It sends the token, if it has one, and accepts
/// commands after the gateway's hello.
///
/// A refused token ends it with [`CloseReason::Authentication`]; a new connection does not help. A
/// refusal is an error frame that says so, the close code 4001, an orderly close before the hello,
/// or silence after no token was sent; the last two only if the gateway has not admitted the client
/// [before](Self::again). A connection lost before the hello is [`CloseReason::Lost`].
///
/// # Timeouts
/// Known gateways answer the requests of a connection one after the other, so a request waits for
/// those before it. Its timeout runs from the gateway's last progress: a frame about the request,
/// or about an earlier one that has not ended, even if the application has
/// [cancelled](Self::cancel) that one. Frames about later requests do not count. So a request that
/// a concurrent gateway loses times out when the requests before it have ended and no frame about
/// it has arrived for the length of its timeout; and if the gateway falls silent, all requests time
/// out. No request times out while [nothing is read](Machine::wants_input).
///
/// The total timeout of a request is separate:
/// [`chat_total_timeout`](ClientConfig::chat_total_timeout) and
/// [`set_total_timeout`](Self::set_total_timeout).
///
/// ```
/// use std::time::Instant;
/// use exoclaw_proto::client::{ClientConfig, ClientConn, ClientState};
/// use exoclaw_proto::{Incoming, Machine};
///
/// let now = Instant::now();
/// let config = ClientConfig::new("secret");
/// let mut conn = ClientConn::new(config, 0x5eed, now);
/// let token = conn.poll_transmit(); // hand it to your socket
/// assert!(token.is_some());
/// conn.handle_message(Incoming::Text(r#"{"ok":true,"version":"0.1.0"}"#), now);
/// assert_eq!(conn.state(), ClientState::Ready);
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    pub(crate) core: MachineCore<ClientEvent>,
    /// Whether the hello has arrived.
    ready: bool,
    calls: PendingCalls<Pending>,
    /// How many of them were cancelled.
    forgotten: usize,
    progress: Progress,
    /// Whether an earlier connection with the same configuration was admitted.
    let_in_before: bool,
    /// Whether a token was sent that the gateway may answer as a bad request, because it requires
    /// none.
    token_echo: bool,
    stray: u64,
}

impl ClientConn {
    /// Creates the machine of a connection that was just opened. `seed` generates the request ids
    /// of this connection; it should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            core: MachineCore::new(&config.limits),
            ready: false,
            // Forgotten ones have room of their own.
            calls: PendingCalls::new(seed, config.limits.max_pending.saturating_mul(2), now),
            forgotten: 0,
            progress: Progress::default(),
            let_in_before: false,
            token_echo: config.token.is_some(),
            stray: 0,
            config,
        };
        let wait = match &conn.config.token {
            Some(_) => conn.config.handshake_timeout,
            None => conn.config.tokenless_handshake_timeout,
        };
        conn.core.start_timer("hello", wait, now);
        conn.send_token();
        conn
    }

    /// Creates a machine like [`new`](Self::new), after an earlier connection with the same
    /// configuration was admitted. Then only a refusal in words or the code 4001 counts as a
    /// refused token; silence, or a Close before the hello, is a temporary fault.
    #[must_use]
    pub fn again(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let mut conn = Self::new(config, seed, now);
        conn.let_in_before = true;
        conn
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        match (self.core.is_closed(), self.ready) {
            (true, _) => ClientState::Closed,
            (false, true) => ClientState::Ready,
            (false, false) => ClientState::AwaitHello,
        }
    }

    /// Returns how many frames were dropped because they belong to nothing in flight: late frames
    /// of chats that were cancelled or have ended, unexpected answers, a second hello.
    #[must_use]
    pub const fn stray_frames(&self) -> u64 {
        self.stray
    }

    fn send_token(&mut self) {
        let Some(token) = &self.config.token else {
            return;
        };
        if let Err(refused) = self.core.send_json(&Token::new(token.expose().as_str())) {
            // The token itself does not fit, so another attempt would end the same way.
            let message = format!("the token could not be sent: {refused}");
            self.core
                .close(CloseReason::Authentication { message }, CloseFrame::NORMAL);
        }
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        let limits = &self.config.limits;
        match Frequent::decode(text, limits) {
            Some((id, Frequent::Result(result))) => return self.end_call(id, Ok(result), now),
            Some((id, Frequent::Text(text))) => {
                return self.on_progress(id, StreamEvent::Text(text), now);
            }
            None => {}
        }
        match ServerFrame::decode_other(text, limits) {
            Ok(ServerFrame::Hello(hello)) => self.on_hello(hello, now),
            Ok(ServerFrame::AuthFailed { error, .. }) => self.refused(&error),
            Ok(ServerFrame::Result { id, result }) => self.end_call(&id, Ok(result), now),
            Ok(ServerFrame::Error { id, error }) => self.on_error(id.as_deref(), error, now),
            Ok(ServerFrame::Stream { id, event }) => self.on_step(&id, event, now),
            Err(error) => self.on_bad_frame(error, text, now),
        }
    }

    fn on_hello(&mut self, hello: Hello, now: Instant) {
        if self.ready {
            self.stray += 1;
            return;
        }
        self.ready = true;
        self.core.stop_timer();
        // Known gateways take a ping before the token for a bad token.
        self.core.start_keepalive(&self.config.keep_alive, now);
        self.push(ClientEvent::Ready(hello));
    }

    fn on_error(&mut self, id: Option<&str>, words: Str, now: Instant) {
        match id.filter(|id| *id != UNREADABLE_ID) {
            Some(id) => self.end_call(id, Err(remote(words)), now),
            None => self.on_gateway_error(RpcError::new(words)),
        }
    }

    fn on_gateway_error(&mut self, error: RpcError) {
        match error.kind() {
            ErrorKind::Authentication => self.refused(error.message()),
            ErrorKind::Parse if self.token_echo => self.token_echo = false,
            _ => self.push(ClientEvent::GatewayError(error)),
        }
    }

    fn on_step(&mut self, id: &str, event: StreamEvent, now: Instant) {
        match event {
            StreamEvent::Done => self.end_call(id, Ok(Json::NULL), now),
            StreamEvent::Error(words) => self.end_call(id, Err(remote(words)), now),
            event => self.on_progress(id, event, now),
        }
    }

    fn on_progress(&mut self, id: &str, event: StreamEvent, now: Instant) {
        let found = CallId::parse(id).and_then(|id| Some((id, self.calls.get_mut(id)?)));
        let Some((id, pending)) = found else {
            self.stray += 1;
            return;
        };
        self.progress.on_frame(pending.frame, now);
        let Kind::Chat(summary) = &mut pending.kind else {
            self.stray += 1;
            return;
        };
        summary.add(&event);
        self.push(ClientEvent::Chat { id, event });
    }

    /// Handles a frame that does not decode. It still counts as progress of its chat; and a failed
    /// chat must not look successful because its error text is missing.
    fn on_bad_frame(&mut self, error: DecodeError, text: &str, now: Instant) {
        let readable_size = text.len() <= self.config.limits.max_message_bytes;
        let member = |name| find_member(text, name).filter(|_| readable_size);
        self.push(ClientEvent::Warning(error));
        let Some(id) = member("id") else {
            return;
        };
        let Some(id) = id.as_str() else {
            return;
        };
        let event = member("event");
        if event.as_ref().and_then(Json::as_str).as_deref() == Some("error") {
            let words = member("data").map(readable).unwrap_or_default();
            self.end_call(&id, Err(remote(words)), now);
        } else if let Some(pending) = CallId::parse(&id).and_then(|id| self.calls.get(id)) {
            self.progress.on_frame(pending.frame, now);
        }
    }

    /// Handles the end of a request.
    fn end_call(&mut self, id: &str, end: End, now: Instant) {
        let Some(id) = CallId::parse(id) else {
            self.stray += 1;
            return;
        };
        if let Some(pending) = self.calls.get(id) {
            self.progress.on_frame(pending.frame, now);
        }
        let Some(pending) = self.take(id) else {
            self.stray += 1;
            return;
        };
        // Answers to requests come behind the one to the token.
        self.token_echo = false;
        match ended(id, &pending.kind, end) {
            Some(event) => self.push(event),
            None => self.stray += 1,
        }
    }

    /// Removes a request in flight.
    fn take(&mut self, id: CallId) -> Option<Pending> {
        let pending = self.calls.complete(id).live()?;
        self.progress.ended(pending.frame);
        self.forgotten -= usize::from(pending.is_forgotten());
        Some(pending)
    }

    /// Marks a request as cancelled. The gateway continues to work on it, and later requests wait
    /// for it, so it is kept as long as the gateway makes progress.
    fn forget(&mut self, id: CallId, now: Option<Instant>) -> Option<Pending> {
        let pending = self.calls.get_mut(id).filter(|it| !it.is_forgotten())?;
        if self.forgotten >= self.config.limits.max_pending {
            return self.take(id);
        }
        let idle = Some(self.config.chat_idle_timeout.unwrap_or(CHAT_IDLE_TIMEOUT));
        let kept = Pending {
            frame: pending.frame,
            idle,
            until: None,
            kind: Kind::Forgotten,
        };
        let since = now.or_else(|| self.progress.since(kept.frame));
        let deadline = since.and_then(|since| kept.deadline(since));
        let pending = std::mem::replace(pending, kept);
        self.forgotten += 1;
        self.calls.extend(id, deadline);
        Some(pending)
    }

    /// Handles the deadline of a request: it ends, unless the gateway has made progress meanwhile.
    fn on_deadline(&mut self, id: CallId, now: Instant) {
        let Some(pending) = self.calls.get(id) else {
            return;
        };
        let since = self.progress.since(pending.frame).unwrap_or(now);
        let deadline = pending.deadline(since);
        if deadline.is_none_or(|at| at > now) {
            self.calls.extend(id, deadline);
        } else if pending.is_forgotten() {
            self.take(id);
        } else {
            let delivery = self.delivery(pending);
            let late = Err(CallError::TimedOut { delivery });
            let event = self.forget(id, Some(now));
            if let Some(event) = event.and_then(|pending| ended(id, &pending.kind, late)) {
                self.push(event);
            }
        }
    }

    fn push(&mut self, event: ClientEvent) {
        let bytes = self.core.take_frame_bytes();
        self.core.push_event(event, bytes);
    }

    fn refused(&mut self, words: &str) {
        let message = words.to_owned();
        self.core
            .close(CloseReason::Authentication { message }, CloseFrame::NORMAL);
    }

    /// Returns the reason of a disconnect. Known gateways refuse a token with a Close without a
    /// code, and their error text may get lost.
    fn meaning(&self, why: Disconnect) -> CloseReason {
        let waiting = !self.ready && !self.let_in_before;
        let words = match &why {
            Disconnect::PeerClosed(None) if waiting => "",
            Disconnect::PeerClosed(Some(frame))
                if frame.code == AUTH_FAILED_CODE
                    || waiting && matches!(frame.code, CloseFrame::NORMAL | CloseFrame::POLICY) =>
            {
                &frame.reason
            }
            _ => return why.into(),
        };
        let message = match (words, &self.config.token) {
            ("", Some(_)) => "the gateway closed without a hello and probably refused the token",
            ("", None) => "the gateway closed without a hello and probably requires a token",
            (words, _) => words,
        };
        CloseReason::Authentication {
            message: message.to_owned(),
        }
    }

    fn no_hello(&mut self) {
        let after = match &self.config.token {
            Some(_) => self.config.handshake_timeout,
            None => self.config.tokenless_handshake_timeout,
        };
        let reason = if self.config.token.is_some() || self.let_in_before {
            CloseReason::HandshakeTimeout { after }
        } else {
            let message =
                format!("the gateway sent no hello within {after:?} and probably requires a token");
            CloseReason::Authentication { message }
        };
        self.core.close(reason, CloseFrame::NORMAL);
    }

    fn delivery(&self, pending: &Pending) -> Delivery {
        if let Kind::Chat(summary) = &pending.kind
            && summary.frames > 0
        {
            Delivery::Delivered
        } else {
            self.core.delivery(pending.frame)
        }
    }
}

fn remote(words: impl Into<Str>) -> CallError<RpcError> {
    CallError::Remote(RpcError::new(words))
}

/// Returns the event that ends a request, or `None` if the request was cancelled.
fn ended(id: CallId, kind: &Kind, end: End) -> Option<ClientEvent> {
    Some(match *kind {
        Kind::Unary => ClientEvent::Reply { id, result: end },
        Kind::Chat(summary) => ClientEvent::ChatEnded {
            id,
            result: end.map(|_| summary),
        },
        Kind::Forgotten => return None,
    })
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        match self.core.received(message, now) {
            Some(Incoming::Text(text)) => self.on_text(text, now),
            Some(Incoming::Binary(_)) => {
                let error = DecodeError::new(DecodeErrorKind::Binary);
                self.push(ClientEvent::Warning(error));
            }
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        let reason = self.meaning(why);
        self.core.disconnected(reason);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            return self.no_hello();
        }
        while self.core.may_expire(now)
            && let Some(id) = self.calls.peek_expired(now)
        {
            self.on_deadline(id, now);
        }
        // Known gateways answer a ping only between requests, so silence proves nothing then.
        let can_receive = self.in_flight() == 0;
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.core.close(gone, CloseFrame::GOING_AWAY);
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
            self.forgotten -= usize::from(pending.is_forgotten());
            let delivery = self.delivery(&pending);
            let error = CallError::Closed {
                reason: reason.clone(),
                delivery,
            };
            if let Some(event) = ended(id, &pending.kind, Err(error)) {
                return Some(event);
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

    /// Closes with this frame. Queued frames are sent first; everything in flight ends at once.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns how many requests and chats are in flight.
    fn in_flight(&self) -> usize {
        self.calls.len() - self.forgotten
    }

    fn event_bytes(&self) -> usize {
        self.core.event_bytes()
    }
}

rpc_core::debug_fields!([] ClientConn, this => {
    state: this.state(),
    in_flight: this.in_flight(),
    core: this.core,
});
