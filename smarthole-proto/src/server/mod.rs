//! The server's side of one connection: [`ServerConn`].
//!
//! The machine decides what one connection can decide: whether a frame is valid, whether a
//! registration is valid, and when a client is gone. Which names are taken and which client gets
//! which message is decided by the owner of all connections, for example a
//! [`Hub`](crate::hub::Hub).

mod config;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rpc_core::Instant;
use rpc_core::backlog::Backlog;
use rpc_core::{
    CloseFrame, CloseReason, DecodeError, Disconnect, Incoming, Machine, MachineCore, Outgoing,
    Refused, Str, Text,
};

use crate::error::RegistrationError;
use crate::frame::{ClientFrame, Registration, RegistrationResponse, Response, ServerFrame};
use crate::id::ClientId;
use crate::validate;

pub use config::ServerConfig;

/// Most frames to keep while a registration is decided, for a caller that reads on although the
/// machine [wants no input](Machine::wants_input).
const MAX_HELD: usize = 64;

/// An event of a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client wants to register, and its registration is valid. Call
    /// [`accept`](ServerConn::accept), or [`refuse`](ServerConn::refuse) if its name is taken;
    /// until then the connection reports no further event.
    Registration {
        /// The client's registration.
        registration: Registration,
    },
    /// A registered client responds to a message.
    Response {
        /// The response, with the id of its message.
        response: Response,
    },
    /// A frame was ignored.
    Warning(Warning),
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// Why a frame of the client was ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// It does not decode, or is a response with an invalid body.
    #[error(transparent)]
    BadFrame(#[from] DecodeError),
    /// It is a response, but the client is not registered.
    #[error("a response of a client that is not registered")]
    NotRegistered,
    /// Its type is not one that a server accepts.
    #[error("a frame of the type {tag:?}")]
    UnknownType {
        /// The type.
        tag: Str,
    },
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The client has not registered, or was refused.
    AwaitRegistration,
    /// A registration waits for the application to accept or refuse it.
    AwaitVerdict,
    /// The client is registered.
    Ready,
    /// The connection has ended.
    Closed,
}

/// The server's side of one open connection.
///
/// The machine answers on its own: an invalid registration, with the code of the first rule that it
/// violates, and any registration of a registered client. A refused client may try again. A frame
/// that does not decode is ignored with a [`Warning`]. Text in a binary message is read like any
/// other.
///
/// A client that answers no ping in time is disconnected without a closing handshake.
///
/// ```
/// use std::time::Instant;
/// use smarthole_proto::{Incoming, Machine};
/// use smarthole_proto::id::client_id;
/// use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};
///
/// let now = Instant::now();
/// let mut conn = ServerConn::new(ServerConfig::default(), now);
/// let text = r#"{"type":"registration","payload":{"name":"notes","description":"I keep notes."}}"#;
/// conn.handle_message(Incoming::Text(text), now);
/// let Some(ServerEvent::Registration { registration }) = conn.poll_event() else { panic!() };
/// assert_eq!(registration.name, "notes");
/// conn.accept(&client_id(7))?;
/// assert!(conn.poll_transmit().is_some()); // the reply: hand it to your socket
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ServerConn {
    config: Arc<ServerConfig>,
    core: MachineCore<ServerEvent>,
    /// The state while the connection is open.
    state: ServerState,
    /// The name of the client that is registered, or wants to register.
    name: Option<Str>,
    /// Frames that arrived after a registration that is not decided yet.
    held: Backlog<String>,
    held_bytes: usize,
}

impl ServerConn {
    /// Creates the server's side of a connection that was just accepted.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, now: Instant) -> Self {
        let config = config.into();
        let mut core = MachineCore::new(&config.limits).with_login();
        if config.only_pongs {
            core = core.with_only_pongs();
        }
        core.start_keepalive(&config.keep_alive, now);
        core.start_timer("registration", config.handshake_timeout, now);
        Self {
            core,
            state: ServerState::AwaitRegistration,
            name: None,
            held: Backlog::new(),
            held_bytes: 0,
            config,
        }
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> ServerState {
        if self.core.is_closed() {
            ServerState::Closed
        } else {
            self.state
        }
    }

    /// Returns the name of the client that is registered, or whose registration is not decided yet.
    #[must_use]
    pub const fn name(&self) -> Option<&Str> {
        self.name.as_ref()
    }

