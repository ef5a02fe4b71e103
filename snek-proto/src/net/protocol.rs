//! [`ClientProtocol`]: the client's machine on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use rpc_core::net::{LinkAction, Protocol};
use rpc_core::{CallId, Instant};

use super::SYSTEM;
use crate::client::{ClientConfig, ClientConn, ClientEvent};
use crate::codec::redact;
use crate::error::RpcError;
use crate::frame::CallValue;

/// The client's side: every connection logs in with the same configuration.
#[derive(Clone, Debug)]
pub struct ClientProtocol {
    config: Arc<ClientConfig>,
}

impl ClientProtocol {
    /// Creates the protocol of connections with this configuration.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>) -> Self {
        let config = config.into();
        Self { config }
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = CallValue;
    type Remote = RpcError;
    type Item = Infallible;
    type Event = ClientEvent;

    const SYSTEM: &'static str = SYSTEM;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        ClientConn::new(Arc::clone(&self.config), entropy, now)
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match event {
            ClientEvent::Reply { id, result } => LinkAction::Reply(id, result),
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
            ready @ ClientEvent::Ready(_) => LinkAction::Ready(Some(ready)),
            other => LinkAction::Event(other),
        }
    }

    fn cancel(machine: &mut ClientConn, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}
