//! Tests of [`ServerConn`] with a client that is played by hand.

mod rules;

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::json::DecodeErrorKind;
use switchboard_testing::play::Play;

use super::*;
use crate::error::ErrorCode;
use crate::frame::{Answer, Notification, Priority};
use crate::id::client_id;
use crate::limits::SHUTTING_DOWN;

const NOTES: &str =
    r#"{"type":"registration","payload":{"name":"notes","description":"I keep notes."}}"#;
const ACK: &str =
    r#"{"type":"response","payload":{"messageId":"msg-1","type":"ack","payload":{}}}"#;
const ALREADY: &str = r#"{"type":"registration_response","payload":{"success":false,"code":"ALREADY_REGISTERED","message":"This connection is already registered"}}"#;

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

impl Played {
    fn with(config: ServerConfig) -> Self {
        let now = Instant::now();
        let conn = ServerConn::new(config, now);
        Self { conn, now }
    }

    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    /// A connection whose client is registered as `notes`.
    fn ready(config: ServerConfig) -> Self {
        let mut played = Self::with(config);
        played.take(NOTES);
        assert_eq!(played.events().len(), 1);
        played.conn.accept(&client_id(0)).unwrap();
        assert_eq!(played.sent().len(), 1);
        played
    }

    fn sent(&mut self) -> Vec<String> {
        self.sent_texts()
    }

