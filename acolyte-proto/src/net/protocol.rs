//! The client's machine on a [`Link`](rpc_core::net::Link).

use std::sync::Arc;

use rpc_core::CallError;
use rpc_core::Instant;
use rpc_core::net::telemetry::CallOutcome;
use rpc_core::net::{LinkAction, Protocol};

use crate::client::{
    CallId, CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome,
};
use crate::error::RpcError;
use crate::net::SYSTEM;

/// The client's protocol: every connection starts with the same configuration.
#[derive(Clone, Debug)]
pub struct ClientProtocol {
    config: Arc<ClientConfig>,
}

impl ClientProtocol {
    pub(super) fn new(config: impl Into<Arc<ClientConfig>>) -> Self {
        let config = config.into();
        Self { config }
    }
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A chat, whatever its outcome.
    Chat(Outcome),
    /// Another request.
    Call(CallValue),
}

/// Returns the error for a request with a result of another kind, which does not happen.
pub(super) fn unexpected() -> CallError<RpcError> {
    CallError::Remote(RpcError::new("an answer to something else"))
}

/// Returns the outcome of a chat for metrics.
pub(super) const fn call_outcome(outcome: &Outcome) -> CallOutcome {
    match outcome {
        Outcome::Done(_) => CallOutcome::Ok,
        Outcome::Aborted { .. } => CallOutcome::Cancelled,
        _ => CallOutcome::Error,
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = Value;
    type Remote = RpcError;
    type Item = ChatUpdate;
    type Event = ClientEvent;

    const SYSTEM: &'static str = SYSTEM;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        ClientConn::new(Arc::clone(&self.config), entropy, now)
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match event {
            ClientEvent::Chat {
                id,
                update: ChatUpdate::Ended(outcome),
            } => LinkAction::Reply(id, Ok(Value::Chat(outcome))),
            ClientEvent::Chat { id, update } => LinkAction::Item(id, update),
            ClientEvent::Reply { id, result } => LinkAction::Reply(id, result.map(Value::Call)),
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
            ClientEvent::Ready => LinkAction::Ready(Some(ClientEvent::Ready)),
            other => LinkAction::Event(other),
        }
    }

    fn cancel(machine: &mut ClientConn, call: CallId, now: Instant) {
        machine.cancel(call, now);
    }

    fn outcome(value: &Value) -> CallOutcome {
        match value {
            Value::Chat(outcome) => call_outcome(outcome),
            Value::Call(_) => CallOutcome::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::{CloseReason, Delivery};

    use super::*;
    use crate::client::Failure;
    use crate::frame::Reply;

    #[test]
    fn a_chat_is_counted_by_its_outcome() {
        let reply = || Box::new(Reply::new("o", "m"));
        let delivery = Delivery::Unknown;
        let reason = CloseReason::Lost;
        for (outcome, expected) in [
            (Outcome::Done(reply()), CallOutcome::Ok),
            (Outcome::Failed(Failure::Model(reply())), CallOutcome::Error),
            (Outcome::TimedOut { delivery }, CallOutcome::Error),
            (Outcome::Closed { reason, delivery }, CallOutcome::Error),
            (Outcome::Aborted { error: None }, CallOutcome::Cancelled),
        ] {
            let counted = ClientProtocol::outcome(&Value::Chat(outcome.clone()));
            assert_eq!(counted, expected, "{outcome:?}");
        }
        let aborted = Value::Call(CallValue::Aborted(false));
        assert_eq!(ClientProtocol::outcome(&aborted), CallOutcome::Ok);
    }
}
