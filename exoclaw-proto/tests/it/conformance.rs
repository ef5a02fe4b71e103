//! The rules of `Machine` for the client.

use std::time::Instant;

use exoclaw_proto::client::{ClientConfig, ClientConn};
use exoclaw_proto::frame::ChatSend;
use switchboard_testing::rules::conforms;

use crate::gateway::ready;

const NASTY: &[&str] = &[
    r#"{"ok":false}"#,
    r#"{"ok":{},"version":[]}"#,
    r#"{"id":"0","error":{"code":1}}"#,
    r#"{"id":7,"event":"text","data":[]}"#,
    r#"{"id":"1","event":"usage","data":{"input_tokens":-1}}"#,
    r#"{"id":"1","event":"tool_use","data":{"id":{},"name":[]}}"#,
    r#"{"id":"0000000000000000","result":{},"error":[],"event":null}"#,
];

#[test]
fn the_client_machine_conforms() {
    let now = Instant::now();
    let mut line = ready(7, now);
    line.client.ping(now).unwrap();
    let chat = ChatSend::new("websocket", "user", "hi");
    line.client.chat_send(&chat, now).unwrap();
    conforms(line.client, NASTY, now);
    conforms(ClientConn::new(ClientConfig::new("t"), 7, now), NASTY, now);
}
