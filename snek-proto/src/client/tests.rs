//! Tests of [`ClientConn`] with a peer that is played by hand.

use std::time::Duration;

use rpc_core::{CallId, Delivery, Json, Limits, Refused};
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::frame::Final;
use crate::limits::DEFAULT_REQUEST_TIMEOUT;

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
}

impl Played {
    fn new() -> Self {
        Self::with(ClientConfig::new("mybot", "mypassword"))
    }

    fn with(config: ClientConfig) -> Self {
        let now = Instant::now();
        Self {
            conn: ClientConn::new(config, 7, now),
            now,
        }
    }

    fn ready() -> Self {
        let mut played = Self::new();
        played.open();
        assert!(matches!(played.events()[..], [ClientEvent::Ready(_)]));
        played
    }

    fn open(&mut self) {
        self.answer(&json!({}));
        self.answer(&json!({"username": "mybot", "nick": "MyBot"}));
        self.answer(&json!([{"uid": "ch1", "name": "general", "tag": "public"}]));
    }

    /// Answers the one request that was sent, and returns it.
    fn answer(&mut self, data: &Value) -> Value {
        let sent = self.sent();
        let [request] = &sent[..] else {
            panic!("{sent:?}")
        };
        self.take(&json!({"callId": request["callId"], "data": data}).to_string());
        request.clone()
    }

    fn send(&mut self) -> CallId {
        self.conn
            .send_message("ch1", "hi", Final::Yes, self.now)
            .unwrap()
    }
}

