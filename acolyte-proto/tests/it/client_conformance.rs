//! The rules of `Machine` for the client.

use std::time::Instant;

use acolyte_proto::client::{ClientConfig, ClientConn};
use acolyte_proto::frame::ChatRequest;
use switchboard_testing::rules::conforms;

const NASTY: &[&str] = &[
    r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
    r#"{"id":"rpc_a","type":"chat.done"}"#,
    r#"{"id":"rpc_a","type":"chat.queued","position":0}"#,
    r#"{"id":7,"type":"chat.event","event":[]}"#,
    r#"{"id":"rpc_A","type":"status.result","status":null}"#,
    r#"{"id":"rpc_a","type":"chat.error","errorId":null,"error":"x"}"#,
];

#[test]
fn the_client_machine_conforms() {
    let now = Instant::now();
    let fresh = || ClientConn::new(ClientConfig::default(), 7, now);
    let mut busy = fresh();
    busy.status(now).unwrap();
    let chat = busy.chat(&ChatRequest::new("hi", "m"), now).unwrap();
    busy.abort(chat, now).unwrap();
    conforms(busy, NASTY, now);
    conforms(fresh(), NASTY, now);
}
