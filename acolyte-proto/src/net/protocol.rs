//! How the client's machine rides on a [`Link`](rpc_core::net::Link).

use std::sync::Arc;
use std::time::Instant;

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};

use crate::client::{CallId, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome, RpcError};
use crate::frame::Status;
use crate::task::Task;

/// The client's side: every connection opens with the same configuration.
#[derive(Clone, Debug)]
pub struct ClientSide {
    config: Arc<ClientConfig>,
}

impl ClientSide {
    /// Connections with this configuration.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>) -> Self {
        let config = config.into();
        Self { config }
    }
}

/// How a request ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallValue {
    /// A chat, well or not.
    Chat(Outcome),
    /// A question for the status.
    Status(Box<Status>),
    /// A question for a task.
    Task(Option<Task>),
    /// An abort: whether there was something to abort.
    Aborted(bool),
}

impl Protocol for ClientSide {
    type Machine = ClientConn;
    type Call = CallId;
    type Value = CallValue;
    type Remote = RpcError;
    type Item = ChatUpdate;
    type Event = ClientEvent;

    fn open(&mut self, now: Instant, entropy: u64) -> ClientConn {
        ClientConn::new(Arc::clone(&self.config), entropy, now)
    }

    fn sort(&mut self, event: ClientEvent) -> Sorted<Self> {
        match event {
            ClientEvent::Chat {
                id,
                update: ChatUpdate::Ended(outcome),
            } => Sorted::Reply(id, Ok(CallValue::Chat(outcome))),
            ClientEvent::Chat { id, update } => Sorted::Item(id, update),
            ClientEvent::Status { id, result } => Sorted::Reply(id, result.map(CallValue::Status)),
            ClientEvent::TaskStatus { id, result } => {
                Sorted::Reply(id, result.map(CallValue::Task))
            }
            ClientEvent::AbortResult { id, result, .. } => {
                Sorted::Reply(id, result.map(CallValue::Aborted))
            }
            ClientEvent::Closed(reason) => Sorted::Closed(reason),
            ClientEvent::Ready => Sorted::Ready(Some(ClientEvent::Ready)),
            other => Sorted::Event(other),
        }
    }

    fn close(machine: &mut ClientConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(machine: &mut ClientConn, call: CallId, now: Instant) {
        machine.cancel(call, now);
    }

    fn in_flight(machine: &ClientConn) -> usize {
        machine.in_flight()
    }

    fn weight(event: &ClientEvent) -> usize {
        event.weight()
    }

    fn item_weight(item: &ChatUpdate) -> usize {
        item.weight()
    }
}