fn reason(events: &[ClientEvent]) -> CloseReason {
    match events {
        [.., ClientEvent::Closed(reason)] => reason.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_handshake_is_login_user_and_channels() {
    let mut played = Played::new();
    let login = played.sent();
    assert_eq!(login[0]["method"], "login");
    assert_eq!(login[0]["args"], json!(["mybot", "mypassword"]));
    let id = login[0]["callId"].clone();
    played.take(&json!({"callId": id, "success": true, "data": {"username": "mybot"}}).to_string());
    assert_eq!(played.conn.state(), ClientState::AwaitUser);
    let user = played.answer(&json!({"username": "mybot", "nick": "MyBot", "email": "x"}));
    assert_eq!(
        (&user["method"], &user["args"]),
        (&json!("get_user"), &json!([null]))
    );
    assert_eq!(played.conn.state(), ClientState::AwaitChannels);
    let channels = played.answer(&json!([{"uid": "ch2", "name": "DM", "tag": "dm"}]));
    assert_eq!(
        (&channels["method"], &channels["args"]),
        (&json!("get_channels"), &json!([]))
    );
    let events = played.events();
    let [ClientEvent::Ready(ready)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(ready.user, User::new("mybot", "MyBot"));
    assert_eq!(ready.channels, [Channel::new("ch2", "DM", Some("dm"))]);
    assert_eq!(ready.login.data().get(), r#"{"username":"mybot"}"#);
    assert_eq!(played.conn.user(), Some(&ready.user));
}

#[test]
fn a_refused_login_closes_for_good() {
    for answer in [
        json!({"success": false, "data": {"error": "bad password"}}),
        json!({"data": {"error": "bad password"}}),
        json!({"error": "bad password"}),
        json!({"success": true, "error": "bad password"}),
    ] {
        let mut played = Played::new();
        let mut answer = answer;
        answer["callId"] = played.sent()[0]["callId"].clone();
        played.take(&answer.to_string());
        let expected = CloseReason::Authentication {
            message: "bad password".to_owned(),
        };
        assert_eq!(reason(&played.events()), expected);
        assert_eq!(played.sent(), [json!(1000)]);
        assert!(played.conn.is_closed() && played.conn.poll_timeout().is_none());
    }
}

#[test]
fn an_invalid_handshake_reply_is_a_violation() {
    for data in [json!(null), json!([]), json!({"nick": "x"}), json!("user")] {
        let mut played = Played::new();
        played.answer(&json!({}));
        played.answer(&data);
        assert!(
            matches!(reason(&played.events()), CloseReason::Violation { .. }),
            "{data}"
        );
    }
}

#[test]
fn a_silent_server_times_out_the_handshake() {
    let mut played = Played::new();
    let login = played.sent()[0]["callId"].clone();
    for _ in 0..18 {
        played.wait(SECOND * 10);
        played.conn.handle_message(Incoming::Pong(b""), played.now);
    }
    // An answer begins another call, not another opening.
    played.take(&json!({"callId": login, "data": {}}).to_string());
    assert_eq!(played.conn.state(), ClientState::AwaitUser);
    played.wait(SECOND * 10);
    let after = DEFAULT_REQUEST_TIMEOUT;
    assert_eq!(
        reason(&played.events()),
        CloseReason::HandshakeTimeout { after }
    );
}

#[test]
fn the_handshake_has_its_own_deadline() {
    let config = ClientConfig {
        handshake_timeout: Some(SECOND * 3),
        ..ClientConfig::new("mybot", "x")
    };
    let mut played = Played::with(config);
    played.wait(SECOND * 2);
    played.answer(&json!({}));
    played.wait(SECOND);
    assert!(matches!(
        reason(&played.events()),
        CloseReason::HandshakeTimeout { .. }
    ));
}

#[test]
fn without_its_own_deadline_the_handshake_ends_with_its_calls() {
    let config = ClientConfig {
        handshake_timeout: None,
        call_timeout: SECOND * 3,
        ..ClientConfig::new("mybot", "x")
    };
    let mut played = Played::with(config);
    played.wait(SECOND * 2);
    played.answer(&json!({}));
    played.wait(SECOND * 2);
    assert!(!played.conn.is_closed());
    played.wait(SECOND * 2);
    let after = SECOND * 3;
    assert_eq!(
        reason(&played.events()),
        CloseReason::HandshakeTimeout { after }
    );
}

#[test]
fn events_before_ready_come_after_it_in_order() {
    let limits = Limits {
        max_events: 2,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::new("mybot", "x")
    });
    for channel in ["a", "b", "c"] {
        played.take(&json!({"event": "join", "data": {"channel_uid": channel}}).to_string());
    }
    assert!(played.events().is_empty());
    played.open();
    let events = played.events();
    let [
        ClientEvent::Ready(_),
        ClientEvent::Joined(b),
        ClientEvent::Joined(c),
        ClientEvent::Warning(Warning::EarlyEventsDropped { count: 1 }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((b.channel_uid.as_str(), c.channel_uid.as_str()), ("b", "c"));
}

#[test]
fn events_before_ready_are_bounded_in_bytes_too() {
    let limits = Limits {
        max_event_bytes: 10_500,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::new("mybot", "x")
    });
    for n in 0..5 {
        let padding = "x".repeat(3_000);
        played.take(&json!({"event": n.to_string(), "data": padding}).to_string());
    }
    played.open();
    let events = played.events();
    let Some(ClientEvent::Warning(Warning::EarlyEventsDropped { count })) = events.last() else {
        panic!("{events:?}")
    };
    // Three of 3 kB fit: they come between `Ready` and the warning.
    assert_eq!((events.len(), *count), (5, 2));
}

#[test]
fn commands_before_ready_and_after_the_end_are_refused() {
    let mut played = Played::new();
    assert_eq!(played.conn.ping(played.now), Err(Refused::NotReady));
    assert_eq!(played.sent().len(), 1);
    played.conn.close(played.now);
    assert_eq!(played.conn.ping(played.now), Err(Refused::Closed));
}

#[test]
fn invalid_arguments_are_refused_without_side_effects() {
    let mut played = Played::ready();
    let now = played.now;
    for channel in ["", "a b", "ch1\n"] {
        let refused = played.conn.send_message(channel, "x", Final::Yes, now);
        assert!(matches!(
            refused,
            Err(Refused::Invalid {
                what: "channel_uid",
                ..
            })
        ));
    }
    let refused = played.conn.set_typing("ch1", "red");
    assert!(matches!(
        refused,
        Err(Refused::Invalid { what: "color", .. })
    ));
    let refused = played.conn.call("x", &"text", &NoKwargs {}, now);
    assert!(matches!(
        refused,
        Err(Refused::Invalid { what: "args", .. })
    ));
    let refused = played.conn.call("x", &(1,), &(2,), now);
    assert!(matches!(
        refused,
        Err(Refused::Invalid { what: "kwargs", .. })
    ));
    assert_eq!((played.sent().len(), played.conn.in_flight()), (0, 0));
}

#[test]
fn replies_reach_their_calls_in_any_order() {
    let mut played = Played::ready();
    let first = played.send();
    let second = played
        .conn
        .call("get_user", &["ann"], &NoKwargs {}, played.now)
        .unwrap();
    played.take(&json!({"callId": second.to_string(), "data": {"username": "ann"}}).to_string());
    played.take(&json!({"callId": first.to_string(), "success": false, "data": "no"}).to_string());
    let events = played.events();
    let [
        ClientEvent::Reply {
            id: a,
            result: Ok(answer),
        },
        ClientEvent::Reply {
            id: b,
            result: Err(CallError::Remote(error)),
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*a, *b, error.message()), (second, first, "no"));
    assert_eq!(answer.parse::<User>().unwrap(), User::new("ann", ""));
}

#[test]
fn a_pending_call_id_takes_precedence_over_an_event() {
    let mut played = Played::ready();
    let call = played.send();
    let mut frame = json!({"event": "join", "data": {"channel_uid": "c"}, "callId": "foreign"});
    played.take(&frame.to_string());
    frame["callId"] = json!({"no": "id"});
    played.take(&frame.to_string());
    frame["callId"] = json!(call.to_string());
    played.take(&frame.to_string());
    played.take(&frame.to_string());
    let events = played.events();
    let [
        ClientEvent::Joined(_),
        ClientEvent::Joined(_),
        ClientEvent::Reply {
            result: Ok(answer), ..
        },
        ClientEvent::Joined(_),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(answer.extra("event"), Some(Json::string("join")));
}

#[test]
fn late_repeated_and_unknown_replies_are_dropped() {
    let mut played = Played::ready();
    let call = played.send();
    let answer = json!({"callId": call.to_string(), "data": 1}).to_string();
    played.take(&answer);
    played.take(&answer);
    played.take(r#"{"callId":"nobody"}"#);
    played.take(r#"{"callId":5}"#);
    played.take(r#"{"callId":[]}"#);
    played.take("{}");
    assert_eq!(played.events().len(), 1);
    assert_eq!(played.conn.stray_frames(), 5);
}

#[test]
fn nothing_times_out_while_its_answer_may_be_unread() {
    let limits = Limits {
        max_events: 2,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::new("mybot", "x")
    });
    played.open();
    played.events();
    let (answered, lost) = (played.send(), played.send());
    let joined = json!({"event": "join", "data": {"channel_uid": "c"}}).to_string();
    played.take(&joined);
    played.take(&joined);
    assert!(!played.conn.wants_input());
    played.wait(DEFAULT_REQUEST_TIMEOUT * 3);
    assert_eq!(played.events().len(), 2);
    played.wait(Duration::ZERO);
    // What has come meanwhile is read first.
    played.take(&json!({"callId": answered.to_string(), "data": 1}).to_string());
    assert!(matches!(
        played.events()[..],
        [ClientEvent::Reply { id, result: Ok(_) }] if id == answered
    ));
    played.wait(SECOND);
    assert!(matches!(
        played.events()[..],
        [ClientEvent::Reply { id, result: Err(CallError::TimedOut { .. }) }] if id == lost
    ));
}

#[test]
fn a_timeout_ends_only_its_call() {
    let mut played = Played::ready();
    let call = played.send();
    let patient = played.send();
    assert!(played.conn.set_timeout(patient, None, played.now));
    played.sent();
    for _ in 0..19 {
        assert!(played.events().is_empty());
        played.wait(SECOND * 10);
        played.conn.handle_message(Incoming::Pong(b""), played.now);
    }
    let events = played.events();
    let [
        ClientEvent::Reply {
            id,
            result: Err(error),
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (*id, error),
        (
            call,
            &CallError::TimedOut {
                delivery: Delivery::Unknown
            }
        )
    );
    assert_eq!(played.conn.in_flight(), 1);
}

#[test]
fn cancelled_calls_and_notifications_leave_nothing_behind() {
    let mut played = Played::ready();
    let call = played.send();
    assert!(played.conn.cancel(call) && !played.conn.cancel(call));
    let note = played.conn.set_typing("ch1", "#FF0000").unwrap();
    let next = played.send();
    assert_ne!(note, next);
    for id in [call, note] {
        played.take(&json!({"callId": id.to_string(), "data": 1}).to_string());
    }
    assert!(played.events().is_empty());
    assert_eq!(played.conn.in_flight(), 1);
}

#[test]
fn bad_frames_are_skipped_with_a_warning() {
    let mut played = Played::ready();
    let call = played.send();
    for text in [
        "nonsense",
        "[]",
        r#"{"event":"join"}"#,
        r#"{"data":1,"data":2}"#,
    ] {
        played.take(text);
    }
    played
        .conn
        .handle_message(Incoming::Binary(b"x"), played.now);
    let events = played.events();
    assert_eq!(events.len(), 5);
    assert!(
        events
            .iter()
            .all(|event| matches!(event, ClientEvent::Warning(_)))
    );
    assert_eq!(played.conn.in_flight(), 1);
    assert!(played.conn.cancel(call));
}

#[test]
fn debug_output_hides_the_password() {
    let played = Played::new();
    let config = ClientConfig::new("mybot", "hunter2");
    assert!(!format!("{:?} {config:?}", played.conn).contains("hunter2"));
}
