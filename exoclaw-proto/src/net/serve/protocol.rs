//! How the server's machine rides on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};

use super::outlet::Outlet;
use crate::codec::redact;
use crate::server::{ServerConfig, ServerConn, ServerEvent};

/// The server's side of one accepted connection.
#[derive(Clone)]
pub(crate) struct ServerSide {
    config: Arc<ServerConfig>,
    outlet: Option<Arc<Outlet>>,
}

impl ServerSide {
    /// A connection with this configuration.
    #[must_use]
    pub(crate) fn new(config: impl Into<Arc<ServerConfig>>) -> Self {
        let config = config.into();
        Self {
            config,
            outlet: None,
        }
    }

    /// Takes what the outlet holds, and tells it when the connection has ended.
    pub(super) fn with_outlet(mut self, outlet: Arc<Outlet>) -> Self {
        self.outlet = Some(outlet);
        self
    }
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSide")
            .field("config", &self.config)
            .finish_non_exhaustive()
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
        match event {
            ServerEvent::Closed(reason) => {
                // The closing handshake may take a while; the requests end now.
                if let Some(outlet) = &self.outlet {
                    outlet.leave();
                }
                Sorted::Closed(reason)
            }
            ServerEvent::Authenticated => Sorted::Ready(Some(ServerEvent::Authenticated)),
            other => Sorted::Event(other),
        }
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ServerConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn gather(&mut self, machine: &mut ServerConn, _: Instant) {
        if let Some(outlet) = &self.outlet {
            outlet.gather_into(machine);
        }
    }

    fn in_flight(machine: &ServerConn) -> usize {
        machine.in_flight()
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
