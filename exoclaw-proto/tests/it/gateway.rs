//! A gateway of hand-written frames: a machine that says what a test tells it to say.

use std::collections::VecDeque;
use std::time::Instant;

use exoclaw_proto::client::{ClientConfig, ClientConn, ClientState};
use rpc_core::testing::Pair;
use rpc_core::{CloseFrame, Disconnect, Incoming, Machine, Outgoing};
use serde_json::{Value, json};

pub type Machines = Pair<ClientConn, Gateway>;

/// Its events are the client's frames.
#[derive(Default)]
pub struct Gateway {
    out: VecDeque<Outgoing>,
    received: VecDeque<Value>,
    is_closed: bool,
}

impl Gateway {
    pub fn send(&mut self, frame: &Value) {
        if !self.is_closed {
            self.out.push_back(Outgoing::Text(frame.to_string().into()));
        }
    }

    pub fn hello(&mut self) {
        self.send(&json!({"ok": true, "version": "0.1.0"}));
    }

    pub fn step(&mut self, id: &Value, event: &str, data: &Value) {
        self.send(&json!({"data": data, "event": event, "id": id}));
    }

    pub fn done(&mut self, id: &Value) {
        self.send(&json!({"event": "done", "id": id}));
    }
}

impl Machine for Gateway {
    type Event = Value;

    fn handle_message(&mut self, message: Incoming<'_>, _: Instant) {
        if let Incoming::Text(text) = message
            && !self.is_closed
        {
            self.received.push_back(serde_json::from_str(text).unwrap());
        }
    }

    fn handle_disconnect(&mut self, _: Disconnect, _: Instant) {
        self.is_closed = true;
        self.out.clear();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn poll_event(&mut self) -> Option<Value> {
        self.received.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.out.push_back(Outgoing::Close(frame));
    }
}

pub fn line(config: ClientConfig, seed: u64, now: Instant) -> Machines {
    let client = ClientConn::new(config, seed, now);
    Pair::new(client, Gateway::default(), now)
}

/// A line on which the hello was said and taken.
pub fn ready(seed: u64, now: Instant) -> Machines {
    let mut line = line(ClientConfig::default(), seed, now);
    line.server.hello();
    line.settle();
    assert_eq!(line.client.state(), ClientState::Ready);
    line.take_client_events();
    line
}
