//! What the server's hot paths allocate, warmed up.

use std::time::Instant;

use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Incoming, Limits, Machine};

use crate::stage::chat;

const PING: &str = r#"{"id":"p","method":"ping"}"#;

fn conn() -> (ServerConn, Instant) {
    let now = Instant::now();
    let config = ServerConfig::default()
        .with_limits(Limits::default().with_max_message_rate(None))
        .with_keep_alive(KeepAlive::off());
    let mut conn = ServerConn::new(config, now);
    while conn.poll_transmit().is_some() || conn.poll_event().is_some() {}
    (conn, now)
}

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn a_thousand_chunks_cost_a_buffer_now_and_then() {
    let (mut conn, now) = conn();
    conn.handle_message(Incoming::Text(&chat("1", "x")), now);
    let Some(ServerEvent::Request { id, .. }) = conn.poll_event() else {
        panic!("no request");
    };
    let chunk = "x".repeat(60);
    let count = allocations(|| {
        for _ in 0..1_000 {
            conn.text(id, &chunk).unwrap();
            assert!(conn.poll_transmit().is_some());
        }
    });
    // 100 bytes each, cut from buffers of 4 KiB.
    assert!(count <= 60, "{count}");
}

#[test]
fn a_ping_is_answered_without_a_copy_and_a_request_costs_one() {
    let (mut conn, now) = conn();
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
    let pings = allocations(|| (0..100).for_each(|_| one(PING)));
    assert!(pings <= 5, "{pings}");
    let chats = allocations(|| (0..100).for_each(|_| one(&chat)));
    assert!(chats <= 105, "{chats}");
}
