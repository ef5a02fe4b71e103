//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! AwaitRegistered ─ success ─> Ready
//!     │ refused, or no answer    │
//!     └────────> Closed <────────┘
//! ```

mod commands;
mod config;
mod event;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use rpc_core::json::{self, DecodeErrorKind};
use rpc_core::timers::{later, sooner};
use rpc_core::{
    CloseFrame, CloseReason, DecodeError, Disconnect, Incoming, InsertError, Instant, Machine,
    MachineCore, Outgoing, PendingMap, Str,
};

use crate::error::{ErrorCode, RegistrationError};
use crate::frame::{RegistrationResponse, Response, ServerFrame};
use crate::id::{ClientId, MessageId};
use crate::limits::{CLIENT_DISCONNECT, REGISTRATION_FAILED, REGISTRATION_FAILED_CODE};

pub use config::{ClientConfig, reconnect_policy};
pub use event::{ClientEvent, Received, Warning};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// Waiting for the answer to the registration.
    AwaitRegistered,
    /// Registered: messages arrive and commands are accepted.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The client's side of one open connection. It registers on its own; then messages arrive, each of
/// which requires a response before its deadline.
///
/// ```
/// use std::time::Instant;
/// use smarthole_proto::{Incoming, Machine};
/// use smarthole_proto::frame::{Answer, Registration};
/// use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent};
///
/// let now = Instant::now();
/// let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
/// let mut conn = ClientConn::new(config, now);
/// assert!(conn.poll_transmit().is_some()); // the registration: hand it to your socket
///
/// let answer = r#"{"type":"registration_response","payload":{"success":true,"clientId":"1"}}"#;
/// conn.handle_message(Incoming::Text(answer), now);
/// assert!(matches!(conn.poll_event(), Some(ClientEvent::Registered { .. })));
///
/// let text = r#"{"type":"message","payload":{"id":"m","text":"milk","timestamp":"t"}}"#;
/// conn.handle_message(Incoming::Text(text), now);
/// if let Some(ClientEvent::Message(received)) = conn.poll_event() {
///     conn.respond(&received.message.id, Answer::Ack)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    pub(crate) core: MachineCore<ClientEvent>,
    registered: bool,
    /// The messages without a response, and the bytes that each holds.
    open: PendingMap<MessageId, usize>,
    open_bytes: usize,
    /// Responses that wait for room.
    deferred: VecDeque<Response>,
    /// Events from before the registration was answered.
    early: VecDeque<(ClientEvent, usize)>,
    early_bytes: usize,
    early_dropped: u64,
    client_id: Option<ClientId>,
}

