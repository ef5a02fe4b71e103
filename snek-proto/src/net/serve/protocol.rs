//! [`ServerSide`]: how the server's machine rides on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};

use crate::codec::redact;
use crate::server::{ServerConfig, ServerConn, ServerEvent};

/// The server's side of one accepted connection.
#[derive(Clone, Debug)]
pub(super) struct ServerSide {
    config: Arc<ServerConfig>,
}

impl ServerSide {
    /// A connection with this configuration.
    pub(super) fn new(config: impl Into<Arc<ServerConfig>>) -> Self {
        let config = config.into();
        Self { config }
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
            ServerEvent::Closed(reason) => Sorted::Closed(reason),
            other => Sorted::Event(other),
        }
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ServerConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn in_flight(machine: &ServerConn) -> usize {
        machine.in_flight()
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
