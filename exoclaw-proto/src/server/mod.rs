//! The server's side of one connection: [`ServerConn`].
//!
//! The machine handles the protocol: tokens, requests, the form of answers and streams, and dead
//! connections. The content of chats belongs to the application.

mod commands;
mod config;
mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::{
    CloseFrame, CloseReason, DecodeError, Disconnect, Incoming, InsertError, Json, Machine,
    MachineCore, Outgoing, PendingCalls, Refused, Text,
};

use crate::auth::Auth;
use crate::codec::{encode_error, encode_result};
use crate::error::RpcError;
use crate::frame::{Call, Hello, Method, Request, ServerFrame, Token};
use crate::id::UNREADABLE_ID;
use crate::limits::{AUTH_FAILED, AUTH_FAILED_CODE};

pub use config::ServerConfig;
use request::{Kind, Open};
pub use request::{RequestId, ServerEvent, ServerState};

/// An item that waits for its turn, if requests run in order.
enum Waiting {
    Request(RequestId, Box<Call>),
    /// An answer of the machine itself.
    Answer(Text),
}

/// The server's side of one open connection.
///
/// Without a token the hello frame is sent at once; with one, the first text or binary message must
/// be the right token, or the client is refused and disconnected with code 4001. Requests reach the
/// application as [events](ServerEvent) and may be answered in any order. The machine itself
/// answers `ping`, text that is not a request, unknown methods (unless it is to
/// [pass them on](ServerConfig::other_methods)), and wrong parameters.
///
/// ```
/// use std::time::Instant;
/// use exoclaw_proto::auth::Auth;
/// use exoclaw_proto::frame::Call;
/// use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
/// use exoclaw_proto::{Incoming, Machine};
///
/// let now = Instant::now();
/// let mut conn = ServerConn::new(ServerConfig::default(), Auth::open(), now);
/// assert!(conn.poll_transmit().is_some()); // the hello: hand it to your socket
/// assert_eq!(conn.poll_event(), Some(ServerEvent::Authenticated));
///
/// let text = r#"{"id":"1","method":"plugin.list"}"#;
/// conn.handle_message(Incoming::Text(text), now);
/// let Some(ServerEvent::Request { id, call: Call::PluginList }) = conn.poll_event() else { panic!() };
/// conn.reply(id, &["echo"])?;
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ServerConn {
    config: Arc<ServerConfig>,
    auth: Auth,
    core: MachineCore<ServerEvent>,
    /// Whether the hello was sent.
    ready: bool,
    /// How long the answer to a wrong token waits.
    refusal_delay: Duration,
    /// Whether the token was wrong.
    is_refused: bool,
    requests: PendingCalls<Open>,
    request_bytes: usize,
    /// The request that the application works on, if they run in order.
    turn: Option<RequestId>,
    waiting: VecDeque<Waiting>,
}

