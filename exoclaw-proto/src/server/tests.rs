//! Tests of [`ServerConn`] with a client that is played by hand.

mod bounds;

use std::time::Duration;

use rpc_core::Json;
use rpc_core::Limits;
use serde_json::json;
use switchboard_testing::play::Play;

use super::*;
use crate::auth::Auth;
use crate::frame::{Method, StreamEvent, ToolResult, ToolUse, Usage};

// The defaults, written out: a test is not to agree with whatever they are.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REQUESTS: usize = 1_024;

const HELLO: &str = r#"{"ok":true,"version":"0.1.0"}"#;
const REFUSAL: &str = r#"{"error":"auth_failed","code":4001}"#;
const TOKEN: &str = r#"{"token":"s3cret"}"#;

struct Played {
    conn: ServerConn,
    now: Instant,
}

impl Play for Played {
    type Conn = ServerConn;

    fn parts(&mut self) -> (&mut ServerConn, &mut Instant) {
        (&mut self.conn, &mut self.now)
    }
}

fn token() -> Auth {
    Auth::token("s3cret").unwrap()
}

fn chat_text(id: &str) -> String {
    let params = json!({"channel": "c", "account": "a", "content": "hi"});
    json!({"id": id, "method": "chat.send", "params": params}).to_string()
}

impl Played {
    fn with(config: ServerConfig, auth: Auth) -> Self {
        let now = Instant::now();
        let conn = ServerConn::new(config, auth, now);
        Self { conn, now }
    }

    fn with_token() -> Self {
        Self::with(ServerConfig::default(), token())
    }

    /// A connection without a token that has said hello.
    fn ready(config: ServerConfig) -> Self {
        let mut played = Self::with(config, Auth::open());
        assert_eq!(played.sent().len(), 1);
        assert_eq!(played.events(), [ServerEvent::Authenticated]);
        played
    }

    fn sent(&mut self) -> Vec<String> {
        self.sent_texts()
    }

    fn answer(&mut self, text: &str) -> Vec<String> {
        self.take(text);
        self.sent()
    }

    /// Sends a request that reaches the application.
    fn ask(&mut self, text: &str) -> RequestId {
        self.take(text);
        self.asked().expect("a request")
    }

    fn asked(&mut self) -> Option<RequestId> {
        self.events().into_iter().find_map(|event| match event {
            ServerEvent::Request { id, .. } => Some(id),
            _ => None,
        })
    }

    fn wait(&mut self, time: Duration) {
        self.sleep(time);
    }
}

fn refused(reason: CloseReason) -> [ServerEvent; 1] {
    [ServerEvent::Closed(reason)]
}

fn wrong_token() -> CloseReason {
    CloseReason::Authentication {
        message: "the token was refused".to_owned(),
    }
}

#[test]
fn without_a_token_hello_is_sent_at_once() {
    let mut played = Played::with(ServerConfig::default(), Auth::open());
    assert_eq!(played.sent(), [HELLO]);
    assert_eq!(played.conn.state(), ServerState::Ready);
    let config = ServerConfig {
        version: "2".into(),
        extensions: Method::EXTENSIONS.to_vec(),
        ..ServerConfig::default()
    };
    let mut played = Played::with(config, Auth::open());
    assert_eq!(
        played.sent(),
        [
            r#"{"ok":true,"version":"2","extensions":["chat.history","session.list","session.clear","budget.status","memory.search"]}"#
        ]
    );
}

#[test]
fn hello_waits_for_the_token_and_pings_may_precede_it() {
    let mut played = Played::with_token();
    for message in [Incoming::Ping(b"x"), Incoming::Pong(b"")] {
        played.conn.handle_message(message, played.now);
    }
    assert!(played.sent().is_empty() && played.events().is_empty());
    assert_eq!(played.conn.state(), ServerState::AwaitToken);
    let text = r#" {"x":[1],"tok\u0065n":"s3cret"} "#;
    assert_eq!(played.answer(text), [HELLO]);
    assert_eq!(played.events(), [ServerEvent::Authenticated]);
    played.wait(AUTH_TIMEOUT);
    assert_eq!(played.conn.state(), ServerState::Ready);
}

