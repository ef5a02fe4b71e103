//! Tests of [`ClientConn`] with a server that is played by hand.

mod promised;

use std::time::Duration;

use rpc_core::keepalive::KeepAlive;
use rpc_core::{Json, Limits, Refused, Retry};
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::frame::{Answer, InputMethod, Notification, Priority, Registration};
use crate::limits::{REGISTRATION_TIMEOUT, RESPONSE_TIMEOUT, defaults};

const SECOND: Duration = Duration::from_secs(1);

struct Played {
    conn: ClientConn,
    now: Instant,
}

impl Play for Played {
    type Conn = ClientConn;

    fn parts(&mut self) -> (&mut ClientConn, &mut Instant) {
        (&mut self.conn, &mut self.now)
    }

    fn close(close: &CloseFrame) -> Value {
        json!([close.code, close.reason])
    }
}

fn config() -> ClientConfig {
    ClientConfig::new(Registration::new("notes", "I keep notes.")).unwrap()
}

fn accepted() -> Value {
    json!({"type": "registration_response", "payload": {
        "success": true, "clientId": "c-1", "message": "Client 'notes' registered successfully"}})
}

fn refused(payload: &Value) -> Value {
    json!({"type": "registration_response", "payload": payload})
}

fn message(id: &str) -> Value {
    json!({"type": "message", "payload": {
        "id": id, "text": "milk", "timestamp": "2024-01-15T10:30:00.000Z",
        "metadata": {"inputMethod": "text", "directRouted": false}}})
}

impl Played {
    fn new(config: ClientConfig) -> Self {
        let now = Instant::now();
        let conn = ClientConn::new(config, now);
        Self { conn, now }
    }

    fn ready(config: ClientConfig) -> Self {
        let mut played = Self::new(config);
        played.sent();
        played.take(&accepted());
        assert_eq!(played.conn.state(), ClientState::Ready);
        played.events();
        played
    }
}

fn response(id: &str, tag: &str, payload: &Value) -> Value {
    json!({"type": "response", "payload": {"messageId": id, "type": tag, "payload": payload}})
}

#[test]
fn the_registration_is_sent_at_once() {
    let registration = Registration {
        version: Some("1.0.0".into()),
        ..Registration::new("notes", "I keep notes.")
    };
    let mut played = Played::new(ClientConfig::new(registration).unwrap());
    let payload = json!({"name": "notes", "description": "I keep notes.", "version": "1.0.0"});
    assert_eq!(
        played.sent(),
        [json!({"type": "registration", "payload": payload})]
    );
    assert_eq!(played.events(), []);
    played.take(&accepted());
    let [ClientEvent::Registered { client_id, message }] = &played.events()[..] else {
        panic!("not registered")
    };
    assert_eq!(client_id.as_ref().unwrap().as_str(), "c-1");
    assert_eq!(
        message.as_deref(),
        Some("Client 'notes' registered successfully")
    );
    assert_eq!(played.conn.client_id(), client_id.as_ref());
}

#[test]
fn a_reply_without_an_id_completes_the_registration() {
    let mut played = Played::new(config());
    played.take(&refused(&json!({"success": true})));
    assert_eq!(played.conn.state(), ClientState::Ready);
    assert_eq!(played.conn.client_id(), None);
}

#[test]
fn a_refusal_closes_with_4000_and_says_whether_to_retry() {
    for (code, retry) in [
        ("DUPLICATE_NAME", Retry::Backoff),
        ("LATER", Retry::Backoff),
        ("INVALID_NAME", Retry::Never),
        ("INVALID_DESCRIPTION", Retry::Never),
        ("VALIDATION_ERROR", Retry::Never),
        ("ALREADY_REGISTERED", Retry::Never),
    ] {
        let mut played = Played::new(config());
        played.sent();
        played.take(&refused(
            &json!({"success": false, "code": code, "message": "no"}),
        ));
        let events = played.events();
        let [ClientEvent::Refused(error), ClientEvent::Closed(reason)] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((error.code.name(), &*error.message), (code, "no"));
        assert_eq!(reason.retry(), retry, "{code}");
        assert_eq!(
            reason.to_string(),
            format!("refused by the peer: {code}: no")
        );
        assert_eq!(played.sent(), [json!([4000, "Registration failed"])]);
    }
}

