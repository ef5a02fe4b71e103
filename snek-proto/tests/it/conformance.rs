//! The rules of `Machine` for both ends.

use std::time::Instant;

use snek_proto::client::ClientConn;
use snek_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::rules::conforms;

use crate::played::{config, ready};

const NASTY: &[&str] = &[
    r#"{"method":"login","args":["a","b"],"callId":"1"}"#,
    r#"{"method":"login","args":[[],{}],"kwargs":{"username":{}},"callId":{}}"#,
    r#"{"event":"message","message":null,"username":[]}"#,
    r#"{"event":"new_message","data":{"message":1}}"#,
    r#"{"event":"join","data":"x"}"#,
    r#"{"callId":"0000000000000000","success":"no","error":{},"data":[]}"#,
];

#[test]
fn both_machines_conform() {
    let now = Instant::now();
    let mut pair = ready(7, now);
    pair.client.ping(now).unwrap();
    conforms(pair.client, NASTY, now);
    conforms(pair.server, NASTY, now);
    conforms(ClientConn::new(config(), 7, now), NASTY, now);
    conforms(ServerConn::new(ServerConfig::default(), now), NASTY, now);
}
