//! The rules of `Machine` for the client.

use std::time::Instant;

use connectonion_proto::client::{ClientConfig, ClientConn};
use connectonion_proto::frame::{Answer, Connect, Input, Response, Signed};
use rpc_core::{Incoming, Machine};
use switchboard_testing::rules::conforms;

const NASTY: &[&str] = &[
    r#"{"type":"PING"}"#,
    r#"{"type":"CONNECTED","session_id":"s","status":"running"}"#,
    r#"{"type":"CONNECTED","session_id":7,"status":"executing","server_newer":true}"#,
    r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":true,"session":[]}"#,
    r#"{"type":"OUTPUT","result":null}"#,
    r#"{"type":"OUTPUT","result":{"a":1},"session":{}}"#,
    r#"{"type":"ONBOARD_REQUIRED","methods":[]}"#,
    r#"{"type":"ONBOARD_SUCCESS"}"#,
    r#"{"type":"RUNTIME_INPUT_ACK","id":"r"}"#,
    r#"{"type":"SESSION_STATUS","session_id":null,"status":"not_found"}"#,
    r#"{"type":"ADMIN_RESULT","action":"promote"}"#,
    r#"{"type":"ERROR","message":"prompt required"}"#,
    r#"{"type":"ERROR","error":"boom","code":-32603}"#,
    r#"{"type":"ERROR","code":"RUNTIME_INPUT_REJECTED","message":"x"}"#,
    r#"{"type":"ERROR","code":"STALE_ANSWER","message":"x","request_id":7}"#,
    r#"{"type":"user_input","content":"x","id":"u","ts":1}"#,
    r#"{"type":"user_input","content":[{"type":"text"}],"id":"u","ts":1}"#,
    r#"{"type":"ask_user","id":"q","ts":1}"#,
    r#"{"type":"thinking","id":{},"ts":"x"}"#,
];

fn new(now: Instant) -> ClientConn {
    let connect = Connect::new(Signed::none());
    ClientConn::new(ClientConfig::default(), &connect, 7, now)
}

fn recv(conn: &mut ClientConn, text: &str, now: Instant) {
    conn.handle_message(Incoming::Text(text), now);
}

/// Let in, with something under way of every kind.
fn busy(now: Instant) -> ClientConn {
    let mut conn = new(now);
    recv(
        &mut conn,
        r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
        now,
    );
    conn.input(&Input::new("go"), now).unwrap();
    recv(
        &mut conn,
        r#"{"type":"user_input","content":"go","id":"u","ts":1}"#,
        now,
    );
    conn.input(&Input::new("and"), now).unwrap();
    conn.query("s", now).unwrap();
    let answer = Response::new("q", Answer::PlanReview("yes".into()));
    conn.respond(&answer, now).unwrap();
    assert_eq!(conn.in_flight(), 3);
    conn
}

/// At the gate, with an offer under way.
fn gated(now: Instant) -> ClientConn {
    let mut conn = new(now);
    recv(
        &mut conn,
        r#"{"type":"ONBOARD_REQUIRED","methods":["invite_code"]}"#,
        now,
    );
    let offer = connectonion_proto::frame::OnboardSubmit::from(Signed::none());
    let offer: connectonion_proto::frame::OnboardSubmit = offer;
    conn.onboard(&offer, now).unwrap();
    conn
}

#[test]
fn the_client_machine_conforms_in_every_state() {
    let now = Instant::now();
    for make in [new, busy, gated] {
        conforms(make(now), NASTY, now);
        let mut conn = make(now);
        conn.close(now);
        conforms(conn, NASTY, now);
    }
}