#[test]
fn every_wrong_token_is_refused_alike() {
    for text in [
        r#"{"token":"wrong"}"#,
        r#"{"token":""}"#,
        r#"{"token":5}"#,
        r#"{"token":null}"#,
        r#"{"id":"1","method":"ping"}"#,
        r#""s3cret""#,
        r#"["s3cret"]"#,
        "not json",
        "",
    ] {
        let mut played = Played::with_token();
        let expected = [REFUSAL, "close 4001 auth_failed"];
        assert_eq!(played.answer(text), expected, "{text}");
        assert_eq!(played.events(), refused(wrong_token()));
        // What was sent behind it is not looked at.
        assert!(played.answer(TOKEN).is_empty());
    }
    let mut played = Played::with_token();
    let binary = Incoming::Binary(TOKEN.as_bytes());
    played.conn.handle_message(binary, played.now);
    assert_eq!(played.sent(), [REFUSAL, "close 4001 auth_failed"]);
}

#[test]
fn the_answer_to_a_wrong_token_can_wait() {
    let mut played = Played::with_token();
    let conn = ServerConn::new(ServerConfig::default(), token(), played.now);
    played.conn = conn.with_refusal_delay(Duration::from_secs(1));
    assert!(played.answer(r#"{"token":"wrong"}"#).is_empty());
    // Nothing else is looked at meanwhile.
    assert!(played.answer(TOKEN).is_empty());
    played.wait(Duration::from_secs(1));
    assert_eq!(played.sent(), [REFUSAL, "close 4001 auth_failed"]);
    assert_eq!(played.events(), refused(wrong_token()));
    let conn = ServerConn::new(ServerConfig::default(), token(), played.now);
    played.conn = conn.with_refusal_delay(Duration::from_secs(1));
    assert_eq!(played.answer(TOKEN), [HELLO]);
}

#[test]
fn a_missing_token_is_refused_at_the_deadline() {
    let mut played = Played::with_token();
    assert_eq!(played.conn.next_timeout().unwrap().1, "auth");
    played.wait(AUTH_TIMEOUT - Duration::from_millis(1));
    assert!(played.sent().is_empty());
    played.wait(Duration::from_millis(1));
    assert_eq!(played.sent(), [REFUSAL, "close 4001 auth_failed"]);
    let after = AUTH_TIMEOUT;
    assert_eq!(
        played.events(),
        refused(CloseReason::HandshakeTimeout { after })
    );
}

#[test]
fn without_a_deadline_the_token_may_come_late() {
    let config = ServerConfig {
        handshake_timeout: None,
        ..ServerConfig::default()
    };
    let mut played = Played::with(config, token());
    let pings = played.conn.next_timeout().map(|(_, what)| what);
    assert_eq!(pings, Some("heartbeat"));
    played.wait(AUTH_TIMEOUT);
    assert!(played.sent().is_empty());
    assert_eq!(played.answer(TOKEN), [HELLO]);
}

#[test]
fn requests_pipelined_after_a_valid_token_are_answered() {
    let mut played = Played::with_token();
    played.take(TOKEN);
    played.take(r#"{"id":"1","method":"ping"}"#);
    assert_eq!(played.sent(), [HELLO, r#"{"id":"1","result":"pong"}"#]);
}

#[test]
fn an_unexpected_token_is_a_bad_request() {
    let answer = r#"{"id":"0","error":"parse error: member `id` is missing at line 1 column 1"}"#;
    let mut played = Played::ready(ServerConfig::default());
    assert_eq!(played.answer(TOKEN), [answer]);
    let mut played = Played::with_token();
    played.take(TOKEN);
    assert_eq!(played.answer(TOKEN), [HELLO, answer]);
    assert_eq!(played.conn.state(), ServerState::Ready);
}

#[test]
fn an_invalid_request_is_answered_with_its_id() {
    let mut played = Played::ready(ServerConfig::default());
    for (text, id) in [
        ("not json", "0"),
        ("", "0"),
        (r#"{"method":"ping"}"#, "0"),
        (r#"{"id":null,"method":"ping"}"#, "0"),
        (r#"{"id":true,"method":"ping"}"#, "0"),
        (r#"[{"id":"1","method":"ping"}]"#, "0"),
        (r#"{"id":"5"}"#, "5"),
        (r#"{"id":7,"method":[]}"#, "7"),
    ] {
        let answers = played.answer(text);
        let start = format!(r#"{{"id":"{id}","error":"parse error: "#);
        assert!(
            answers.len() == 1 && answers[0].starts_with(&start),
            "{text}: {answers:?}"
        );
        assert!(answers[0].contains(" at line 1 column "), "{answers:?}");
    }
    assert_eq!(played.conn.state(), ServerState::Ready);
}

#[test]
fn unknown_methods_and_wrong_parameters_are_answered_with_their_id() {
    let mut played = Played::ready(ServerConfig::default());
    for method in ["nope", "Ping", "ping ", "chat.history", "plugin.load", ""] {
        let text = json!({"id": "u", "method": method}).to_string();
        let answer = format!(r#"{{"id":"u","error":"unknown method: {method}"}}"#);
        assert_eq!(played.answer(&text), [answer]);
    }
    for (params, why) in [
        ("null", "member `channel` is missing"),
        (r#"{"channel":"c"}"#, "member `account` is missing"),
        (r#"{"channel":5}"#, "member `channel` is not a string"),
    ] {
        let text = format!(r#"{{"id":"p","method":"chat.send","params":{params}}}"#);
        let answer = format!(r#"{{"id":"p","error":"invalid chat.send params: {why}"}}"#);
        assert_eq!(played.answer(&text), [answer]);
    }
    assert!(played.events().is_empty());
}

#[test]
fn extensions_are_disabled_by_default() {
    let plugins = [Method::PluginLoad, Method::PluginUnload];
    let mut played = Played::ready(ServerConfig {
        extensions: [Method::EXTENSIONS.as_slice(), &plugins].concat(),
        ..ServerConfig::default()
    });
    let id = played.ask(r#"{"id":"1","method":"session.list"}"#);
    played.conn.reply(id, &json!([])).unwrap();
    assert_eq!(played.sent(), [r#"{"id":"1","result":[]}"#]);
    for method in ["plugin.load", "plugin.unload"] {
        let text = json!({"id": "1", "method": method}).to_string();
        let answer = format!(r#"{{"id":"1","error":"unknown method: {method}"}}"#);
        assert_eq!(played.answer(&text), [answer]);
    }
}

#[test]
fn methods_that_the_protocol_does_not_name_reach_an_application_that_wants_them() {
    let mut played = Played::ready(ServerConfig {
        other_methods: true,
        ..ServerConfig::default()
    });
    let id = played.ask(r#"{"id":"1","method":"words.count","params":"one two"}"#);
    played.conn.reply(id, &2).unwrap();
    assert_eq!(played.sent(), [r#"{"id":"1","result":2}"#]);
    for method in ["chat.history", "plugin.load"] {
        let text = json!({"id": "1", "method": method}).to_string();
        let answer = format!(r#"{{"id":"1","error":"unknown method: {method}"}}"#);
        assert_eq!(played.answer(&text), [answer]);
    }
}

#[test]
fn numeric_ids_are_echoed_as_strings_or_verbatim() {
    let ping = |id: &str| format!(r#"{{"id":{id},"method":"ping"}}"#);
    let mut played = Played::ready(ServerConfig::default());
    for (id, text) in [("7", "7"), ("1e3", "1000.0"), (r#""a\"b""#, r#"a\"b"#)] {
        let answer = format!(r#"{{"id":"{text}","result":"pong"}}"#);
        assert_eq!(played.answer(&ping(id)), [answer]);
    }
    let mut played = Played::ready(ServerConfig {
        echo_numbers: true,
        ..ServerConfig::default()
    });
    for id in ["7", "1e3", r#""7""#] {
        let answer = format!(r#"{{"id":{id},"result":"pong"}}"#);
        assert_eq!(played.answer(&ping(id)), [answer]);
    }
    let id = played.ask(r#"{"id":1e3,"method":"status"}"#);
    played.conn.reply(id, &1).unwrap();
    assert_eq!(played.sent(), [r#"{"id":1e3,"result":1}"#]);
}

#[test]
fn a_repeated_id_is_answered_twice() {
    let mut played = Played::ready(ServerConfig::default());
    let (first, second) = (played.ask(&chat_text("x")), played.ask(&chat_text("x")));
    played.conn.text(second, "2").unwrap();
    played.conn.done(second).unwrap();
    played.conn.done(first).unwrap();
    let done = r#"{"id":"x","event":"done"}"#;
    let text = r#"{"id":"x","event":"text","data":"2"}"#;
    assert_eq!(played.sent(), [text, done, done]);
}

#[test]
fn a_chat_streams_and_ends_once() {
    let mut played = Played::ready(ServerConfig::default());
    let id = played.ask(&chat_text("1"));
    let conn = &mut played.conn;
    conn.text(id, "").unwrap();
    let tool = ToolUse::new("t", "echo", Json::NULL);
    conn.event(id, &StreamEvent::ToolUse(tool)).unwrap();
    let result = ToolResult::new("t", "hi", false);
    conn.event(id, &StreamEvent::ToolResult(result)).unwrap();
    conn.event(id, &StreamEvent::Usage(Usage::new(1, 2)))
        .unwrap();
    assert!(matches!(
        conn.fail(id, &RpcError::new("late")),
        Err(Refused::Invalid { .. })
    ));
    assert!(matches!(conn.reply(id, &1), Err(Refused::Invalid { .. })));
    conn.event(id, &StreamEvent::Done).unwrap();
    assert_eq!(conn.text(id, "more"), Err(Refused::UnknownId));
    assert_eq!(conn.done(id), Err(Refused::UnknownId));
    assert_eq!(conn.in_flight(), 0);
    assert_eq!(
        played.sent(),
        [
            r#"{"id":"1","event":"text","data":""}"#,
            r#"{"id":"1","event":"tool_use","data":{"id":"t","name":"echo","input":null}}"#,
            r#"{"id":"1","event":"tool_result","data":{"tool_use_id":"t","content":"hi","is_error":false}}"#,
            r#"{"id":"1","event":"usage","data":{"input_tokens":1,"output_tokens":2}}"#,
            r#"{"id":"1","event":"done"}"#,
        ]
    );
}

#[test]
fn a_chat_fails_before_its_first_event_or_with_error_and_done() {
    let mut played = Played::ready(ServerConfig::default());
    let id = played.ask(&chat_text("1"));
    let error = RpcError::new("token budget exceeded (daily: 65/60)");
    played.conn.fail(id, &error).unwrap();
    let answer = r#"{"id":"1","error":"token budget exceeded (daily: 65/60)"}"#;
    assert_eq!(played.sent(), [answer]);
    let id = played.ask(&chat_text("2"));
    played.conn.error(id, "provider error: x").unwrap();
    let error = r#"{"id":"2","event":"error","data":"provider error: x"}"#;
    assert_eq!(played.sent(), [error, r#"{"id":"2","event":"done"}"#]);
    assert_eq!(played.conn.done(id), Err(Refused::UnknownId));
}

#[test]
fn an_error_waits_for_room_for_its_done() {
    let limits = Limits {
        max_outbox_frames: 4,
        ..Limits::default()
    };
    let mut played = Played::ready(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    let id = played.ask(&chat_text("1"));
    for _ in 0..3 {
        played.take(r#"{"id":"p","method":"ping"}"#);
    }
    assert_eq!(played.conn.error(id, "no"), Err(Refused::QueueFull));
    assert_eq!(played.sent().len(), 3);
    assert_eq!(played.events(), [ServerEvent::Writable]);
    played.conn.error(id, "no").unwrap();
    let error = r#"{"id":"1","event":"error","data":"no"}"#;
    assert_eq!(played.sent(), [error, r#"{"id":"1","event":"done"}"#]);
}

#[test]
fn only_chats_have_streams() {
    let mut played = Played::ready(ServerConfig::default());
    let id = played.ask(r#"{"id":"1","method":"status"}"#);
    let invalid = |refused| matches!(refused, Err(Refused::Invalid { .. }));
    assert!(invalid(played.conn.text(id, "x")));
    assert!(invalid(played.conn.done(id)));
    assert!(invalid(played.conn.error(id, "x")));
    assert!(played.sent().is_empty() && played.conn.forget(id) && !played.conn.forget(id));
}

#[test]
fn streams_interleave_and_pings_are_answered_between() {
    let mut played = Played::ready(ServerConfig::default());
    let (a, b) = (played.ask(&chat_text("a")), played.ask(&chat_text("b")));
    played.conn.text(a, "1").unwrap();
    played.conn.text(b, "2").unwrap();
    played.take(r#"{"id":"p","method":"ping"}"#);
    played.conn.text(a, "3").unwrap();
    let ids: Vec<_> = played
        .sent()
        .iter()
        .map(|text| text[7..8].to_owned())
        .collect();
    assert_eq!(ids, ["a", "b", "p", "a"]);
}

#[test]
fn ordered_requests_wait_for_the_one_before() {
    let mut played = Played::ready(ServerConfig {
        in_order: true,
        ..ServerConfig::default()
    });
    let first = played.ask(&chat_text("1"));
    played.take(r#"{"id":"2","method":"ping"}"#);
    played.take("not json");
    played.take(&chat_text("3"));
    assert!(played.sent().is_empty() && played.events().is_empty());
    assert_eq!(played.conn.in_flight(), 2);
    played.conn.done(first).unwrap();
    let sent = played.sent();
    assert_eq!(sent.len(), 3);
    assert_eq!(
        sent[..2],
        [
            r#"{"id":"1","event":"done"}"#,
            r#"{"id":"2","result":"pong"}"#
        ]
    );
    assert!(sent[2].starts_with(r#"{"id":"0","error":"parse error: "#));
    let third = played.asked().unwrap();
    played.conn.forget(third);
    let ping = r#"{"id":"4","method":"ping"}"#;
    assert_eq!(played.answer(ping), [r#"{"id":"4","result":"pong"}"#]);
}

#[test]
fn a_lost_connection_drops_its_requests() {
    let mut played = Played::ready(ServerConfig::default());
    played.ask(&chat_text("1"));
    assert_eq!(played.conn.in_flight(), 1);
    played.conn.handle_disconnect(Disconnect::Eof, played.now);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn an_id_that_is_too_long_is_a_bad_request() {
    let mut played = Played::ready(ServerConfig::default());
    for id in [format!("\"{}\"", "x".repeat(2_000)), "7".repeat(2_000)] {
        let answer = played.answer(&format!(r#"{{"id":{id},"method":"status"}}"#));
        assert!(answer[0].starts_with(r#"{"id":"0","error":"parse error: "#));
        assert_eq!(played.conn.in_flight(), 0);
    }
}

#[test]
fn an_overlong_method_name_is_shortened_in_errors() {
    let mut played = Played::ready(ServerConfig::default());
    let name = "é".repeat(Limits::default().max_message_bytes / 2 - 50);
    let answer = played.answer(&format!(r#"{{"id":"1","method":"{name}"}}"#));
    let shown = "é".repeat(128);
    let expected = format!(r#"{{"id":"1","error":"unknown method: {shown}"}}"#);
    assert_eq!(answer, [expected]);
    assert!(!played.conn.is_closed());
}

#[test]
fn a_slow_reader_is_not_disconnected() {
    let mut played = Played::ready(ServerConfig::default());
    let id = played.ask(&chat_text("1"));
    let pong = Incoming::Pong(b"");
    played.conn.handle_message(pong, played.now);
    while played.conn.text(id, "x") == Ok(()) {}
    played.wait(PING_INTERVAL);
    played.wait(PONG_TIMEOUT);
    assert!(!played.conn.is_closed());
    assert_eq!(played.sent().last().unwrap(), "ping");
    played.wait(PONG_TIMEOUT);
    assert!(played.conn.is_closed());
}
