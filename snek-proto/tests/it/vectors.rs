//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod images;
mod messages;
mod received;
mod receiving;
mod retries;
mod sent;
mod sequences;
mod toolloop;
mod tools;

use rpc_core::{Incoming, Instant, Machine, Outgoing};
use serde_json::{Value, json};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
use switchboard_testing::vectors;
pub(crate) use switchboard_testing::vectors::Vector;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");

pub(crate) fn load(topic: &str) -> Vec<Vector> {
    vectors::load(FOLDER, topic)
}

/// Checks every vector of a topic.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    vectors::run(FOLDER, topic, check);
}

/// A client whose peer is played by hand, and its clock.
pub(crate) struct Hand {
    pub(crate) conn: ClientConn,
    pub(crate) now: Instant,
}

impl Hand {
    /// A client that has sent its login. Its call ids hold letters.
    pub(crate) fn new(config: ClientConfig) -> Self {
        let now = Instant::now();
        Self {
            conn: ClientConn::new(config, 0xabcd_ef01_2345_6789, now),
            now,
        }
    }

    /// A client that is logged in.
    pub(crate) fn ready(config: ClientConfig) -> Self {
        let mut hand = Self::new(config);
        hand.open();
        assert_eq!(hand.conn.state(), ClientState::Ready);
        assert!(matches!(hand.events()[..], [ClientEvent::Ready(_)]));
        hand
    }

    /// Answers what the opening still asks for.
    pub(crate) fn open(&mut self) {
        while let Some(request) = self.sent() {
            let data = match request["method"].as_str().unwrap() {
                "login" => json!({"username": "mybot"}),
                "get_user" => json!({"username": "mybot", "nick": "MyBot"}),
                "get_channels" => json!([{"uid": "ch1", "name": "general", "tag": "public"}]),
                other => panic!("{other}"),
            };
            self.take(&json!({"callId": request["callId"], "data": data}).to_string());
        }
    }

    /// The next text that leaves.
    pub(crate) fn text(&mut self) -> Option<String> {
        match self.conn.poll_transmit()? {
            Outgoing::Text(text) => Some(text.as_str().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn sent(&mut self) -> Option<Value> {
        Some(serde_json::from_str(&self.text()?).unwrap())
    }

    pub(crate) fn take(&mut self, text: &str) {
        self.conn.handle_message(Incoming::Text(text), self.now);
    }

    pub(crate) fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.conn.poll_event()).collect()
    }
}

pub(crate) fn config() -> ClientConfig {
    ClientConfig::new("mybot", "mypassword")
}
