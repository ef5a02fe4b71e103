//! The rules of `Machine` for both ends.

use std::time::Instant;

use rpc_core::CallId;
use rpc_core::testing::conformance::{self, Calls};
use serde_json::json;
use snek_proto::client::{ClientConn, ClientEvent};
use snek_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::sim;

use crate::played::{Machines, config, ready};

#[test]
fn both_machines_conform() {
    let now = Instant::now();
    let mut nasty = conformance::nasty_texts();
    for text in [
        r#"{"method":"login","args":["a","b"],"callId":"1"}"#,
        r#"{"method":"login","args":[[],{}],"kwargs":{"username":{}},"callId":{}}"#,
        r#"{"event":"message","message":null,"username":[]}"#,
        r#"{"event":"new_message","data":{"message":1}}"#,
        r#"{"event":"join","data":"x"}"#,
        r#"{"callId":"0000000000000000","success":"no","error":{},"data":[]}"#,
    ] {
        nasty.push(text.to_owned());
    }
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let mut pair = ready(7, now);
    pair.client.ping(now).unwrap();
    conformance::early_timeout_is_a_no_op(&mut pair.client, now);
    conformance::early_timeout_is_a_no_op(&mut pair.server, now);
    conformance::any_text_is_survived(&mut pair.client, &texts, now);
    conformance::any_text_is_survived(&mut pair.server, &texts, now);
    conformance::timeouts_make_progress(&mut pair.client, 10);
    conformance::timeouts_make_progress(&mut pair.server, 10);
    conformance::closed_is_inert(&mut pair.client, &texts, now);
    conformance::closed_is_inert(&mut pair.server, &texts, now);
    let mut client = ClientConn::new(config(), 7, now);
    conformance::early_timeout_is_a_no_op(&mut client, now);
    conformance::any_text_is_survived(&mut client, &texts, now);
    conformance::timeouts_make_progress(&mut client, 10);
    conformance::closed_is_inert(&mut client, &texts, now);
    let mut server = ServerConn::new(ServerConfig::default(), now);
    conformance::early_timeout_is_a_no_op(&mut server, now);
    conformance::any_text_is_survived(&mut server, &texts, now);
    conformance::timeouts_make_progress(&mut server, 10);
    conformance::closed_is_inert(&mut server, &texts, now);
}

#[derive(Default)]
struct SnekCalls {
    open: Vec<RequestId>,
}

impl Calls for SnekCalls {
    type Client = ClientConn;
    type Server = ServerConn;
    type Id = CallId;

    fn connect(&mut self, now: Instant, entropy: u64) -> Machines {
        self.open.clear();
        ready(entropy, now)
    }

    fn call(&mut self, client: &mut ClientConn, now: Instant) -> Option<CallId> {
        client.ping(now).ok()
    }

    fn answer(&mut self, server: &mut ServerConn, index: u64, _: Instant) {
        if self.open.is_empty() {
            return;
        }
        let index = usize::try_from(index).unwrap_or(0) % self.open.len();
        let id = self.open.swap_remove(index);
        let _ = server.reply(id, &json!({"pong": []}));
    }

    fn cancel(&mut self, client: &mut ClientConn, id: CallId, _: Instant) {
        client.cancel(id);
    }

    fn server_event(&mut self, event: ServerEvent) {
        if let ServerEvent::Request { id, .. } = event {
            self.open.push(id);
        }
    }

    fn ended(&mut self, event: &ClientEvent) -> Option<CallId> {
        match event {
            ClientEvent::Reply { id, .. } => Some(*id),
            _ => None,
        }
    }
}

#[test]
fn every_call_ends_exactly_once_under_random_faults() {
    sim::run(100, |rng| {
        conformance::every_call_ends_once(&mut SnekCalls::default(), rng, 100, Instant::now())
    });
}
