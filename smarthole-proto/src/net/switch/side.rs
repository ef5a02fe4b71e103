//! [`ServerSide`]: how the server's machine rides on a [`Link`](rpc_core::net::Link), and its place
//! at a switch.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};

use super::Switch;
use super::mailbox::Mailbox;
use crate::hub::ConnId;
use crate::server::{ServerConfig, ServerConn, ServerEvent};

/// The server's side of one accepted connection. Made with [`new`](Self::new) its events go to the
/// application; [`Switch::serve`] makes one whose events go to the switch.
pub struct ServerSide {
    config: Arc<ServerConfig>,
    place: Option<Place>,
}

impl ServerSide {
    /// A connection with this configuration.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>) -> Self {
        let config = config.into();
        Self {
            config,
            place: None,
        }
    }

    pub(super) fn with_place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSide")
            .field("config", &self.config)
            .field("conn", &self.place.as_ref().map(|place| place.conn))
            .finish()
    }
}

/// A connection at a switch. Dropping it leaves the switch.
pub(super) struct Place {
    pub(super) switch: Switch,
    pub(super) conn: ConnId,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) before_leaving: Option<Box<dyn Fn() + Send>>,
}

impl Place {
    /// Events are dealt with here, in the connection's own task: so what a client said before it
    /// left counts, and its name is free the moment it is gone.
    fn take(&self, event: ServerEvent) -> Sorted<ServerSide> {
        match event {
            ServerEvent::Registration { registration } => {
                self.switch.register(self.conn, &registration);
            }
            ServerEvent::Response { response } => self.switch.respond(self.conn, response),
            ServerEvent::Warning(warning) => {
                tracing::debug!(conn = self.conn.0, %warning, "a frame was ignored");
            }
            ServerEvent::Closed(reason) => {
                self.leave();
                return Sorted::Closed(reason);
            }
        }
        Sorted::Ignore
    }

    fn leave(&self) {
        if let Some(before_leaving) = &self.before_leaving {
            before_leaving();
        }
        self.switch.leave(self.conn);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Protocol for ServerSide {
    type Machine = ServerConn;
    type Call = Infallible;
    type Value = Infallible;
    type Remote = Infallible;
    type Item = Infallible;
    type Event = ServerEvent;

    fn open(&mut self, now: Instant, _: u64) -> ServerConn {
        ServerConn::new(Arc::clone(&self.config), now)
    }

    fn sort(&mut self, event: ServerEvent) -> Sorted<Self> {
        match (&self.place, event) {
            (Some(place), event) => place.take(event),
            (None, ServerEvent::Closed(reason)) => Sorted::Closed(reason),
            // Nothing else is handed out until it is decided, so it must not get lost.
            (None, event @ ServerEvent::Registration { .. }) => Sorted::Ready(Some(event)),
            (None, event) => Sorted::Event(event),
        }
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ServerConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn gather(&mut self, machine: &mut ServerConn, now: Instant) {
        if let Some(place) = &self.place {
            place.mailbox.empty_into(machine, now);
        }
    }

    fn in_flight(_: &ServerConn) -> usize {
        0
    }
}