impl ServerConn {
    /// Creates the machine of a connection that a client has just opened. `auth` says whether the client
    /// must send a token, and which.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, auth: Auth, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            core: MachineCore::new(&config.limits).with_login(),
            ready: false,
            refusal_delay: Duration::ZERO,
            is_refused: false,
            // An id never leaves this side, so it needs no seed.
            requests: PendingCalls::new(0, config.max_requests.max(1), now),
            request_bytes: 0,
            turn: None,
            waiting: VecDeque::new(),
            config,
            auth,
        };
        conn.core.start_keepalive(&conn.config.keep_alive, now);
        if conn.auth.is_open() {
            conn.welcome();
        } else {
            conn.core
                .start_timer("auth", conn.config.handshake_timeout, now);
        }
        conn
    }

    /// Lets the answer to a wrong token wait, to slow down who guesses.
    #[must_use]
    pub const fn with_refusal_delay(mut self, delay: Duration) -> Self {
        self.refusal_delay = delay;
        self
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ServerState {
        match (self.core.is_closed(), self.ready) {
            (true, _) => ServerState::Closed,
            (false, true) => ServerState::Ready,
            (false, false) => ServerState::AwaitToken,
        }
    }

    /// Returns whether the token was right or, without one, a request has come.
    #[must_use]
    #[cfg(feature = "server")]
    pub(crate) const fn is_logged_in(&self) -> bool {
        self.core.is_logged_in()
    }

    /// Admits the client.
    fn welcome(&mut self) {
        let mut hello = Hello::new(self.config.version.as_str());
        let extensions = Method::EXTENSIONS.into_iter();
        let extensions = extensions.filter(|method| self.offers(*method));
        let extensions: Vec<_> = extensions.map(Method::name).collect();
        if !extensions.is_empty() {
            hello = hello.with_extensions(&extensions);
        }
        self.core.stop_timer();
        self.ready = true;
        if self.core.send_json(&hello).is_err() {
            // The limits are too small for a single frame.
            return self.too_slow();
        }
        self.core.push_event(ServerEvent::Authenticated, 0);
    }

    fn on_token(&mut self, text: &str, now: Instant) {
        if self.is_refused {
            return;
        }
        let token = Token::decode(text, &self.config.limits);
        if token.is_ok_and(|token| self.auth.check(token.expose())) {
            self.core.log_in();
            return self.welcome();
        }
        self.is_refused = true;
        if self.refusal_delay.is_zero() {
            return self.refuse_token();
        }
        self.core.start_timer("refusal", self.refusal_delay, now);
    }

    fn refuse_token(&mut self) {
        self.refuse(CloseReason::Authentication {
            message: "the token was refused".to_owned(),
        });
    }

    /// Refuses the client.
    fn refuse(&mut self, reason: CloseReason) {
        // Nothing was queued before, so it fits.
        let _ = self.core.send_json(&ServerFrame::auth_failed());
        let frame = CloseFrame::new(AUTH_FAILED_CODE, AUTH_FAILED);
        self.core.close_with(reason, frame);
    }

    fn on_request(&mut self, text: &str) {
        let limits = &self.config.limits;
        let Request { id, call } = match Request::decode(text, limits) {
            Ok(request) => request,
            Err(error) => {
                let id = Request::id_of(text, limits);
                let id = id.map(|id| id.into_answer(self.config.echo_numbers));
                return self.reject(id.as_ref(), &unreadable(&error));
            }
        };
        self.core.log_in();
        let id = id.into_answer(self.config.echo_numbers);
        let named = Method::parse(call.tag());
        let method = named.filter(|method| self.offers(*method));
        let kind = match (method, call.refusal(limits)) {
            (None, _) if named.is_none() && self.config.other_methods => Kind::Plain,
            (None, _) => return self.reject(Some(&id), &RpcError::unknown_method(call.tag())),
            (_, Some(error)) => return self.reject(Some(&id), &error),
            (Some(Method::Ping), _) => {
                return self.answer(|buffer| encode_result(buffer, &id, &"pong"));
            }
            (Some(Method::ChatSend), _) => Kind::Chat { begun: false },
            _ => Kind::Plain,
        };
        let bytes = text.len();
        let id = match self.requests.insert(Open { id, kind, bytes }, None) {
            Ok(id) => RequestId(id),
            Err(InsertError::Full { tag, .. } | InsertError::Duplicate { tag }) => {
                let error = RpcError::new("too many requests in flight");
                return self.reject(Some(&tag.id), &error);
            }
        };
        self.request_bytes += bytes;
        if self.is_busy() {
            self.waiting.push_back(Waiting::Request(id, Box::new(call)));
        } else {
            self.turn = self.config.in_order.then_some(id);
            self.core.push_event(ServerEvent::Request { id, call }, 0);
        }
    }

    /// Returns whether this server has a method.
    fn offers(&self, method: Method) -> bool {
        !method.is_future() || self.config.extensions.contains(&method)
    }

    /// Returns whether the next request has to wait for its turn.
    fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.waiting.is_empty()
    }

    /// Continues with the waiting items after a request has ended.
    fn next_turn(&mut self) {
        while self.turn.is_none() && !self.is_closed() {
            match self.waiting.pop_front() {
                None => return,
                Some(Waiting::Request(id, call)) => {
                    self.turn = self.config.in_order.then_some(id);
                    let call = *call;
                    self.core.push_event(ServerEvent::Request { id, call }, 0);
                }
                Some(Waiting::Answer(text)) => {
                    self.request_bytes -= text.len();
                    if self.core.send_text(text).is_err() {
                        self.too_slow();
                    }
                }
            }
        }
    }

    /// Answers a request that does not reach the application; without an id, with
    /// [`UNREADABLE_ID`].
    fn reject(&mut self, id: Option<&Json>, error: &RpcError) {
        self.answer(|buffer| match id {
            Some(id) => encode_error(buffer, id, error.message()),
            None => encode_error(buffer, &UNREADABLE_ID, error.message()),
        });
    }

    /// Queues an answer of the machine itself.
    fn answer(&mut self, encode: impl FnOnce(&mut String) -> Result<(), Refused>) {
        if self.is_busy() {
            let mut buffer = String::new();
            if encode(&mut buffer).is_ok() {
                let text = Text::from(buffer);
                self.request_bytes += text.len();
                self.waiting.push_back(Waiting::Answer(text));
            }
        } else if self.core.send_with(encode).is_err() {
            // The client asks and does not read the answers.
            self.too_slow();
        }
    }

    fn too_slow(&mut self) {
        self.core
            .close(CloseReason::SlowConsumer, CloseFrame::POLICY);
    }
}

