//! The server's side of one connection: [`ServerConn`].
//!
//! The machine handles the protocol: which requests are allowed, the form of answers, and dead
//! connections. Users, channels and messages belong to the application, for example to a
//! [`Hub`](crate::hub::Hub).

mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rpc_core::{
    CallId, CloseFrame, CloseReason, DecodeError, Disconnect, Incoming, InsertError, Instant,
    Machine, MachineCore, Outgoing, PendingCalls, Refused, Secret, Str, Text,
};
use serde::Serialize;

use crate::codec::{encode_failure, encode_success};
use crate::frame::{Call, ClientFrame, LOGIN, User};
use crate::id::WireId;

pub use config::ServerConfig;

/// The id of an open request. Answer it once, on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(CallId);

/// An event of a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The client wants to log in. Check the credentials, then call
    /// [`accept_login`](ServerConn::accept_login) or [`refuse_login`](ServerConn::refuse_login).
    Login {
        /// The request.
        id: RequestId,
        /// The login name.
        username: Str,
        /// The password.
        password: Secret<Str>,
    },
    /// A request of a logged-in client. Answer with [`reply`](ServerConn::reply) or
    /// [`fail`](ServerConn::fail), even if the client wants no answer: none is sent then.
    Request {
        /// The request.
        id: RequestId,
        /// The call.
        call: Call,
    },
    /// A frame could not be decoded and was ignored.
    Warning(DecodeError),
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// A request that waits for the application.
#[derive(Debug)]
struct Open {
    /// `None` if the client wants no answer.
    call_id: Option<WireId>,
    login: bool,
    /// The size of its frame, which the application keeps until it answers.
    bytes: usize,
}

/// The server's side of one open connection.
///
/// Requests reach the application as [events](ServerEvent) and may be answered in any order. The
/// machine itself answers these with an error: anything but `login` before the login, another login
/// after it, wrong arguments of a known method, `args` that are not an array, and `kwargs` that are
/// not an object. The first few refused logins leave the connection open.
///
/// ```
/// use std::time::Instant;
/// use snek_proto::{Incoming, Machine};
/// use snek_proto::frame::User;
/// use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};
///
/// let now = Instant::now();
/// let mut conn = ServerConn::new(ServerConfig::default(), now);
/// let login = r#"{"method":"login","args":["ann","secret"],"kwargs":{},"callId":"1"}"#;
/// conn.handle_message(Incoming::Text(login), now);
/// let Some(ServerEvent::Login { id, username, .. }) = conn.poll_event() else { panic!() };
/// conn.accept_login(id, User::new(username, "Ann"))?;
/// assert!(conn.poll_transmit().is_some()); // the reply: hand it to your socket
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ServerConn {
    config: Arc<ServerConfig>,
    core: MachineCore<ServerEvent>,
    user: Option<User>,
    login_open: bool,
    failed_logins: u32,
    requests: PendingCalls<Open>,
    request_bytes: usize,
}