#[test]
fn a_refusal_without_a_reason_is_retried() {
    let mut played = Played::new(config());
    played.take(&refused(&json!({"success": false})));
    let [
        ClientEvent::Refused(error),
        ClientEvent::Closed(CloseReason::Refused { retryable, .. }),
    ] = &played.events()[..]
    else {
        panic!("not refused")
    };
    assert!(*retryable && matches!(error.code, ErrorCode::Other(_)));
}

#[test]
fn an_unanswered_registration_times_out() {
    let mut played = Played::new(ClientConfig {
        keep_alive: KeepAlive::off(),
        ..config()
    });
    played.sent();
    played.wait(REGISTRATION_TIMEOUT - Duration::from_millis(1));
    assert_eq!(
        played.conn.next_timeout().map(|next| next.1),
        Some("registration")
    );
    assert_eq!(played.events(), []);
    played.wait(Duration::from_millis(1));
    let after = REGISTRATION_TIMEOUT;
    assert_eq!(
        played.events(),
        [ClientEvent::Closed(CloseReason::HandshakeTimeout { after })]
    );
    assert_eq!(played.sent().len(), 1);
    let config = ClientConfig {
        handshake_timeout: None,
        ..config()
    };
    let mut patient = Played::new(ClientConfig {
        keep_alive: KeepAlive::off(),
        ..config
    });
    patient.wait(SECOND * 3600);
    assert_eq!(patient.events(), []);
}

