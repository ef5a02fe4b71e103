//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod constants;
mod images;
mod messages;
mod received;
mod receiving;
mod retries;
mod sent;
mod sequences;
mod toolloop;
mod tools;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use rpc_core::{Incoming, Machine, Outgoing};
use serde_json::{Value, json};
use snek_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};

/// What stands for a long text in the files.
const BIG: &str = "<big>";

/// One vector.
pub(crate) struct Vector(Value);

impl Vector {
    pub(crate) fn name(&self) -> &str {
        self.str("name")
    }

    /// A member that must be a string.
    pub(crate) fn str(&self, member: &str) -> &str {
        self.try_str(member)
            .unwrap_or_else(|| panic!("no text {member}: {}", self.0))
    }

    pub(crate) fn try_str(&self, member: &str) -> Option<&str> {
        self.0.get(member)?.as_str()
    }

    /// A member that is `true`; absent is `false`.
    pub(crate) fn is(&self, member: &str) -> bool {
        self.0.get(member) == Some(&json!(true))
    }

    pub(crate) fn has(&self, member: &str) -> bool {
        self.0.get(member).is_some()
    }

    /// A member of any type; absent is null.
    pub(crate) fn get(&self, member: &str) -> &Value {
        self.0.get(member).unwrap_or(&Value::Null)
    }

    /// The texts of a list; none if it is absent.
    pub(crate) fn strs(&self, member: &str) -> Vec<&str> {
        let items = self.get(member).as_array().map(Vec::as_slice);
        let texts = items.unwrap_or_default().iter();
        texts.map(|item| item.as_str().unwrap()).collect()
    }
}

/// The vectors of a topic, with long texts written out.
pub(crate) fn load(topic: &str) -> Vec<Vector> {
    let path = format!("{}/tests/vectors/{topic}.json", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(path).unwrap();
    let mut file: Value = serde_json::from_str(&file).unwrap();
    write_out(&mut file["vectors"], &"x".repeat(100_000));
    let Value::Array(list) = file["vectors"].take() else {
        panic!("{topic} has no vectors")
    };
    list.into_iter().map(Vector).collect()
}

fn write_out(value: &mut Value, big: &str) {
    match value {
        Value::String(text) if text.contains(BIG) => *text = text.replace(BIG, big),
        Value::Array(items) => items.iter_mut().for_each(|item| write_out(item, big)),
        Value::Object(members) => members.values_mut().for_each(|item| write_out(item, big)),
        _ => {}
    }
}

/// Checks every vector of a topic, and only then fails, with the names of those that failed.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    let vectors = load(topic);
    let failed: Vec<_> = vectors
        .iter()
        .filter(|vector| catch_unwind(AssertUnwindSafe(|| check(vector))).is_err())
        .map(Vector::name)
        .collect();
    report(topic, vectors.len(), &failed);
}

pub(crate) fn report(topic: &str, of: usize, failed: &[&str]) {
    assert!(
        failed.is_empty(),
        "{topic}: {} of {of} vectors fail: {failed:#?}",
        failed.len()
    );
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
