//! The client's machine on a [`Link`](rpc_core::net::Link).

use std::convert::Infallible;
use std::sync::Arc;

use rpc_core::Instant;
use rpc_core::net::{LinkAction, Protocol};

use super::Event;
use super::inbound::InboundMessage;
use super::left_answers::LeftAnswers;
use crate::client::{ClientConfig, ClientConn, ClientEvent};
use crate::limits::CLIENT_DISCONNECT;
use crate::net::SYSTEM;

/// The client's side: every connection registers with the same configuration. Created by
/// [`connect_with`](super::connect_with).
#[derive(Debug)]
pub struct ClientProtocol {
    config: Arc<ClientConfig>,
    left: Arc<LeftAnswers>,
}

impl ClientProtocol {
    pub(super) fn new(config: impl Into<Arc<ClientConfig>>, left: Arc<LeftAnswers>) -> Self {
        let config = config.into();
        Self { config, left }
    }
}

impl Protocol for ClientProtocol {
    type Machine = ClientConn;
    type Call = Infallible;
    type Value = Infallible;
    type Remote = Infallible;
    type Item = Infallible;
    type Event = Event;

    const SYSTEM: &'static str = SYSTEM;
    const GOODBYE: &'static str = CLIENT_DISCONNECT;

    fn open(&mut self, now: Instant, _: u64) -> ClientConn {
        ClientConn::new(Arc::clone(&self.config), now)
    }

    fn classify(&mut self, event: ClientEvent) -> LinkAction<Self> {
        match event {
            ClientEvent::Registered { client_id, message } => {
                LinkAction::Ready(Some(Event::Registered { client_id, message }))
            }
            ClientEvent::Message(received) => {
                let left = Arc::clone(&self.left);
                let message = InboundMessage::new(received, left);
                LinkAction::Event(Event::Message(message))
            }
            ClientEvent::Refused(error) => LinkAction::Event(Event::Refused(error)),
            ClientEvent::Overdue { id } => LinkAction::Event(Event::Overdue { id }),
            ClientEvent::Unknown { tag, raw } => LinkAction::Event(Event::Unknown { tag, raw }),
            ClientEvent::Warning(warning) => LinkAction::Event(Event::Warning(warning)),
            ClientEvent::Closed(reason) => LinkAction::Closed(reason),
        }
    }

    fn cancel(_: &mut ClientConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn before_write(&mut self, machine: &mut ClientConn, now: Instant) {
        self.left.collect(machine, now);
    }
}
