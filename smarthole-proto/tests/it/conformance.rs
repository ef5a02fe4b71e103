//! The rules of `Machine` for both ends.

use std::time::Instant;

use rpc_core::Machine;
use rpc_core::testing::conformance;
use smarthole_proto::client::ClientConn;
use smarthole_proto::server::{ServerConfig, ServerConn};

use crate::client::{encoded, ready};
use crate::played::config;

fn nasty() -> Vec<String> {
    let mut nasty = conformance::nasty_texts();
    for text in [
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
    ] {
        nasty.push(text.to_owned());
    }
    nasty
}

fn check(mut machine: impl Machine, texts: &[&str], now: Instant) {
    conformance::early_timeout_is_a_no_op(&mut machine, now);
    conformance::any_text_is_survived(&mut machine, texts, now);
    conformance::timeouts_make_progress(&mut machine, 10);
    conformance::closed_is_inert(&mut machine, texts, now);
}

#[test]
fn both_machines_conform() {
    let now = Instant::now();
    let nasty = nasty();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let mut line = ready(now);
    line.server.send(encoded("1")).unwrap();
    line.settle();
    assert_eq!(line.client.in_flight(), 1);
    check(line.client, &texts, now);
    check(line.server, &texts, now);
    check(ClientConn::new(config(), now), &texts, now);
    check(ServerConn::new(ServerConfig::default(), now), &texts, now);
    // A refusal in the middle of it all ends the client, not the rules.
    let refused = r#"{"type":"registration_response","payload":{"success":false}}"#;
    let mut texts = texts;
    texts.push(refused);
    check(ClientConn::new(config(), now), &texts, now);
}
