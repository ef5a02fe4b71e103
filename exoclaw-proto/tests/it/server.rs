//! The rules of `Machine` for the server's end.

use std::time::Instant;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::rules::conforms;

const NASTY: [&str; 7] = [
    r#"{"token":"s3cret"}"#,
    r#"{"id":"1","method":"ping","params":[[[[]]]]}"#,
    r#"{"id":{},"method":"chat.send"}"#,
    r#"{"id":"1","method":"chat.send","params":{"channel":{},"channel":[]}}"#,
    r#"["1","chat.send",["c","a",null,"x"]]"#,
    r#"{"id":-0.0,"method":"status"}"#,
    r#"{"id":"1","method":"plugin.load","params":{"name":1}}"#,
];

#[test]
fn the_server_machine_conforms() {
    let now = Instant::now();
    for in_order in [false, true] {
        let config = ServerConfig {
            in_order,
            ..ServerConfig::default()
        };
        let token = Auth::token("s3cret").unwrap();
        for auth in [Auth::open(), token] {
            conforms(ServerConn::new(config.clone(), auth, now), &NASTY, now);
        }
    }
}
