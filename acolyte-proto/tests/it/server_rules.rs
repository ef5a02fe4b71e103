//! The rules of `Machine` for the server.

use std::time::Instant;

use acolyte_proto::frame::{ChatRequest, ClientFrame, Request};
use acolyte_proto::id::RpcId;
use acolyte_proto::server::{ServerConfig, ServerConn};
use acolyte_proto::{codec, limits};
use rpc_core::{Incoming, Machine};
use switchboard_testing::rules::conforms;

fn id(n: usize) -> RpcId {
    format!("rpc_{n}").parse::<RpcId>().unwrap()
}

fn start(n: usize) -> ClientFrame {
    let request = ChatRequest::new("hi", "m");
    ClientFrame::new(id(n), Request::ChatStart(Box::new(request)))
}

fn abort(n: usize, chat: usize) -> ClientFrame {
    let request_id = id(chat);
    ClientFrame::new(id(n), Request::ChatAbort(request_id))
}

fn take(conn: &mut ServerConn, frame: &ClientFrame, now: Instant) {
    let text = codec::encode(frame).unwrap();
    conn.handle_message(Incoming::Text(text.as_str()), now);
}

const NASTY: &[&str] = &[
    r#"{"id":"rpc_a","type":"chat.start","payload":null}"#,
    r#"{"id":"rpc_a","type":"chat.start","payload":{"request":[]}}"#,
    r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[null],"model":""}}}"#,
    r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"","more":1}}}"#,
    r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":"rpc_a"}}"#,
    r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":null}}"#,
    r#"{"id":"rpc_x","type":"task.status","payload":{"taskId":"rpc_a"}}"#,
    r#"{"id":"rpc_unknown","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"m"}}}"#,
    r#"{"id":7,"type":"status.get"}"#,
];

#[test]
fn the_server_keeps_the_rules() {
    let now = Instant::now();
    let fresh = || ServerConn::new(ServerConfig::default(), 7, now);
    let mut busy = fresh();
    for n in 0..5 {
        take(&mut busy, &start(n), now);
    }
    take(&mut busy, &abort(9, 0), now);
    conforms(busy, NASTY, now);
    conforms(fresh(), NASTY, now);
}

#[test]
fn the_limits_of_the_protocol_are_the_defaults() {
    let config = ServerConfig::default();
    assert_eq!(config.max_queued, 25);
    assert_eq!(config.limits, limits::defaults());
}