impl ServerConn {
    /// Creates the machine of a connection that was just accepted.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, now: Instant) -> Self {
        let config = config.into();
        let mut core = MachineCore::new(&config.limits).with_login();
        core.start_keepalive(&config.keep_alive, now);
        core.start_timer("login", config.handshake_timeout, now);
        Self {
            core,
            user: None,
            login_open: false,
            failed_logins: 0,
            requests: PendingCalls::new(0, config.max_requests.max(1), now),
            request_bytes: 0,
            config,
        }
    }

    /// Returns the logged-in user.
    #[must_use]
    pub const fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Answers a request with a value. Sends nothing if the client wants no answer.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if the request is not open, [`Refused::Invalid`] if it is a login,
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], [`Refused::Encode`], [`Refused::Closed`].
    /// The request is still open then, unless it is unknown.
    pub fn reply(&mut self, id: RequestId, data: &impl Serialize) -> Result<(), Refused> {
        if self.open(id)?.login {
            let why = "a login is answered with accept_login or refuse_login";
            return Err(Refused::invalid("id", why));
        }
        self.answer(id, |buffer, call_id| encode_success(buffer, call_id, data))
    }

    /// Answers a request with an error text. A login counts as [refused](Self::refuse_login).
    ///
    /// # Errors
    /// As for [`reply`](Self::reply).
    pub fn fail(&mut self, id: RequestId, error: &str) -> Result<(), Refused> {
        if self.open(id)?.login {
            return self.refuse_login(id, error);
        }
        self.answer(id, |buffer, call_id| encode_failure(buffer, call_id, error))
    }

    /// Accepts a login. The answer is the user's record.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if the request is not a login; otherwise as for [`reply`](Self::reply).
    pub fn accept_login(&mut self, id: RequestId, user: User) -> Result<(), Refused> {
        self.check_login(id)?;
        self.answer(id, |buffer, call_id| encode_success(buffer, call_id, &user))?;
        self.login_open = false;
        self.user = Some(user);
        self.core.log_in();
        self.core.stop_timer();
        Ok(())
    }

    /// Refuses a login. The connection stays open for a limited number of attempts.
    ///
    /// # Errors
    /// As for [`accept_login`](Self::accept_login).
    pub fn refuse_login(&mut self, id: RequestId, error: &str) -> Result<(), Refused> {
        self.check_login(id)?;
        self.answer(id, |buffer, call_id| encode_failure(buffer, call_id, error))?;
        self.login_open = false;
        self.failed_logins += 1;
        if self.failed_logins >= self.config.max_failed_logins.max(1) {
            self.shut(violation("too many failed logins"), CloseFrame::POLICY);
        }
        Ok(())
    }

    /// Forgets a request; the client gets no answer. Returns `false` if the request is not open.
    pub fn forget(&mut self, id: RequestId) -> bool {
        let forgotten = self.take(id);
        self.login_open &= !forgotten.as_ref().is_some_and(|open| open.login);
        forgotten.is_some()
    }

    /// Pushes an encoded event, sharing its bytes.
    ///
    /// # Errors
    /// [`Refused::NotReady`] before the login, [`Refused::QueueFull`] if the client reads too
    /// slowly, [`Refused::TooLarge`], [`Refused::Closed`].
    pub fn push(&mut self, event: Text) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        if self.user.is_none() {
            return Err(Refused::NotReady);
        }
        self.core.send_text(event).map(drop)
    }

    fn open(&self, id: RequestId) -> Result<&Open, Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        self.requests.get(id.0).ok_or(Refused::UnknownId)
    }

    fn check_login(&self, id: RequestId) -> Result<(), Refused> {
        if self.open(id)?.login {
            return Ok(());
        }
        Err(Refused::invalid("id", "the request is not a login"))
    }

    /// Sends the answer to an open request, if the client wants one, and ends the request.
    fn answer(
        &mut self,
        id: RequestId,
        encode: impl FnOnce(&mut String, &str) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if let Some(call_id) = self.open(id)?.call_id.clone() {
            self.core
                .send_with(|buffer| encode(buffer, call_id.get()))?;
        }
        self.take(id);
        Ok(())
    }

    /// Ends a request. Returns `None` if it is not open.
    fn take(&mut self, id: RequestId) -> Option<Open> {
        let open = self.requests.complete(id.0).live();
        let open = open.filter(|_| !self.is_closed())?;
        self.request_bytes -= open.bytes;
        Some(open)
    }

    fn on_text(&mut self, text: &str) {
        let mut frame = match ClientFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.warn(error),
        };
        let call_id = frame.call_id.take();
        let login = frame.method == LOGIN;
        if !login && self.user.is_none() {
            return self.reject(call_id, "not logged in");
        }
        let call = match Call::read(frame) {
            Ok(call) => call,
            Err(error) => return self.reject(call_id, &error.to_string()),
        };
        if login && (self.user.is_some() || self.login_open) {
            let error = if self.login_open {
                "a login is under way"
            } else {
                "already logged in"
            };
            return self.reject(call_id, error);
        }
        let open = Open {
            call_id,
            login,
            bytes: text.len(),
        };
        let id = match self.requests.insert(open, None) {
            Ok(id) => id,
            Err(InsertError::Full { tag, .. } | InsertError::Duplicate { tag, .. }) => {
                return self.reject(tag.call_id, "too many requests in flight");
            }
        };
        self.request_bytes += text.len();
        let id = RequestId(id);
        self.login_open |= login;
        let event = match call {
            Call::Login { username, password } => ServerEvent::Login {
                id,
                username,
                password,
            },
            call => ServerEvent::Request { id, call },
        };
        self.core.push_event(event, 0);
    }

    fn warn(&mut self, error: DecodeError) {
        self.core.push_event(ServerEvent::Warning(error), 0);
    }

    /// Answers a request that does not reach the application.
    fn reject(&mut self, call_id: Option<WireId>, error: &str) {
        let Some(call_id) = call_id else { return };
        let sent = self
            .core
            .send_with(|buffer| encode_failure(buffer, call_id.get(), error));
        if sent.is_err() {
            // The client asks and does not read the answers.
            self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
        }
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        self.core.close(reason, code);
    }
}

fn violation(message: &str) -> CloseReason {
    CloseReason::Violation {
        message: message.to_owned(),
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
        match message.text() {
            Some(Ok(text)) => self.on_text(text),
            Some(Err(error)) => self.warn(error),
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
        let config = &self.config.keep_alive;
        let can_receive = self.wants_input();
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.core.poll_transmit()
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
        let has_room = self.requests.len() < self.requests.capacity_limit()
            && self.request_bytes < self.config.limits.max_event_bytes
            && self.core.has_slack();
        self.core.wants_input(has_room)
    }

    /// Closes with this frame (1001 when the server goes away). Queued frames are sent first.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns how many requests wait for the application.
    fn in_flight(&self) -> usize {
        if self.is_closed() {
            0
        } else {
            self.requests.len()
        }
    }
}

// Prints the state, not the contents.
rpc_core::debug_fields!([] ServerConn, this => {
    logged_in: this.user.is_some(),
    in_flight: this.in_flight(),
    core: this.core,
});
