//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use allocation_counter::measure;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::codec::{encode_event, encode_request};
use exoclaw_proto::frame::{ChatSend, ClientFrame, Request, ServerFrame, SessionRef, StreamEvent};
use exoclaw_proto::id::CallId;
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Incoming, Limits, Machine, Outgoing};

use crate::gateway::ready;
use crate::harness::chat;

const ROUNDS: u64 = 1_000;
const PING: &str = r#"{"id":"p","method":"ping"}"#;
const TEXT: &str = r#"{"data":"Hello world","event":"text","id":"c1"}"#;

fn allocated(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = allocated(|| (0..ROUNDS).for_each(|_| round()));
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_short_texts_without_escapes_costs_no_allocation() {
    let limits = Limits::default();
    for text in [
        TEXT,
        r#"{"data":{"input_tokens":1,"output_tokens":2},"event":"usage","id":"c1"}"#,
        r#"{"data":{"id":"t","name":"echo","input":7},"event":"tool_use","id":"c1"}"#,
        r#"{"event":"done","id":"c1"}"#,
        r#"{"id":"c1","result":"pong"}"#,
        r#"{"id":"c1","error":"no"}"#,
    ] {
        let count = cost(text, || {
            assert!(ServerFrame::decode(text, &limits).unwrap().id().is_some());
        });
        assert_eq!(count, 0, "{text}");
    }
    let request =
        r#"{"id":"1","method":"chat.send","params":{"channel":"c","account":"a","content":"hi"}}"#;
    let count = cost("request", || {
        assert!(ClientFrame::decode(request, &limits).is_ok());
        assert!(Request::decode(request, &limits).is_ok());
    });
    assert_eq!(count, 0);
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = String::with_capacity(4096);
    let id = CallId::from_raw(7);
    let chat = ChatSend::new("websocket", "user", "hello there");
    let count = cost("chat.send", || {
        buffer.clear();
        encode_request(&mut buffer, id, "chat.send", &chat).unwrap();
        encode_request(
            &mut buffer,
            id,
            "ping",
            &std::collections::BTreeMap::<u8, u8>::new(),
        )
        .unwrap();
    });
    assert_eq!(count, 0);
    let event = StreamEvent::Text("Hello world".into());
    let count = cost("text event", || {
        buffer.clear();
        encode_event(&mut buffer, &"c1", &event).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn a_text_event_allocates_at_most_its_text() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let said = ChatSend::new("websocket", "user", "hi");
    let id = client.chat_send(&said, now).unwrap();
    let text = TEXT.replace("c1", &id.to_string());
    // Up to 23 bytes are kept without an allocation.
    for (text, each) in [
        (text.clone(), 0),
        (text.replace("Hello world", &"x".repeat(100)), 1),
    ] {
        let event = cost("text through the client", || {
            client.handle_message(Incoming::Text(&text), now);
            assert!(client.poll_event().is_some());
        });
        assert_eq!(event, each * ROUNDS);
    }
    let usage =
        format!(r#"{{"data":{{"input_tokens":1,"output_tokens":2}},"event":"usage","id":"{id}"}}"#);
    let event = cost("usage through the client", || {
        client.handle_message(Incoming::Text(&usage), now);
        assert!(client.poll_event().is_some());
    });
    assert_eq!(event, 0);
    client.cancel(id);
    let late = cost("text of a dropped chat", || {
        client.handle_message(Incoming::Text(&text), now);
        assert!(client.poll_event().is_none());
    });
    assert_eq!(late, 0);
}

#[test]
fn a_request_allocates_one_frame() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let mut answer = String::with_capacity(256);
    let call = cost("request and answer", || {
        let id = client.ping(now).unwrap();
        let Some(Outgoing::Text(request)) = client.poll_transmit() else {
            panic!("no request")
        };
        answer.clear();
        answer.push_str(r#"{"id":""#);
        // The id as it was sent, so that nothing is allocated here.
        answer.push_str(&request.as_str()[7..23]);
        answer.push_str(r#"","result":"pong"}"#);
        drop(request);
        client.handle_message(Incoming::Text(&answer), now);
        assert!(client.poll_event().is_some());
        assert!(!client.cancel(id));
    });
    assert_eq!(call, ROUNDS);
}

/// A server that has let its client in.
fn server() -> (ServerConn, Instant) {
    let now = Instant::now();
    let config = ServerConfig {
        limits: Limits {
            max_message_rate: None,
            ..Limits::default()
        },
        keep_alive: KeepAlive::off(),
        ..ServerConfig::default()
    };
    let mut conn = ServerConn::new(config, Auth::open(), now);
    while conn.poll_transmit().is_some() || conn.poll_event().is_some() {}
    (conn, now)
}

#[test]
fn chunks_share_a_write_buffer() {
    let (mut conn, now) = server();
    conn.handle_message(Incoming::Text(&chat("1", "x")), now);
    let Some(ServerEvent::Request { id, .. }) = conn.poll_event() else {
        panic!("no request");
    };
    let chunk = "x".repeat(60);
    let mut all = |at_once: usize| {
        allocated(|| {
            for _ in 0..1_000 / at_once {
                for _ in 0..at_once {
                    conn.text(id, &chunk).unwrap();
                }
                while conn.poll_transmit().is_some() {}
            }
        })
    };
    let lone = all(1);
    assert!(lone <= 1_000, "{lone}");
    // 100 bytes each, cut from buffers of 4 KiB.
    let together = all(100);
    assert!(together <= 170, "{together}");
}

#[test]
fn a_ping_and_a_short_chat_allocate_only_their_replies() {
    let (mut conn, now) = server();
    let chat = chat("1", "x");
    let mut one = |text: &str| {
        conn.handle_message(Incoming::Text(text), now);
        let event = conn.poll_event();
        if let Some(ServerEvent::Request { id, .. }) = event {
            conn.done(id).unwrap();
        }
        assert!(conn.poll_transmit().is_some());
    };
    for text in [PING, &chat].repeat(10) {
        one(text);
    }
    let pings = allocated(|| (0..100).for_each(|_| one(PING)));
    assert!(pings <= 100, "{pings}");
    let chats = allocated(|| (0..100).for_each(|_| one(&chat)));
    assert!(chats <= 100, "{chats}");
}

#[test]
fn routing_a_chat_allocates_nothing() {
    let bindings = (0..100).map(|n| Binding {
        peer_id: Some(n.to_string()),
        ..Binding::new("a")
    });
    let bindings = bindings.chain([Binding {
        channel: Some("c".into()),
        team_id: Some("t".into()),
        ..Binding::new("b")
    }]);
    let router = Bindings::new(bindings.collect(), Some("d".to_owned())).unwrap();
    let chat = |peer: Option<&str>| SessionRef {
        peer: peer.map(Into::into),
        ..SessionRef::new("c", "x")
    };
    let found = cost("agent of a chat", || {
        assert_eq!(router.resolve(&chat(Some("77"))), Ok("a"));
        assert_eq!(router.resolve(&chat(None)), Ok("d"));
    });
    assert_eq!(found, 0);
}

#[test]
fn a_small_step_does_not_pin_a_large_frame() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let said = ChatSend::new("websocket", "user", "hi");
    let id = client.chat_send(&said, now).unwrap();
    let junk = "x".repeat(1024 * 1024);
    let data = r#"{"tool_use_id":"t","content":"c"}"#;
    let text = format!(r#"{{"id":"{id}","event":"tool_result","data":{data},"junk":"{junk}"}}"#);
    let kept = measure(|| client.handle_message(Incoming::Text(&text), now));
    assert!(client.poll_event().is_some());
    assert!(kept.bytes_current < 64 * 1024, "{}", kept.bytes_current);
}