#[test]
fn a_repeated_registration_reply_is_a_warning() {
    let mut played = Played::ready(config());
    played.take(&accepted());
    let error = json!({"success": false, "code": "ALREADY_REGISTERED", "message": "again"});
    played.take(&refused(&error));
    let warning = ClientEvent::Warning(Warning::RepeatedAnswer);
    assert_eq!(played.events(), [warning.clone(), warning]);
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn a_message_has_its_deadline_and_all_members() {
    let mut played = Played::ready(config());
    let mut frame = message("msg-1");
    frame["payload"]["metadata"] = json!({
        "inputMethod": "voice", "directRouted": true, "confidence": 0.95, "source": "desk"});
    frame["payload"]["later"] = json!([1]);
    played.take(&frame);
    let [
        ClientEvent::Message(Received {
            message,
            deadline,
            frame: raw,
        }),
    ] = &played.events()[..]
    else {
        panic!("no message")
    };
    assert_eq!((&*message.id, &*message.text), ("msg-1", "milk"));
    assert_eq!(message.metadata.input_method, InputMethod::Voice);
    assert_eq!(message.metadata.confidence, Some(0.95));
    assert_eq!(*deadline, played.now + RESPONSE_TIMEOUT);
    assert_eq!(raw.parse::<Value>().unwrap(), frame);
    assert!(played.conn.is_open("msg-1"));
}

#[test]
fn responses_match_the_specification_shapes() {
    let mut played = Played::ready(config());
    let conn = &mut played.conn;
    conn.respond("1", Answer::Ack).unwrap();
    conn.respond("2", Answer::reject(Some("no".into())))
        .unwrap();
    conn.respond("3", Answer::reject(None)).unwrap();
    let shown = Notification {
        title: Some("Notes".into()),
        priority: Some(Priority::High),
        ..Notification::new("saved")
    };
    conn.respond("4", Answer::Notification(shown)).unwrap();
    conn.respond(
        "5",
        Answer::Unknown {
            tag: "later".into(),
            content: Json::new("[1]").ok(),
        },
    )
    .unwrap();
    assert_eq!(
        played.sent(),
        [
            response("1", "ack", &json!({})),
            response("2", "reject", &json!({"reason": "no"})),
            response("3", "reject", &json!({})),
            response(
                "4",
                "notification",
                &json!({"title": "Notes", "body": "saved", "priority": "high"})
            ),
            response("5", "later", &json!([1])),
        ]
    );
}

#[test]
fn the_first_response_stops_the_deadline_and_more_may_follow() {
    for first in ["ack", "reject", "notification"] {
        let mut played = Played::ready(config());
        played.take(&message("m"));
        played.events();
        assert_eq!(played.conn.in_flight(), 1);
        match first {
            "ack" => played.conn.respond("m", Answer::Ack),
            "reject" => played.conn.respond("m", Answer::reject(None)),
            _ => played
                .conn
                .respond("m", Answer::Notification(Notification::new("b"))),
        }
        .unwrap();
        assert_eq!(played.conn.in_flight(), 0);
        played.conn.respond("m", Answer::Ack).unwrap();
        assert_eq!(played.sent().len(), 2);
        played.wait(RESPONSE_TIMEOUT);
        assert_eq!(played.events(), []);
    }
}

#[test]
fn an_unknown_response_does_not_stop_the_deadline() {
    let mut played = Played::ready(config());
    played.take(&message("m"));
    let later = Answer::Unknown {
        tag: "later".into(),
        content: None,
    };
    played.conn.respond("m", later).unwrap();
    assert!(played.conn.is_open("m"));
}

#[test]
fn a_message_without_a_response_is_overdue_once() {
    let mut played = Played::ready(config());
    played.take(&message("m"));
    played.events();
    played.wait(RESPONSE_TIMEOUT - Duration::from_millis(1));
    assert_eq!(played.events(), []);
    played.wait(Duration::from_millis(2));
    assert_eq!(played.events(), [ClientEvent::Overdue { id: "m".into() }]);
    assert_eq!(played.conn.in_flight(), 0);
    played.sent();
    // It may still be shown to the user.
    played
        .conn
        .respond("m", Answer::Notification(Notification::new("late")))
        .unwrap();
    assert_eq!(played.sent().len(), 1);
}

#[test]
fn a_repeated_message_restarts_its_deadline() {
    let mut played = Played::ready(ClientConfig {
        keep_alive: KeepAlive::off(),
        ..config()
    });
    played.take(&message("m"));
    played.wait(SECOND * 20);
    played.take(&message("m"));
    assert_eq!(played.conn.in_flight(), 1);
    assert_eq!(played.events().len(), 2);
    played.wait(SECOND * 20);
    assert_eq!(played.events(), []);
    played.wait(SECOND * 10);
    assert_eq!(played.events().len(), 1);
}

#[test]
fn messages_before_the_registration_reply_are_delivered_after_it() {
    let mut played = Played::new(config());
    played.take(&message("early"));
    assert_eq!(played.events(), []);
    played.wait(SECOND);
    played.take(&accepted());
    let events = played.events();
    let [
        ClientEvent::Registered { .. },
        ClientEvent::Message(Received { deadline, .. }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    // The server waits since it sent the message.
    assert_eq!(*deadline, played.now - SECOND + RESPONSE_TIMEOUT);
    assert!(played.conn.is_open("early"));
}

#[test]
fn early_messages_are_bounded_to_the_newest() {
    let mut played = Played::new(ClientConfig {
        limits: Limits {
            max_events: 2,
            ..defaults()
        },
        ..config()
    });
    for id in ["1", "2", "3", "4"] {
        played.take(&message(id));
    }
    assert!(played.conn.wants_input());
    played.take(&accepted());
    let events = played.events();
    let [
        ClientEvent::Registered { .. },
        ClientEvent::Message(Received { message, .. }),
        ClientEvent::Message(_),
        ClientEvent::Warning(Warning::EarlyFramesDropped { count: 2 }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(message.id, "3");
}

#[test]
fn commands_are_refused_unless_registered() {
    let mut played = Played::new(config());
    played.sent();
    assert_eq!(
        played.conn.respond("m", Answer::Ack),
        Err(Refused::NotReady)
    );
    assert_eq!(played.sent(), [] as [Value; 0]);
    played.take(&accepted());
    played.conn.close(played.now);
    assert_eq!(played.conn.respond("m", Answer::Ack), Err(Refused::Closed));
    assert_eq!(played.sent(), [json!([1000, "Client disconnect"])]);
}

#[test]
fn the_message_limit_does_not_apply_to_pings() {
    let limits = Limits {
        max_message_bytes: 124,
        ..defaults()
    };
    let mut played = Played::new(ClientConfig { limits, ..config() });
    let ping = Incoming::Ping(&[0; 125]);
    played.conn.handle_message(ping, played.now);
    assert!(!played.conn.is_closed());
}

#[test]
fn reading_stops_while_too_many_messages_are_open() {
    let mut played = Played::ready(ClientConfig {
        limits: Limits {
            max_pending: 2,
            ..defaults()
        },
        ..config()
    });
    for id in ["1", "2"] {
        assert!(played.conn.wants_input());
        played.take(&message(id));
    }
    played.events();
    assert!(!played.conn.wants_input());
    played.conn.respond("1", Answer::Ack).unwrap();
    assert!(played.conn.wants_input());
    played.take(&message("3"));
    // What comes nevertheless is not lost.
    played.take(&message("4"));
    assert_eq!(played.events().len(), 2);
    assert!(!played.conn.wants_input());
    played.wait(RESPONSE_TIMEOUT);
    assert_eq!(played.events().len(), 2);
    assert!(played.conn.wants_input());
}

#[test]
fn large_open_messages_count_by_their_bytes() {
    let size = message("1").to_string().len();
    let limits = Limits {
        max_event_bytes: 2 * size,
        ..defaults()
    };
    let mut played = Played::ready(ClientConfig { limits, ..config() });
    played.take(&message("1"));
    played.events();
    assert!(played.conn.wants_input());
    played.take(&message("2"));
    played.events();
    assert!(!played.conn.wants_input());
    played.conn.respond("2", Answer::Ack).unwrap();
    assert!(played.conn.wants_input());
}

#[test]
fn an_invalid_frame_is_skipped_with_a_warning() {
    let mut played = Played::ready(config());
    for text in ["", "[]", "{", r#"{"type":"message"}"#, r#"{"type":7}"#] {
        played.conn.handle_message(Incoming::Text(text), played.now);
    }
    played
        .conn
        .handle_message(Incoming::Binary(b"{}"), played.now);
    let events = played.events();
    assert_eq!(events.len(), 6);
    let bad = |event: &ClientEvent| matches!(event, ClientEvent::Warning(Warning::BadFrame(_)));
    assert!(events.iter().all(bad), "{events:?}");
    played.take(&json!({"type": "later", "payload": [1]}));
    let [ClientEvent::Unknown { tag, raw }] = &played.events()[..] else {
        panic!("not unknown")
    };
    assert_eq!(tag, "later");
    assert_eq!(raw.get(), r#"{"payload":[1],"type":"later"}"#);
}

#[test]
fn a_lost_connection_ends_open_messages_silently() {
    let mut played = Played::ready(config());
    played.take(&message("m"));
    played.events();
    played.conn.handle_disconnect(Disconnect::Eof, played.now);
    assert_eq!(played.events(), [ClientEvent::Closed(CloseReason::Lost)]);
    assert_eq!(played.conn.in_flight(), 0);
    assert_eq!(played.conn.poll_timeout(), None);
}

#[test]
fn debug_output_shows_no_contents() {
    let mut played = Played::ready(config());
    played.take(&message("secret-id"));
    assert!(!format!("{:?}", played.conn).contains("secret"));
}
