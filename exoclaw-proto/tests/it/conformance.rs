//! The rules of `Machine` for the client.

use std::time::Instant;

use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent};
use exoclaw_proto::frame::ChatSend;
use exoclaw_proto::id::CallId;
use rpc_core::testing::conformance::{self, Calls};
use serde_json::{Value, json};
use switchboard_testing::sim;

use crate::gateway::{Gateway, Machines, ready};

fn nasty() -> Vec<String> {
    let mut nasty = conformance::nasty_texts();
    for text in [
        r#"{"ok":false}"#,
        r#"{"ok":{},"version":[]}"#,
        r#"{"id":"0","error":{"code":1}}"#,
        r#"{"id":7,"event":"text","data":[]}"#,
        r#"{"id":"1","event":"usage","data":{"input_tokens":-1}}"#,
        r#"{"id":"1","event":"tool_use","data":{"id":{},"name":[]}}"#,
        r#"{"id":"0000000000000000","result":{},"error":[],"event":null}"#,
    ] {
        nasty.push(text.to_owned());
    }
    nasty
}

fn chat(client: &mut ClientConn, now: Instant) -> Option<CallId> {
    let chat = ChatSend::new("websocket", "user", "hi");
    client.chat_send(&chat, now).ok()
}

#[test]
fn the_client_machine_conforms() {
    let now = Instant::now();
    let nasty = nasty();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let mut line = ready(7, now);
    line.client.ping(now).unwrap();
    chat(&mut line.client, now).unwrap();
    let fresh = || ClientConn::new(ClientConfig::new("t"), 7, now);
    for mut client in [line.client, fresh()] {
        conformance::early_timeout_is_a_no_op(&mut client, now);
        conformance::any_text_is_survived(&mut client, &texts, now);
        conformance::timeouts_make_progress(&mut client, 10);
        conformance::closed_is_inert(&mut client, &texts, now);
    }
}

#[derive(Default)]
struct Played {
    open: Vec<(Value, bool)>,
    turn: usize,
}

impl Calls for Played {
    type Client = ClientConn;
    type Server = Gateway;
    type Id = CallId;

    fn connect(&mut self, now: Instant, entropy: u64) -> Machines {
        self.open.clear();
        ready(entropy, now)
    }

    fn call(&mut self, client: &mut ClientConn, now: Instant) -> Option<CallId> {
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            client.ping(now).ok()
        } else {
            chat(client, now)
        }
    }

    fn answer(&mut self, server: &mut Gateway, index: u64, _: Instant) {
        if self.open.is_empty() {
            return;
        }
        let at = usize::try_from(index).unwrap_or(0) % self.open.len();
        let (id, streams) = self.open[at].clone();
        self.turn += 1;
        match self.turn % 5 {
            _ if !streams => server.say(&json!({"id": id, "result": "pong"})),
            0 | 1 => return server.step(&id, "text", &json!("more")),
            2 => server.done(&id),
            3 => server.say(&json!({"id": id, "error": "no"})),
            _ => {
                server.step(&id, "error", &json!("provider error: x"));
                server.done(&id);
            }
        }
        self.open.swap_remove(at);
    }

    fn cancel(&mut self, client: &mut ClientConn, id: CallId, _: Instant) {
        client.cancel(id);
    }

    fn server_event(&mut self, frame: Value) {
        let streams = frame["method"] == "chat.send";
        self.open.push((frame["id"].clone(), streams));
    }

    fn ended(&mut self, event: &ClientEvent) -> Option<CallId> {
        match event {
            ClientEvent::Reply { id, .. } | ClientEvent::ChatEnded { id, .. } => Some(*id),
            _ => None,
        }
    }
}

#[test]
fn every_request_and_chat_ends_exactly_once_over_random_schedules() {
    sim::run(100, |rng| {
        conformance::every_call_ends_once(&mut Played::default(), rng, 100, Instant::now())
    });
}
