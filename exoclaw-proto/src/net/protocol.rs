//! The client's machine on a [`Link`](rpc_core::net::Link).

use std::borrow::Cow;
use std::sync::Arc;

use rpc_core::net::{LinkAction, Protocol};
use rpc_core::{CallId, Instant, Json};

use crate::client::{ChatSummary, ClientConfig, ClientConn, ClientEvent};
use crate::codec::redact;
use crate::error::RpcError;
use crate::frame::StreamEvent;
use crate::net::SYSTEM;

/// The client's side: every connection has the same configuration.
#[derive(Clone, Debug)]
pub struct ClientProtocol {
    config: Arc<ClientConfig>,
    let_in: bool,
}

impl ClientProtocol {
    pub(super) fn new(config: impl Into<Arc<ClientConfig>>) -> Self {
        let config = config.into();
        let let_in = false;
        Self { config, let_in }
    }
}

/// The value of a successful request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallValue {
    /// The value of a request without a stream.
    Answer(Json),
    /// The summary of a chat.
    Chat(ChatSummary),
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = CallValue;
    type Remote = RpcError;
    type Item = StreamEvent;
    type Event = ClientEvent;

    const SYSTEM: &'static str = SYSTEM;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        let open = if self.let_in {
            ClientConn::again
        } else {
            ClientConn::new
        };
        open(Arc::clone(&self.config), entropy, now)
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match event {
            ClientEvent::Chat { id, event } => LinkAction::Item(id, event),
            ClientEvent::ChatEnded { id, result } => {
                LinkAction::Reply(id, result.map(CallValue::Chat))
            }
            ClientEvent::Reply { id, result } => {
                LinkAction::Reply(id, result.map(CallValue::Answer))
            }
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
            ready @ ClientEvent::Ready(_) => {
                self.let_in = true;
                LinkAction::Ready(Some(ready))
            }
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