impl ClientConn {
    /// Creates the client's side of a connection that was just opened. Queues the registration at
    /// once.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            core: MachineCore::new(&config.limits),
            registered: false,
            // Whether an id is old or unknown makes no difference, so none is remembered.
            open: PendingMap::new(config.limits.max_pending, now),
            open_bytes: 0,
            deferred: VecDeque::new(),
            early: VecDeque::new(),
            early_bytes: 0,
            early_dropped: 0,
            client_id: None,
            config,
        };
        conn.register(now);
        conn
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        match (self.core.is_closed(), self.registered) {
            (true, _) => ClientState::Closed,
            (false, true) => ClientState::Ready,
            (false, false) => ClientState::AwaitRegistered,
        }
    }

    /// Returns the client's id at the server, if it is registered and the server sent one.
    #[must_use]
    pub const fn client_id(&self) -> Option<&ClientId> {
        self.client_id.as_ref()
    }

    /// Returns whether this message arrived on this connection and still requires its first
    /// response.
    #[must_use]
    pub fn is_open(&self, id: &str) -> bool {
        self.open.get(id).is_some()
    }

    fn register(&mut self, now: Instant) {
        self.core.start_keepalive(&self.config.keep_alive, now);
        let timeout = self.config.handshake_timeout;
        self.core.start_timer("registration", timeout, now);
        let sent = self.core.send_json(&self.config.registration.frame());
        if let Err(refused) = sent {
            // It does not fit, so another attempt would end the same way.
            let message = format!("the registration could not be sent: {refused}");
            self.shut(registration_failed(message, false));
        }
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        let keep = |frame: &ServerFrame| matches!(frame, ServerFrame::Message(_));
        let (frame, whole) = match json::decode_keeping(text, &self.config.limits, keep) {
            Ok(read) => read,
            Err(error) => return self.warn(error),
        };
        match frame {
            ServerFrame::Message(message) => self.deliver(ClientEvent::Message(Received {
                message,
                deadline: later(now, self.config.response_timeout),
                frame: whole.unwrap_or_default(),
            })),
            ServerFrame::RegistrationResponse(answer) => {
                if self.registered {
                    self.push(ClientEvent::Warning(Warning::RepeatedAnswer));
                } else {
                    self.on_registered(answer);
                }
            }
            ServerFrame::Unknown { tag, raw } => self.deliver(ClientEvent::Unknown { tag, raw }),
        }
    }

    fn on_registered(&mut self, answer: RegistrationResponse) {
        let (client_id, message) = match answer {
            RegistrationResponse::Accepted { client_id, message } => (client_id, message),
            RegistrationResponse::Refused { code, message } => return self.refused(code, message),
        };
        self.registered = true;
        self.core.stop_timer();
        self.client_id = client_id;
        self.push(ClientEvent::Registered {
            client_id: self.client_id.clone(),
            message,
        });
        self.early_bytes = 0;
        for (event, bytes) in std::mem::take(&mut self.early) {
            self.give_out(event, bytes);
        }
        if self.early_dropped > 0 {
            let dropped = Warning::EarlyFramesDropped {
                count: self.early_dropped,
            };
            self.push(ClientEvent::Warning(dropped));
        }
    }

    fn refused(&mut self, code: Option<ErrorCode>, message: Option<Str>) {
        // A server that gives no code may have any reason, one that passes too.
        let code = code.unwrap_or(ErrorCode::Other(Str::from_static("UNKNOWN")));
        let error = RegistrationError::new(code, message.unwrap_or_default());
        let reason = registration_failed(error.to_string(), error.code.is_retryable());
        self.push(ClientEvent::Refused(error));
        self.shut(reason);
    }

    /// Queues an event for the application. Before the registration is answered, it waits in a
    /// bounded queue that keeps the newest.
    fn deliver(&mut self, event: ClientEvent) {
        let bytes = self.core.take_frame_bytes();
        if self.registered {
            return self.give_out(event, bytes);
        }
        self.early_bytes += bytes;
        self.early.push_back((event, bytes));
        let limits = &self.config.limits;
        while self.early.len() > limits.max_events.max(1)
            || (self.early.len() > 1 && self.early_bytes > limits.max_event_bytes)
        {
            let Some((_, bytes)) = self.early.pop_front() else {
                break;
            };
            self.early_bytes -= bytes;
            self.early_dropped += 1;
        }
    }

    fn give_out(&mut self, event: ClientEvent, bytes: usize) {
        if let ClientEvent::Message(received) = &event {
            self.track(received);
        }
        self.core.push_event(event, bytes);
    }

    /// Notes that a message requires a response until its deadline.
    fn track(&mut self, received: &Received) {
        let (id, deadline) = (&received.message.id, Some(received.deadline));
        let bytes = received.frame.get().len();
        match self.open.insert(id.clone(), bytes, deadline) {
            Ok(()) => self.open_bytes += bytes,
            // Sent again: the server waits again.
            Err(InsertError::Duplicate { .. }) => {
                self.open.extend(id.as_str(), deadline);
            }
            // No more input is wanted. What has come already is given out without being watched.
            Err(_) => {}
        }
    }

    /// Notes that a message has its first response.
    fn settle(&mut self, id: &str) {
        if let Some(bytes) = self.open.remove(id) {
            self.open_bytes -= bytes;
        }
    }

    fn push(&mut self, event: ClientEvent) {
        let bytes = self.core.take_frame_bytes();
        self.core.push_event(event, bytes);
    }

    fn warn(&mut self, error: DecodeError) {
        self.deliver(ClientEvent::Warning(Warning::BadFrame(error)));
    }

    /// Sends the Close for the reason and ends. Queued frames still leave before it.
    fn shut(&mut self, reason: CloseReason) {
        let words = |code| CloseFrame::new(code, reason.to_string());
        let frame = match &reason {
            CloseReason::Refused { .. } => {
                CloseFrame::new(REGISTRATION_FAILED_CODE, REGISTRATION_FAILED)
            }
            CloseReason::TooLarge { .. } => CloseFrame::new(CloseFrame::TOO_BIG, ""),
            CloseReason::KeepAlive { .. } => words(CloseFrame::GOING_AWAY),
            _ => words(CloseFrame::NORMAL),
        };
        self.shut_with(reason, frame);
    }

    fn shut_with(&mut self, reason: CloseReason, frame: CloseFrame) {
        self.flush_deferred();
        self.core.close_with(reason, frame);
        self.release();
    }

    /// Frees what only an open connection needs.
    fn release(&mut self) {
        self.early = VecDeque::new();
        while self.open.pop_any().is_some() {}
        self.open_bytes = 0;
    }
}

fn registration_failed(message: String, retryable: bool) -> CloseReason {
    CloseReason::Refused { message, retryable }
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(message) = self.core.received(message, now) else {
            return;
        };
        let max = self.config.limits.max_message_bytes;
        if message.is_data() && message.len() > max {
            return self.shut(CloseReason::TooLarge { max });
        }
        match message {
            Incoming::Text(text) => self.on_text(text, now),
            Incoming::Binary(_) => self.warn(DecodeError::new(DecodeErrorKind::Binary)),
            _ => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.core.disconnected(why);
        self.release();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            let after = self.config.handshake_timeout.unwrap_or_default();
            return self.shut(CloseReason::HandshakeTimeout { after });
        }
        while let Some((id, bytes)) = self.open.pop_expired(now) {
            self.open_bytes -= bytes;
            self.push(ClientEvent::Overdue { id });
        }
        let can_receive = self.wants_input();
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.shut(gone);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let next = self.core.poll_transmit();
        if next.is_some() || self.deferred.is_empty() {
            return next;
        }
        self.flush_deferred();
        self.core.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        self.core.poll_event(ClientEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let message = self.open.poll_timeout().map(|at| (at, "response"));
        sooner(self.core.next_timeout(), message)
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        let limits = &self.config.limits;
        let has_room =
            self.open.len() < limits.max_pending && self.open_bytes < limits.max_event_bytes;
        self.core.wants_input(has_room)
    }

    /// Closes with this frame, after the queued frames.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.shut_with(CloseReason::Local, frame);
    }

    /// Closes with code 1000, after the queued frames.
    fn close(&mut self, now: Instant) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, CLIENT_DISCONNECT), now);
    }

    /// Returns how many messages of this connection have no response and time left.
    fn in_flight(&self) -> usize {
        self.open.len()
    }

    fn event_bytes(&self) -> usize {
        self.core.event_bytes()
    }
}

rpc_core::debug_fields!([] ClientConn, this => {
    state: this.state(),
    in_flight: this.open.len(),
    core: this.core,
});
