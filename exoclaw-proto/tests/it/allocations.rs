//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use allocation_counter::measure;
use bytes::BytesMut;
use exoclaw_proto::binding::{Binding, Route, Router};
use exoclaw_proto::client::{ClientConfig, ClientConn};
use exoclaw_proto::codec::{encode_event, encode_request, redact};
use exoclaw_proto::frame::{ClientFrame, Request, StreamEvent};
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
use exoclaw_proto::{CallId, ChatSend, ServerFrame};
use rpc_core::decode::SharedJson;
use rpc_core::{Incoming, Limits, Machine, Outgoing};

const ROUNDS: u64 = 1_000;
const CHUNK: &str = r#"{"id":"00000000000000ab","event":"text","data":"Hello world, this is a chunk of a hundred bytes"}"#;
const CHAT: &str = r#"{"id":"00000000000000ab","method":"chat.send","params":{"channel":"websocket","account":"user-123","peer":"main","content":"Hello, how are you?"}}"#;

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = measure(|| (0..ROUNDS).for_each(|_| round())).count_total;
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_frames_without_escapes_costs_no_allocation() {
    let limits = Limits::default();
    for text in [
        CHUNK,
        r#"{"id":"1","event":"usage","data":{"input_tokens":150,"output_tokens":42}}"#,
        r#"{"id":"1","event":"done"}"#,
        r#"{"id":"1","result":{"version":"0.1.0","plugins":2,"sessions":5}}"#,
        r#"{"id":"1","error":"unknown method: x"}"#,
        r#"{"ok":true,"version":"0.1.0"}"#,
    ] {
        let decoded = cost(text, || {
            assert!(ServerFrame::decode(text, &limits).is_ok());
        });
        assert_eq!(decoded, 0, "{text}");
    }
    // Its data is kept raw and nested twice, for which the scanner of JSON notes open brackets.
    let tool = r#"{"id":"1","event":"tool_use","data":{"id":"c","name":"echo","input":{"a":1}}}"#;
    let tool = cost("tool call", || {
        assert!(ServerFrame::decode(tool, &limits).is_ok());
    });
    assert!(tool <= ROUNDS, "{tool}");
    let request = cost("request", || {
        let request = Request::decode(CHAT, &limits).unwrap();
        assert!(request.call(&limits).is_ok());
        assert_eq!(request.id().text(), "00000000000000ab");
    });
    assert_eq!(request, 0);
    let either = cost("frame of a client", || {
        assert!(ClientFrame::decode(CHAT, &limits).is_ok());
    });
    assert_eq!(either, 0);
    let logged = cost("logged", || assert_eq!(redact(CHUNK), CHUNK));
    assert_eq!(logged, 0);
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = BytesMut::with_capacity(4096);
    let id = CallId::from_raw(7);
    let chat: ChatSend<&str> = ChatSend::new("websocket", "user-123", "hello there");
    let request = cost("chat.send", || {
        buffer.clear();
        encode_request(&mut buffer, id, "chat.send", &chat).unwrap();
    });
    let step: StreamEvent<&str, SharedJson> = StreamEvent::Text("Hello world");
    let chunk = cost("text", || {
        buffer.clear();
        encode_event(&mut buffer, &"1", &step).unwrap();
    });
    assert_eq!((request, chunk), (0, 0));
}

#[test]
fn finding_the_agent_of_a_chat_costs_no_allocation() {
    let bindings = (0..100).map(|n| Binding::new("a").with_peer_id(n.to_string()));
    let bindings = bindings.chain([Binding::new("b").with_channel("c").with_team_id("t")]);
    let router = Router::new(bindings.collect(), Some("d".to_owned())).unwrap();
    let found = cost("resolve", || {
        assert_eq!(router.resolve(&Route::new("c", "x", "77")), Ok("a"));
        assert_eq!(router.resolve(&Route::new("c", "x", "main")), Ok("d"));
    });
    assert_eq!(found, 0);
}

fn text(frame: Option<Outgoing>) -> String {
    match frame {
        Some(Outgoing::Text(text)) => text.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chunk_costs_a_client_one_allocation_and_a_stray_one_none() {
    let now = Instant::now();
    let mut conn = ClientConn::new(ClientConfig::new(), 7, now);
    conn.handle_message(Incoming::Text(r#"{"ok":true}"#), now);
    assert!(conn.poll_event().is_some());
    let id = conn
        .chat_send::<&str>(&ChatSend::new("c", "a", "hi"), now)
        .unwrap();
    assert!(text(conn.poll_transmit()).contains(&id.to_string()));
    let chunk = format!(r#"{{"id":"{id}","event":"text","data":"Hello world"}}"#);
    let taken = cost("chunk through the client", || {
        conn.handle_message(Incoming::Text(&chunk), now);
        assert!(conn.poll_event().is_some());
    });
    assert!(taken <= ROUNDS, "{taken}");
    let stray = cost("chunk that nobody waits for", || {
        conn.handle_message(Incoming::Text(CHUNK), now);
        assert!(conn.poll_event().is_none());
    });
    assert_eq!(stray, 0);
}

#[test]
fn a_chunk_costs_a_server_next_to_nothing() {
    let now = Instant::now();
    let mut conn = ServerConn::new(ServerConfig::default(), now);
    assert_eq!(conn.poll_event(), Some(ServerEvent::Authenticated));
    assert!(text(conn.poll_transmit()).starts_with(r#"{"ok":true"#));
    conn.handle_message(Incoming::Text(CHAT), now);
    let Some(ServerEvent::Request { id, .. }) = conn.poll_event() else {
        panic!("no request")
    };
    let chunk = cost("chunk through the server", || {
        conn.text(id, "Hello world, this is a chunk").unwrap();
        assert!(conn.poll_transmit().is_some());
    });
    // Now and then the outbox needs a fresh buffer for many frames.
    assert!(chunk <= ROUNDS / 5, "{chunk}");
}