/// Returns the answer to text that is not a request.
fn unreadable(error: &DecodeError) -> RpcError {
    let (line, column) = (error.line(), error.column());
    RpcError::parse(&format!("{} at line {line} column {column}", error.kind()))
}

impl Machine for ServerConn {
    type Event = ServerEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(message) = self.core.received(message, now) else {
            return;
        };
        let rate = self.config.limits.max_message_rate;
        if !self.core.within_rate(rate, now) {
            self.core
                .close(CloseReason::RateLimited, CloseFrame::POLICY);
            return;
        }
        match (message, self.state()) {
            (Incoming::Text(text), ServerState::AwaitToken) => self.on_token(text, now),
            // A token in a binary message does not count.
            (Incoming::Binary(_), ServerState::AwaitToken) => self.on_token("", now),
            (message, _) => match message.text() {
                Some(Ok(text)) => self.on_request(text),
                Some(Err(error)) => self.reject(None, &unreadable(&error)),
                None => {}
            },
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            if self.is_refused {
                return self.refuse_token();
            }
            let after = self.config.handshake_timeout.unwrap_or_default();
            return self.refuse(CloseReason::HandshakeTimeout { after });
        }
        // A client that still has much to read cannot have seen the ping behind it.
        let can_receive = self.wants_input() && self.core.has_stream_slack();
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.core.close(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.core.poll_transmit();
        if self.core.take_writable() {
            self.core.push_event(ServerEvent::Writable, 0);
        }
        frame
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.core.poll_event(ServerEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.core.next_timeout()
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        let max_requests = self.requests.capacity_limit();
        let has_room = self.requests.len() < max_requests
            && self.waiting.len() < max_requests
            && self.request_bytes < self.config.limits.max_event_bytes
            && self.core.has_slack();
        self.core.wants_input(has_room)
    }

    /// Closes with this frame (1001 when the server goes away). Queued frames are sent first.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns how many requests have not ended.
    fn in_flight(&self) -> usize {
        if self.is_closed() {
            0
        } else {
            self.requests.len()
        }
    }
}

rpc_core::debug_fields!([] ServerConn, this => {
    state: this.state(),
    in_flight: this.in_flight(),
    waiting: this.waiting.len(),
    core: this.core,
});
