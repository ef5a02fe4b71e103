//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use allocation_counter::measure;
use connectonion_proto::client::{ClientConfig, ClientConn};
use connectonion_proto::codec::encode_into;
use connectonion_proto::frame::{
    ClientFrame, Connect, EventKind, Input, ServerFrame, Signed, StreamEvent, Thinking, ToolCall,
};
use rpc_core::{Incoming, Limits, Machine};

const ROUNDS: u64 = 1_000;

/// Each with its texts longer than 23 bytes and its raw values.
const EVENTS: [(&str, u64); 9] = [
    (
        r#"{"type":"user_input","content":"hello","turn":1,"ts":1795293032.5080616,"id":"25b12e09","session_id":"d0b8d813"}"#,
        0,
    ),
    (
        r#"{"type":"llm_call","id":"53c52995","model":"fake-llm","iteration":1,"status":"running","ts":1795293032.5311863,"session_id":"d0b8d813"}"#,
        0,
    ),
    (
        r#"{"type":"llm_result","id":"53c52995","model":"fake-llm","iteration":1,"duration_ms":0.26,"tool_calls_count":0,"usage":{"input_tokens":101,"output_tokens":7,"cached_tokens":0,"cache_write_tokens":0,"cost":0.0},"context_percent":0.07,"status":"success","ts":1795293032.5321572,"session_id":"d0b8d813"}"#,
        1,
    ),
    (
        r#"{"type":"thinking","content":"considering the request","kind":"harness","id":"4fa2a8b6","ts":1795293032.6169622,"session_id":"11c6fadf"}"#,
        0,
    ),
    (
        r#"{"type":"tool_call","tool_id":"call_1_add","name":"add","args":{"a":2,"b":3},"id":"c293f0fa","ts":1795293032.5962923,"session_id":"11c6fadf"}"#,
        0,
    ),
    (
        r#"{"type":"tool_result","tool_id":"call_1_add","name":"add","args":{"a":2,"b":3},"status":"success","result":"5","timing_ms":0.0016689300537109375,"id":"6e1a22b2","ts":1795293032.596347,"session_id":"11c6fadf"}"#,
        0,
    ),
    (
        r#"{"type":"ask_user","question":"Which language?","options":["Python 3","Rust"],"multi_select":false,"id":"1c8eeb6d","ts":1795293060.127178,"session_id":"5215811a"}"#,
        0,
    ),
    (
        r#"{"type":"session_sync","session":{"session_id":"d0b8d813","messages":[{"role":"user","content":"hello"}],"trace":[]},"id":"6167356d","ts":1795293032.5081174,"session_id":"d0b8d813"}"#,
        1,
    ),
    (
        r#"{"type":"my_own","at":[1,2],"id":"6167356d","ts":1795293032.5081174,"session_id":"d0b8d813"}"#,
        1,
    ),
];

const OTHERS: [(&str, u64); 5] = [
    (r#"{"type":"PING"}"#, 0),
    (
        r#"{"type":"OUTPUT","result":"Hola","session_id":"550e8400-...","duration_ms":1250,"session":{"messages":[]},"chat_items":[]}"#,
        0,
    ),
    (
        r#"{"type":"CONNECTED","session_id":"550e8400-...","status":"new"}"#,
        0,
    ),
    (
        r#"{"type":"RUNTIME_INPUT_ACK","session_id":"550e8400-...","id":"runtime-input-7c2a..."}"#,
        0,
    ),
    (r#"{"type":"ERROR","message":"prompt required"}"#, 0),
];

const CLIENT: [(&str, u64); 6] = [
    (r#"{"type":"PONG"}"#, 0),
    (
        r#"{"type":"INPUT","prompt":"Translate hello to Spanish"}"#,
        1,
    ),
    (
        r#"{"type":"INPUT","prompt":"look","images":["data:image/png;base64,AAAA"],"files":[{"name":"a","data":"data:,x"}]}"#,
        2,
    ),
    (r#"{"type":"ASK_USER_RESPONSE","answer":"Python 3"}"#, 0),
    (
        r#"{"type":"APPROVAL_RESPONSE","approved":true,"scope":"once"}"#,
        0,
    ),
    (
        r#"{"type":"CONNECT","session_id":"s","last_msg_id":"e","session":{"messages":[]},"payload":{"to":"0x3d","timestamp":1702234567},"from":"0xab","signature":"00"}"#,
        1,
    ),
];

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = measure(|| (0..ROUNDS).for_each(|_| round())).count_total;
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_allocates_once_per_long_value() {
    let limits = Limits::default();
    for (text, long) in EVENTS.iter().chain(&OTHERS) {
        let count = cost(text, || {
            let frame = ServerFrame::decode(text, &limits).unwrap();
            assert!(!matches!(frame, ServerFrame::Unknown { .. }));
        });
        assert_eq!(count, long * ROUNDS);
    }
    for (text, long) in CLIENT {
        let count = cost(text, || {
            let frame = ClientFrame::decode(text, &limits).unwrap();
            assert!(!matches!(frame, ClientFrame::Unknown { .. }));
        });
        assert_eq!(count, long * ROUNDS);
    }
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = String::with_capacity(4096);
    let args = connectonion_proto::Json::of(&serde_json::json!({"a": 1})).unwrap();
    let call = EventKind::ToolCall(ToolCall::new("call_1", "add", args));
    let event = StreamEvent::new(call, "ev-1", 1_795_293_032.5, "s");
    let thought = EventKind::Thinking(Thinking::new("so it is"));
    let thought = StreamEvent::new(thought, "ev-2", 1_795_293_032.5, "s");
    let input = Input::new("Translate hello to Spanish");
    let count = cost("events and a prompt", || {
        buffer.clear();
        encode_into(&event, &mut buffer).unwrap();
        encode_into(&thought, &mut buffer).unwrap();
        encode_into(&input, &mut buffer).unwrap();
        encode_into(&ServerFrame::Ping, &mut buffer).unwrap();
        encode_into(&ClientFrame::Pong, &mut buffer).unwrap();
    });
    assert_eq!(count, 0);
}

/// A client that is admitted.
fn client() -> ClientConn {
    let now = Instant::now();
    let connect = Connect::new(Signed::none());
    let mut conn = ClientConn::new(
        ClientConfig {
            session_sync: true,
            ..ClientConfig::default()
        },
        &connect,
        7,
        now,
    );
    let running = r#"{"type":"CONNECTED","session_id":"s","status":"running"}"#;
    conn.handle_message(Incoming::Text(running), now);
    while conn.poll_transmit().is_some() || conn.poll_event().is_some() {}
    conn
}

#[test]
fn a_ping_and_its_pong_cost_the_client_no_allocation() {
    let mut conn = client();
    let now = Instant::now();
    let count = cost("PING and PONG", || {
        conn.handle_message(Incoming::Text(r#"{"type":"PING"}"#), now);
        assert!(conn.poll_transmit().is_some());
    });
    assert_eq!(count, 0);
}

#[test]
fn a_step_costs_the_client_an_allocation_for_its_frame_and_each_long_value() {
    let now = Instant::now();
    for (text, long) in EVENTS {
        let mut conn = client();
        let count = cost(text, || {
            conn.handle_message(Incoming::Text(text), now);
            assert!(conn.poll_event().is_some());
        });
        assert!(count <= (long + 1) * ROUNDS, "{count}");
    }
}
