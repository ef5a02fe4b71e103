//! Tests of limits: open requests, their bytes, queued frames, the rate.

use super::*;

#[test]
fn nothing_is_read_while_too_many_requests_are_open() {
    let mut played = Played::ready(ServerConfig::default());
    let ids: Vec<_> = (0..MAX_REQUESTS)
        .map(|_| played.ask(&chat_text("1")))
        .collect();
    assert!(!played.conn.wants_input());
    let answer = r#"{"id":"2","error":"too many requests in flight"}"#;
    assert_eq!(played.answer(&chat_text("2")), [answer]);
    played.conn.done(ids[0]).unwrap();
    assert!(played.conn.wants_input());
}

#[test]
fn a_request_limit_of_zero_still_allows_one() {
    let mut played = Played::ready(ServerConfig {
        max_requests: 0,
        ..ServerConfig::default()
    });
    assert!(played.conn.wants_input());
    let id = played.ask(&chat_text("1"));
    assert!(!played.conn.wants_input());
    played.conn.done(id).unwrap();
    assert!(played.conn.wants_input());
}

#[test]
fn nothing_is_read_while_open_requests_hold_too_many_bytes() {
    let limits = Limits {
        max_event_bytes: 100,
        ..Limits::default()
    };
    for in_order in [false, true] {
        let config = ServerConfig {
            limits: limits.clone(),
            in_order,
            ..ServerConfig::default()
        };
        let mut played = Played::ready(config);
        let id = played.ask(&chat_text("1"));
        assert!(played.conn.wants_input());
        played.take(&chat_text("2"));
        assert!(!played.conn.wants_input());
        played.conn.done(id).unwrap();
        assert!(played.conn.wants_input());
    }
}

#[test]
fn a_full_stream_reports_when_it_is_writable() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..Limits::default()
    };
    let mut played = Played::ready(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    let id = played.ask(&chat_text("1"));
    let mut fitted = 0;
    while played.conn.text(id, "x") == Ok(()) {
        fitted += 1;
    }
    assert_eq!(fitted, 4);
    assert_eq!(played.conn.text(id, "x"), Err(Refused::QueueFull));
    assert!(played.conn.wants_input() && played.events().is_empty());
    played.take(r#"{"id":"p","method":"ping"}"#);
    played.conn.done(id).unwrap();
    assert_eq!(played.sent().len(), 6);
    assert_eq!(played.events(), [ServerEvent::Writable]);
}

#[test]
fn the_default_rate_limit_is_5000_at_once_and_1000_per_second() {
    const PING: &str = r#"{"id":"p","method":"ping"}"#;
    let mut played = Played::ready(ServerConfig::default());
    for _ in 0..5_000 {
        assert_eq!(played.answer(PING).len(), 1);
    }
    played.wait(Duration::from_millis(1));
    assert_eq!(played.answer(PING), [r#"{"id":"p","result":"pong"}"#]);
    played.take(PING);
    assert_eq!(played.events(), refused(CloseReason::RateLimited));
}

#[test]
fn a_binary_message_is_answered_like_text() {
    let mut played = Played::ready(ServerConfig::default());
    let binary = Incoming::Binary(br#"{"id":"1","method":"ping"}"#);
    played.conn.handle_message(binary, played.now);
    assert_eq!(played.sent(), [r#"{"id":"1","result":"pong"}"#]);
    played
        .conn
        .handle_message(Incoming::Binary(b"\xff"), played.now);
    assert_eq!(played.sent().len(), 1);
}