    /// The code with which a registration with this payload is refused by the machine.
    fn refusal(&mut self, payload: &str) -> String {
        self.take(&format!(r#"{{"type":"registration","payload":{payload}}}"#));
        assert_eq!(self.events(), []);
        let sent = self.sent();
        let frame: serde_json::Value = serde_json::from_str(&sent[0]).unwrap();
        assert_eq!(sent.len(), 1);
        assert_eq!(frame["payload"]["success"], false);
        frame["payload"]["code"].as_str().unwrap().to_owned()
    }

    fn wait(&mut self, time: Duration) {
        self.sleep(time);
    }
}

fn registration(name: &str) -> String {
    format!(r#"{{"type":"registration","payload":{{"name":"{name}","description":"d"}}}}"#)
}

fn ack(id: &str) -> ServerEvent {
    let response = Response::new(id, Answer::Ack);
    ServerEvent::Response { response }
}

/// The names in events that are registrations.
fn names(events: &[ServerEvent]) -> Vec<String> {
    let name = |event: &ServerEvent| match event {
        ServerEvent::Registration { registration } => registration.name.to_string(),
        other => panic!("{other:?}"),
    };
    events.iter().map(name).collect()
}

fn warnings(events: Vec<ServerEvent>) -> Vec<Warning> {
    let warning = |event| match event {
        ServerEvent::Warning(warning) => warning,
        other => panic!("{other:?}"),
    };
    events.into_iter().map(warning).collect()
}

fn limited(limits: Limits) -> ServerConfig {
    ServerConfig {
        limits,
        ..ServerConfig::default()
    }
}

#[test]
fn an_accepted_client_gets_the_specified_reply() {
    let mut played = Played::new();
    assert_eq!(played.conn.state(), ServerState::AwaitRegistration);
    played.take(
        r#"{"type":"registration","payload":{"name":"my-client","description":"I handle task management and to-do lists.","version":"1.0.0","capabilities":["tasks","reminders"]}}"#,
    );
    let registration = Registration {
        version: Some("1.0.0".into()),
        capabilities: vec!["tasks".into(), "reminders".into()],
        ..Registration::new("my-client", "I handle task management and to-do lists.")
    };
    assert_eq!(
        played.events(),
        [ServerEvent::Registration { registration }]
    );
    assert_eq!(played.conn.state(), ServerState::AwaitVerdict);
    let id = ClientId::new("550e8400-e29b-41d4-a716-446655440000");
    played.conn.accept(&id).unwrap();
    assert_eq!(
        played.sent(),
        [
            r#"{"type":"registration_response","payload":{"success":true,"clientId":"550e8400-e29b-41d4-a716-446655440000","message":"Client 'my-client' registered successfully"}}"#
        ]
    );
    assert_eq!(played.conn.state(), ServerState::Ready);
    assert_eq!(played.conn.name().unwrap(), "my-client");
}

#[test]
fn a_refused_client_may_try_again_on_the_same_connection() {
    let mut played = Played::new();
    played.take(NOTES);
    assert_eq!(names(&played.events()), ["notes"]);
    let taken = RegistrationError::duplicate_name("notes");
    played.conn.refuse(taken).unwrap();
    assert_eq!(
        played.sent(),
        [
            r#"{"type":"registration_response","payload":{"success":false,"code":"DUPLICATE_NAME","message":"A client with name 'notes' is already registered"}}"#
        ]
    );
    assert_eq!(played.conn.name(), None);
    played.take(&registration("notes2"));
    assert_eq!(names(&played.events()), ["notes2"]);
    played.conn.accept(&client_id(0)).unwrap();
    assert_eq!(played.conn.state(), ServerState::Ready);
}

#[test]
fn an_invalid_registration_is_answered_by_the_machine() {
    let mut played = Played::new();
    for (payload, code) in [
        ("null", "VALIDATION_ERROR"),
        ("7", "VALIDATION_ERROR"),
        (r#""notes""#, "VALIDATION_ERROR"),
        ("[]", "INVALID_NAME"),
        ("{}", "INVALID_NAME"),
        (r#"{"name":"1","description":"d"}"#, "INVALID_NAME"),
        (r#"{"name":"a"}"#, "INVALID_DESCRIPTION"),
        (r#"{"name":"a","description":" "}"#, "INVALID_DESCRIPTION"),
        (
            r#"{"name":"a","description":"d","version":1}"#,
            "VALIDATION_ERROR",
        ),
    ] {
        assert_eq!(played.refusal(payload), code, "{payload}");
        assert_eq!(played.conn.state(), ServerState::AwaitRegistration);
    }
    played.take(NOTES);
    assert_eq!(names(&played.events()), ["notes"]);
}

#[test]
fn a_second_registration_is_ignored() {
    let mut played = Played::ready(ServerConfig::default());
    for payload in ["null", "{}", r#"{"name":"other","description":"d"}"#] {
        assert_eq!(played.refusal(payload), "ALREADY_REGISTERED", "{payload}");
    }
    assert_eq!(played.conn.name().unwrap(), "notes");
    played.take(NOTES);
    assert_eq!(played.sent(), [ALREADY]);
}

#[test]
fn responses_reach_the_application_in_order() {
    let mut played = Played::ready(ServerConfig::default());
    played.take(ACK);
    played.take(
        r#"{"type":"response","payload":{"messageId":"msg-1","type":"notification","payload":{"title":"t","body":"b","priority":"high"}}}"#,
    );
    played.take(
        r#"{"type":"response","payload":{"messageId":"msg-2","type":"reject","payload":{"reason":"no"}}}"#,
    );
    let shown = Notification {
        title: Some("t".into()),
        priority: Some(Priority::High),
        ..Notification::new("b")
    };
    let response = |id, answer| ServerEvent::Response {
        response: Response::new(id, answer),
    };
    assert_eq!(
        played.events(),
        [
            ack("msg-1"),
            response("msg-1", Answer::Notification(shown)),
            response("msg-2", Answer::reject(Some("no".into()))),
        ]
    );
    assert_eq!(played.sent(), [""; 0]);
}

#[test]
fn text_in_a_binary_message_is_decoded() {
    let mut played = Played::new();
    let binary = |played: &mut Played, bytes| {
        played
            .conn
            .handle_message(Incoming::Binary(bytes), played.now);
    };
    binary(&mut played, NOTES.as_bytes());
    assert_eq!(names(&played.events()), ["notes"]);
    played.conn.accept(&client_id(0)).unwrap();
    binary(&mut played, ACK.as_bytes());
    assert_eq!(played.events(), [ack("msg-1")]);
    binary(&mut played, b"\xff\xfe");
    let events = warnings(played.events());
    let [Warning::BadFrame(error)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(error.kind(), DecodeErrorKind::Binary);
}

#[test]
fn invalid_input_is_ignored_with_a_warning() {
    let mut played = Played::ready(ServerConfig::default());
    for junk in [
        "",
        "nonsense",
        "null",
        "7",
        "[]",
        "{}",
        r#"{"payload":{}}"#,
        r#"{"type":7,"payload":{}}"#,
        r#"{"type":"registration"}"#,
        r#"{"type":"response"}"#,
        r#"{"type":"response","payload":null}"#,
        r#"{"type":"response","payload":{"messageId":"m"}}"#,
        r#"{"type":"response","payload":{"messageId":"m","type":"reject"}}"#,
    ] {
        played.take(junk);
        let warnings = warnings(played.events());
        assert!(
            matches!(&warnings[..], [Warning::BadFrame(_)]),
            "{junk}: {warnings:?}"
        );
    }
    for tag in ["message", "registration_response", "later"] {
        played.take(&format!(r#"{{"type":"{tag}","payload":{{}}}}"#));
        let tag = tag.into();
        assert_eq!(warnings(played.events()), [Warning::UnknownType { tag }]);
    }
    assert_eq!(played.sent(), [""; 0]);
    played.take(ACK);
    assert_eq!(played.events(), [ack("msg-1")]);
}

#[test]
fn a_response_before_the_registration_is_ignored() {
    let mut played = Played::new();
    played.take(ACK);
    assert_eq!(warnings(played.events()), [Warning::NotRegistered]);
    assert_eq!(played.sent(), [""; 0]);
    played.take(NOTES);
    assert_eq!(names(&played.events()), ["notes"]);
}

#[test]
fn frames_after_an_undecided_registration_wait() {
    let mut played = Played::new();
    played.take(NOTES);
    assert!(!played.conn.wants_input());
    // Whoever has read on already loses nothing.
    played.take(ACK);
    played.take(&registration("other"));
    played.take(r#"{"type":"later","payload":{}}"#);
    assert_eq!(names(&played.events()), ["notes"]);
    assert_eq!(played.sent(), [""; 0]);
    played.conn.accept(&client_id(0)).unwrap();
    let events = played.events();
    assert_eq!(events[0], ack("msg-1"));
    assert!(matches!(
        &events[1..],
        [ServerEvent::Warning(Warning::UnknownType { .. })]
    ));
    let sent = played.sent();
    assert!(sent[0].contains(r#""success":true"#), "{sent:?}");
    assert_eq!(sent[1..], [ALREADY]);
    assert!(played.conn.wants_input());
}

#[test]
fn pipelined_registrations_are_decided_in_order() {
    let mut played = Played::new();
    for name in ["a", "b", "c"] {
        played.take(&registration(name));
    }
    assert_eq!(names(&played.events()), ["a"]);
    played
        .conn
        .refuse(RegistrationError::duplicate_name("a"))
        .unwrap();
    assert_eq!(names(&played.events()), ["b"]);
    assert_eq!(played.conn.name().unwrap(), "b");
    played.conn.accept(&client_id(0)).unwrap();
    assert_eq!(played.events(), []);
    let sent = played.sent().join("\n");
    let place = |text| sent.find(text).unwrap();
    assert!(place("DUPLICATE_NAME") < place("'b' registered successfully"));
    assert!(place("'b' registered successfully") < place("ALREADY_REGISTERED"));
}

#[test]
fn held_frames_are_bounded_in_number() {
    let mut played = Played::new();
    played.take(NOTES);
    for _ in 0..MAX_HELD {
        played.take(ACK);
    }
    assert!(!played.conn.is_closed());
    played.take(ACK);
    assert!(played.conn.is_closed());
    assert!(played.sent()[0].starts_with("close 1013 "));
    let id = client_id(0);
    assert_eq!(played.conn.accept(&id), Err(Refused::Closed));
}

#[test]
fn held_frames_are_bounded_in_bytes() {
    let mut played = Played::with(limited(Limits {
        max_event_bytes: 3 * ACK.len(),
        ..Limits::default()
    }));
    for _ in 0..2 {
        played.take(NOTES);
        played.events();
        for _ in 0..3 {
            played.take(ACK);
        }
        assert!(!played.conn.is_closed());
        // What was held has made room.
        let refusal = RegistrationError::duplicate_name("notes");
        played.conn.refuse(refusal).unwrap();
        played.events();
        played.sent();
    }
    played.take(NOTES);
    for _ in 0..4 {
        played.take(ACK);
    }
    assert!(played.conn.is_closed());
    assert!(played.sent()[0].starts_with("close 1013 "));
    let closed = ServerEvent::Closed(CloseReason::SlowConsumer);
    assert_eq!(played.events().last(), Some(&closed));
}

#[test]
fn a_slow_client_stays_connected_by_its_pongs() {
    let mut played = Played::ready(limited(Limits {
        max_outbox_frames: 2,
        ..Limits::default()
    }));
    played.conn.send("1".into()).unwrap();
    played.conn.send("2".into()).unwrap();
    assert_eq!(played.conn.send("3".into()), Err(Refused::QueueFull));
    for _ in 0..3 {
        played.wait(Duration::from_secs(30));
        played.wait(Duration::from_millis(9_999));
        played.conn.handle_message(Incoming::Pong(b""), played.now);
        assert!(!played.conn.is_closed());
    }
    let sent = played.sent();
    assert!(sent.contains(&"ping".to_owned()), "{sent:?}");
    assert!(sent.contains(&"2".to_owned()), "{sent:?}");
}

#[test]
fn commands_in_the_wrong_state_are_refused_without_side_effects() {
    let mut played = Played::new();
    let refusal = || RegistrationError::duplicate_name("notes");
    let id = client_id(0);
    assert_eq!(played.conn.accept(&id), Err(Refused::UnknownId));
    assert_eq!(played.conn.refuse(refusal()), Err(Refused::UnknownId));
    assert_eq!(played.conn.send("{}".into()), Err(Refused::NotReady));
    played.take(NOTES);
    assert_eq!(played.conn.send("{}".into()), Err(Refused::NotReady));
    played.conn.accept(&id).unwrap();
    assert_eq!(played.conn.accept(&id), Err(Refused::UnknownId));
    assert_eq!(played.conn.refuse(refusal()), Err(Refused::UnknownId));
    assert_eq!(played.conn.send("{}".into()), Ok(()));
    assert_eq!(played.sent()[1..], ["{}"]);
    played.conn.close(played.now);
    assert_eq!(played.conn.send("{}".into()), Err(Refused::Closed));
    assert_eq!(played.conn.accept(&id), Err(Refused::Closed));
}

#[test]
fn a_frame_for_a_client_that_reads_nothing_is_refused() {
    let mut played = Played::ready(limited(Limits {
        max_outbox_frames: 2,
        max_message_bytes: 256,
        ..Limits::default()
    }));
    let long = "x".repeat(257);
    let too_large = played.conn.send(long.as_str().into());
    assert_eq!(
        too_large,
        Err(Refused::TooLarge {
            size: 257,
            max: 256
        })
    );
    played.conn.send("1".into()).unwrap();
    played.conn.send("2".into()).unwrap();
    assert_eq!(played.conn.send("3".into()), Err(Refused::QueueFull));
    assert_eq!(played.sent(), ["1", "2"]);
}

#[test]
fn a_client_is_pinged_every_30_seconds() {
    let mut played = Played::ready(ServerConfig::default());
    for _ in 0..3 {
        played.wait(Duration::from_millis(29_999));
        assert_eq!(played.sent(), [""; 0]);
        played.wait(Duration::from_millis(1));
        assert_eq!(played.sent(), ["ping"]);
        played.conn.handle_message(Incoming::Pong(b""), played.now);
    }
    assert_eq!(played.events(), []);
}

#[test]
fn a_missed_pong_closes_with_1001_after_10_seconds() {
    let mut played = Played::ready(ServerConfig::default());
    played.wait(Duration::from_secs(30));
    assert_eq!(played.sent(), ["ping"]);
    // Messages and its own pings are not a sign of life.
    played.take(ACK);
    played.conn.handle_message(Incoming::Ping(b"x"), played.now);
    played.events();
    played.conn.send("never read".into()).unwrap();
    played.wait(Duration::from_millis(9_999));
    assert!(!played.conn.is_closed());
    assert_eq!(played.conn.next_timeout().unwrap().1, "pong");
    played.wait(Duration::from_millis(1));
    let sent = played.sent();
    assert!(sent.last().unwrap().starts_with("close 1001 "), "{sent:?}");
    let reason = CloseReason::KeepAlive {
        after: Duration::from_secs(10),
    };
    assert_eq!(played.events(), [ServerEvent::Closed(reason)]);
    assert_eq!(played.conn.poll_timeout(), None);
}

#[test]
fn an_unregistered_client_has_no_deadline_by_default() {
    let mut played = Played::new();
    for _ in 0..1000 {
        played.wait(Duration::from_secs(30));
        assert_eq!(played.sent(), ["ping"]);
        played.conn.handle_message(Incoming::Pong(b""), played.now);
    }
    assert!(!played.conn.is_closed());
}

#[test]
fn the_default_rate_limit_is_5_000_at_once_and_1_000_per_second() {
    let mut played = Played::ready(ServerConfig::default());
    // The registration was the first one.
    for _ in 1..5_000 {
        played.take(ACK);
        played.events();
    }
    played.wait(Duration::from_millis(1));
    played.take(ACK);
    assert!(!played.conn.is_closed());
    played.take(ACK);
    let closed = ServerEvent::Closed(CloseReason::RateLimited);
    assert_eq!(played.events(), [ack("msg-1"), closed]);
}
