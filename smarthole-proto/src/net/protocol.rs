//! How the client's machine rides on a [`Link`](rpc_core::net::Link).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};

use super::desk::Desk;
use super::event::Event;
use super::inbound::InboundMessage;
use crate::client::{ClientConfig, ClientConn, ClientEvent};

/// The client's side: every connection registers with the same configuration.
/// [`connect_with`](super::connect_with) makes it.
#[derive(Debug)]
pub struct ClientSide {
    config: Arc<ClientConfig>,
    desk: Arc<Desk>,
}

impl ClientSide {
    pub(super) fn new(config: impl Into<Arc<ClientConfig>>, desk: Arc<Desk>) -> Self {
        let config = config.into();
        Self { config, desk }
    }
}

impl Protocol for ClientSide {
    type Machine = ClientConn;
    type Call = Infallible;
    type Value = Infallible;
    type Remote = Infallible;
    type Item = Infallible;
    type Event = Event;

    fn open(&mut self, now: Instant, _: u64) -> ClientConn {
        ClientConn::new(Arc::clone(&self.config), now)
    }

    fn sort(&mut self, event: ClientEvent) -> Sorted<Self> {
        match event {
            ClientEvent::Registered { client_id, message } => {
                Sorted::Ready(Some(Event::Registered { client_id, message }))
            }
            ClientEvent::Message {
                message,
                deadline,
                frame,
            } => {
                let desk = Arc::clone(&self.desk);
                let message = InboundMessage::new(message, deadline, frame, desk);
                Sorted::Event(Event::Message(message))
            }
            ClientEvent::Refused(error) => Sorted::Event(Event::Refused(error)),
            ClientEvent::Overdue { id } => Sorted::Event(Event::Overdue { id }),
            ClientEvent::Unknown { tag, raw } => Sorted::Event(Event::Unknown { tag, raw }),
            ClientEvent::Warning(warning) => Sorted::Event(Event::Warning(warning)),
            ClientEvent::Closed(reason) => Sorted::Closed(reason),
        }
    }

    fn close(machine: &mut ClientConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ClientConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn gather(&mut self, machine: &mut ClientConn, now: Instant) {
        self.desk.collect(machine, now);
    }

    fn in_flight(machine: &ClientConn) -> usize {
        machine.in_flight()
    }

    fn weight(event: &Event) -> usize {
        size_of::<Event>()
            + match event {
                Event::Message(message) => message.frame().get().len(),
                Event::Unknown { raw, .. } => raw.get().len(),
                _ => 0,
            }
    }
}
