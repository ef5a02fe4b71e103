//! Tests of [`ServerConn`] with a client that is played by hand.

use std::time::Duration;

use rpc_core::Limits;
use serde_json::json;
use switchboard_testing::play::Play;

use super::*;
use crate::frame::Final;

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
    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    fn with(config: ServerConfig) -> Self {
        let now = Instant::now();
        Self {
            conn: ServerConn::new(config, now),
            now,
        }
    }

    fn ready() -> Self {
        let mut played = Self::new();
        played.log_in();
        played
    }

    fn log_in(&mut self) {
        let id = self.try_login();
        self.conn.accept_login(id, User::new("ann", "Ann")).unwrap();
        assert_eq!(self.sent().len(), 1);
    }

    fn try_login(&mut self) -> RequestId {
        self.take(r#"{"method":"login","args":["ann","secret"],"kwargs":{},"callId":"L"}"#);
        let events = self.events();
        let [
            ServerEvent::Login {
                id,
                username,
                password,
            },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(
            (username.as_str(), password.expose().as_str()),
            ("ann", "secret")
        );
        *id
    }

    fn request(&mut self, text: &str) -> (RequestId, Call) {
        self.take(text);
        let events = self.events();
        let [ServerEvent::Request { id, call }] = &events[..] else {
            panic!("{events:?}")
        };
        (*id, call.clone())
    }
}

#[test]
fn a_login_is_decided_by_the_application() {
    let mut played = Played::new();
    let id = played.try_login();
    played.conn.refuse_login(id, "bad password").unwrap();
    assert_eq!(
        played.sent(),
        [json!({"callId": "L", "success": false, "data": {"error": "bad password"}})]
    );
    let id = played.try_login();
    played
        .conn
        .accept_login(id, User::new("ann", "Ann"))
        .unwrap();
    assert_eq!(
        played.sent(),
        [json!({"callId": "L", "success": true, "data": {"username": "ann", "nick": "Ann"}})]
    );
    assert_eq!(played.conn.user(), Some(&User::new("ann", "Ann")));
}

#[test]
fn only_login_is_answered_before_the_login() {
    let mut played = Played::new();
    for method in ["get_channels", "ping", "search_user"] {
        played.take(&json!({"method": method, "callId": 1}).to_string());
        assert_eq!(
            played.sent(),
            [json!({"callId": 1, "success": false, "data": {"error": "not logged in"}})]
        );
    }
    played.take(r#"{"method":"ping"}"#);
    assert!(played.sent().is_empty() && played.events().is_empty());
}

#[test]
fn only_one_login_succeeds() {
    let mut played = Played::new();
    let id = played.try_login();
    played.take(r#"{"method":"login","args":["ann","secret"],"callId":"M"}"#);
    assert_eq!(played.sent()[0]["data"]["error"], "a login is under way");
    played
        .conn
        .accept_login(id, User::new("ann", "Ann"))
        .unwrap();
    played.sent();
    played.take(r#"{"method":"login","args":["ann","secret"],"callId":"M"}"#);
    assert_eq!(played.sent()[0]["data"]["error"], "already logged in");
}

#[test]
fn too_many_failed_logins_close_the_connection() {
    for (config, allowed) in [
        (ServerConfig::default(), 5),
        (
            ServerConfig {
                max_failed_logins: 2,
                ..ServerConfig::default()
            },
            2,
        ),
        (
            ServerConfig {
                max_failed_logins: 0,
                ..ServerConfig::default()
            },
            1,
        ),
    ] {
        let mut played = Played::with(config);
        for attempt in 0..allowed {
            assert!(!played.conn.is_closed(), "{attempt} of {allowed}");
            let id = played.try_login();
            played.conn.fail(id, "no").unwrap();
        }
        let sent = played.sent();
        assert_eq!(sent.len(), allowed + 1);
        assert_eq!(sent.last(), Some(&json!(1008)));
        assert!(matches!(
            played.events()[..],
            [ServerEvent::Closed(CloseReason::Violation { .. })]
        ));
    }
}

#[test]
fn a_forgotten_login_makes_room_for_another() {
    let mut played = Played::new();
    let id = played.try_login();
    assert!(played.conn.forget(id));
    played.log_in();
}

#[test]
fn logins_and_requests_are_answered_separately() {
    let mut played = Played::new();
    let user = User::new("ann", "Ann");
    let login = played.try_login();
    let mut refused = vec![played.conn.reply(login, &1)];
    played.conn.accept_login(login, user.clone()).unwrap();
    let (id, _) = played.request(r#"{"method":"ping","callId":"A"}"#);
    refused.push(played.conn.accept_login(id, user));
    refused.push(played.conn.refuse_login(id, "no"));
    for refused in refused {
        assert!(
            matches!(refused, Err(Refused::Invalid { what: "id", .. })),
            "{refused:?}"
        );
    }
    assert_eq!(played.conn.in_flight(), 1);
}

#[test]
fn a_client_that_never_logs_in_is_closed() {
    let mut played = Played::new();
    played.wait(Duration::from_millis(29_999));
    assert!(!played.conn.is_closed());
    played.wait(Duration::from_millis(1));
    assert_eq!(played.sent().last(), Some(&json!(1008)));
    let after = Duration::from_secs(30);
    let closed = ServerEvent::Closed(CloseReason::HandshakeTimeout { after });
    assert_eq!(played.events(), [closed]);
    assert_eq!(played.conn.poll_timeout(), None);
}

#[test]
fn requests_are_answered_in_any_order_under_their_ids() {
    let mut played = Played::ready();
    let (first, call) = played.request(
        r#"{"method":"send_message","args":["ch1","hi\n",true],"kwargs":{},"callId":"A"}"#,
    );
    assert_eq!(
        call,
        Call::SendMessage {
            channel_uid: "ch1".into(),
            message: "hi\n".into(),
            is_final: Final::Yes,
        }
    );
    let (second, _) = played.request(r#"{"method":"get_channels","callId":2}"#);
    played.conn.reply(second, &json!([])).unwrap();
    played.conn.fail(first, "no such channel").unwrap();
    assert_eq!(
        played.sent(),
        [
            json!({"callId": 2, "success": true, "data": []}),
            json!({"callId": "A", "success": false, "data": {"error": "no such channel"}}),
        ]
    );
    assert_eq!(played.conn.reply(first, &1), Err(Refused::UnknownId));
}

#[test]
fn a_request_without_an_id_is_executed_without_a_reply() {
    let mut played = Played::ready();
    let (id, _) = played.request(r#"{"method":"ping"}"#);
    played.conn.reply(id, &json!({"pong": []})).unwrap();
    assert!(played.sent().is_empty());
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn invalid_arguments_are_answered_without_the_application() {
    let mut played = Played::ready();
    played.take(r#"{"method":"send_message","args":["ch1"],"callId":"A"}"#);
    assert_eq!(
        played.sent()[0]["data"]["error"],
        "send_message needs the argument message"
    );
    assert!(played.events().is_empty());
}

#[test]
fn mistyped_arguments_of_a_request_are_answered() {
    let mut played = Played::ready();
    played.take(r#"{"method":"dance","args":{"a":1},"callId":7}"#);
    assert_eq!(
        played.sent(),
        [
            json!({"callId": 7, "success": false, "data": {"error": "member `args` is not an array"}})
        ]
    );
    played.take(r#"{"method":"dance","kwargs":[]}"#);
    assert!(played.sent().is_empty() && played.events().is_empty());
    for text in [
        r#"{"args":{},"callId":7}"#,
        r#"{"args":{},"method":5,"callId":7}"#,
        r#"{"method":"dance","args":{},"callId":[]}"#,
        r#"{"method":"dance","args":{},"callId":7"#,
        r#"{"method":"dance","args":{},"callId":7}}"#,
    ] {
        played.take(text);
        assert!(
            matches!(played.events()[..], [ServerEvent::Warning(_)]),
            "{text}"
        );
        assert!(played.sent().is_empty(), "{text}");
    }
}

#[test]
fn an_unknown_method_is_passed_to_the_application() {
    let mut played = Played::ready();
    let (id, call) = played.request(r#"{"method":"search_user","args":["a"],"callId":"A"}"#);
    assert!(matches!(call, Call::Unknown { args, .. } if args.get() == r#"["a"]"#));
    assert!(played.conn.forget(id) && !played.conn.forget(id));
}

#[test]
fn bad_frames_are_ignored_with_a_warning() {
    let mut played = Played::ready();
    for text in [
        "x",
        "[]",
        r#"{"callId":"A"}"#,
        r#"{"method":5,"callId":"A"}"#,
    ] {
        played.take(text);
        assert!(
            matches!(played.events()[..], [ServerEvent::Warning(_)]),
            "{text}"
        );
    }
    played
        .conn
        .handle_message(Incoming::Binary(b"{}"), played.now);
    assert!(matches!(played.events()[..], [ServerEvent::Warning(_)]));
    assert!(played.sent().is_empty() && !played.conn.is_closed());
}

#[test]
fn reading_stops_while_too_many_requests_are_open() {
    let mut played = Played::with(ServerConfig {
        max_requests: 1,
        ..ServerConfig::default()
    });
    played.log_in();
    let (id, _) = played.request(r#"{"method":"ping","callId":"A"}"#);
    assert!(!played.conn.wants_input());
    played.take(r#"{"method":"ping","callId":"B"}"#);
    assert_eq!(
        played.sent()[0]["data"]["error"],
        "too many requests in flight"
    );
    played.conn.reply(id, &()).unwrap();
    assert!(played.conn.wants_input());
}

#[test]
fn a_hundred_requests_of_a_client_run_concurrently() {
    let mut played = Played::ready();
    for number in 0..100 {
        assert!(played.conn.wants_input(), "{number}");
        played.request(&format!(r#"{{"method":"ping","callId":{number}}}"#));
    }
    assert!(!played.conn.wants_input());
}

#[test]
fn events_are_sent_to_logged_in_clients_only() {
    let mut played = Played::new();
    let event = Text::from(r#"{"event":"join","data":{"channel_uid":"c"}}"#);
    assert_eq!(played.conn.push(event.clone()), Err(Refused::NotReady));
    played.log_in();
    played.conn.push(event.clone()).unwrap();
    let Some(Outgoing::Text(sent)) = played.conn.poll_transmit() else {
        panic!()
    };
    assert_eq!(sent.into_bytes().as_ptr(), event.into_bytes().as_ptr());
}

#[test]
fn an_oversized_reply_leaves_the_request_open() {
    let limits = Limits {
        max_message_bytes: 200,
        ..Limits::default()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    played.log_in();
    let (id, _) = played.request(r#"{"method":"ping","callId":"A"}"#);
    let refused = played.conn.reply(id, &"x".repeat(300));
    assert!(matches!(refused, Err(Refused::TooLarge { .. })));
    played.conn.fail(id, "too large").unwrap();
    assert_eq!(played.sent().len(), 1);
}

#[test]
fn open_requests_are_bounded_in_bytes() {
    let limits = Limits {
        max_event_bytes: 200,
        ..Limits::default()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    played.log_in();
    let long = "x".repeat(300);
    let text = format!(r#"{{"method":"dance","args":["{long}"],"callId":"1"}}"#);
    let (id, _) = played.request(&text);
    assert!(!played.conn.wants_input());
    played.conn.reply(id, &1).unwrap();
    assert!(played.conn.wants_input());
    let (id, _) = played.request(&text);
    assert!(played.conn.forget(id) && played.conn.wants_input());
}