    /// Accepts the waiting registration: registers the client and sends it its id.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no registration waits, [`Refused::Closed`],
    /// [`Refused::QueueFull`], [`Refused::TooLarge`]. Nothing has changed then.
    pub fn accept(&mut self, client_id: &ClientId) -> Result<(), Refused> {
        let name = self.undecided()?;
        let answer = RegistrationResponse::accepted(client_id, name);
        self.send_answer(answer)?;
        self.state = ServerState::Ready;
        self.core.log_in();
        self.core.stop_timer();
        self.release_held();
        Ok(())
    }

    /// Refuses the waiting registration. The connection stays open for another attempt.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn refuse(&mut self, error: RegistrationError) -> Result<(), Refused> {
        self.undecided()?;
        self.send_answer(RegistrationResponse::refused(error))?;
        self.state = ServerState::AwaitRegistration;
        self.name = None;
        self.release_held();
        Ok(())
    }

    /// Sends a frame that is encoded already, sharing its bytes.
    ///
    /// # Errors
    /// [`Refused::NotReady`] if no client is registered, [`Refused::QueueFull`] if it reads too
    /// slowly, [`Refused::TooLarge`], [`Refused::Closed`]. Nothing has changed then.
    pub fn send(&mut self, frame: Text) -> Result<(), Refused> {
        match self.state() {
            ServerState::Ready => self.core.send_text(frame).map(drop),
            ServerState::Closed => Err(Refused::Closed),
            ServerState::AwaitRegistration | ServerState::AwaitVerdict => Err(Refused::NotReady),
        }
    }

    /// Returns the name in the waiting registration.
    fn undecided(&self) -> Result<&str, Refused> {
        match (self.state(), &self.name) {
            (ServerState::Closed, _) => Err(Refused::Closed),
            (ServerState::AwaitVerdict, Some(name)) => Ok(name),
            _ => Err(Refused::UnknownId),
        }
    }

    fn on_text(&mut self, text: &str) {
        if self.state == ServerState::AwaitVerdict {
            return self.buffer(text);
        }
        match ClientFrame::decode(text, &self.config.limits) {
            Ok(ClientFrame::Registration(payload)) => {
                self.on_registration(payload.get(), text.len());
            }
            Ok(ClientFrame::Response(response)) if self.state == ServerState::Ready => {
                self.core
                    .push_event(ServerEvent::Response { response }, text.len());
            }
            Ok(ClientFrame::Response(_)) => self.warn(Warning::NotRegistered, 0),
            Ok(ClientFrame::Unknown { tag, .. }) => {
                let size = tag.len();
                self.warn(Warning::UnknownType { tag }, size);
            }
            Err(error) => self.warn(error.into(), 0),
        }
    }

    fn on_registration(&mut self, payload: &str, size: usize) {
        if self.state == ServerState::Ready {
            return self.answer(RegistrationError::already_registered());
        }
        match validate::payload(payload) {
            Ok(registration) => {
                self.name = Some(registration.name.clone());
                self.state = ServerState::AwaitVerdict;
                self.core
                    .push_event(ServerEvent::Registration { registration }, size);
            }
            Err(error) => self.answer(error),
        }
    }

    fn send_answer(&mut self, answer: RegistrationResponse) -> Result<(), Refused> {
        let frame = ServerFrame::RegistrationResponse(answer);
        self.core.send_json(&frame).map(drop)
    }

    /// Refuses a registration without asking the application.
    fn answer(&mut self, error: RegistrationError) {
        let answer = RegistrationResponse::refused(error);
        if self.send_answer(answer).is_err() {
            // The client asks and does not read the answers.
            self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
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

    /// Handles the frames after a decided registration, up to the next registration.
    fn release_held(&mut self) {
        while !matches!(
            self.state(),
            ServerState::AwaitVerdict | ServerState::Closed
        ) && let Some(text) = self.held.pop_front()
        {
            self.held_bytes -= text.len();
            self.on_text(&text);
        }
    }

    fn warn(&mut self, warning: Warning, size: usize) {
        self.core.push_event(ServerEvent::Warning(warning), size);
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
        match message.text() {
            Some(Ok(text)) => self.on_text(text),
            Some(Err(error)) => self.warn(error.into(), 0),
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
        // A client that still has much to read cannot have seen the ping behind it.
        let can_receive = self.wants_input();
        let config = &self.config.keep_alive;
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
        let has_room = self.state != ServerState::AwaitVerdict && self.core.has_slack();
        self.core.wants_input(has_room)
    }

    /// Closes with this frame (1001 when the server shuts down), after the queued frames.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.core.close_with(CloseReason::Local, frame);
    }
}

rpc_core::debug_fields!([] ServerConn, this => {
    state: this.state(),
    name: this.name,
    core: this.core,
});
