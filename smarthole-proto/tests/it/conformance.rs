//! The rules of `Machine` for both ends.

use std::time::Instant;

use rpc_core::Machine;
use smarthole_proto::client::ClientConn;
use smarthole_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::rules::conforms;

use crate::client::{encoded, ready};
use crate::played::config;

const NASTY: &[&str] = &[
    r#"{"type":"registration","payload":null}"#,
    r#"{"type":"registration","payload":[{"name":"a"}]}"#,
    r#"{"type":"registration","payload":{"name":"a","description":"d"}}"#,
    r#"{"type":"registration","payload":{"name":{},"description":[],"capabilities":7}}"#,
    r#"{"type":"registration_response","payload":{"success":"yes"}}"#,
    r#"{"type":"registration_response","payload":{"success":true,"clientId":{}}}"#,
    r#"{"type":"registration_response","payload":null}"#,
    r#"{"type":"message","payload":{"id":[],"text":{},"timestamp":7}}"#,
    r#"{"type":"message","payload":{"id":"","text":"","timestamp":"","metadata":[]}}"#,
    r#"{"type":"message","payload":{"id":"m","text":"t","timestamp":"t","metadata":null}}"#,
    r#"{"type":"message","payload":{"id":"m","text":"t","timestamp":"t"}}"#,
    r#"{"type":"response","payload":{"messageId":"m","type":"ack","payload":[]}}"#,
    r#"{"type":"response","payload":{"messageId":{},"type":[],"payload":{}}}"#,
    r#"{"payload":{"messageId":"m","type":"reject","payload":{"reason":7}},"type":"response"}"#,
];

#[test]
fn both_machines_conform() {
    let now = Instant::now();
    let mut line = ready(now);
    line.server.send(encoded("1")).unwrap();
    line.settle();
    assert_eq!(line.client.in_flight(), 1);
    conforms(line.client, NASTY, now);
    conforms(line.server, NASTY, now);
    conforms(ClientConn::new(config(), now), NASTY, now);
    conforms(ServerConn::new(ServerConfig::default(), now), NASTY, now);
    // A refusal in the middle of it all ends the client, not the rules.
    let refused = r#"{"type":"registration_response","payload":{"success":false}}"#;
    let texts: Vec<&str> = NASTY.iter().copied().chain([refused]).collect();
    conforms(ClientConn::new(config(), now), &texts, now);
}
