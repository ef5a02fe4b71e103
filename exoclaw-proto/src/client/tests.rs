//! Tests of [`ClientConn`] with a gateway that is played by hand: the opening and the rules.

mod chats;
mod order;

use std::time::Duration;

use rpc_core::{Limits, Refused};
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::frame::{
    BudgetOf, Call, ChatHistory, ChatSend, MemorySearch, Method, SessionRef, Usage,
};

const SECOND: Duration = Duration::from_secs(1);
// The defaults, written out: a test is not to agree with whatever they are.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
const TOKENLESS_HELLO_TIMEOUT: Duration = Duration::from_secs(3);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const CHAT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(30);
const HELLO: &str = r#"{"ok":true,"version":"0.1.0"}"#;
const ECHO: &str = r#"{"id":"0","error":"parse error: missing field `id` at line 1 column 17"}"#;

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
    fn with(config: ClientConfig) -> Self {
        let now = Instant::now();
        Self {
            conn: ClientConn::new(config, 7, now),
            now,
        }
    }

    fn with_token() -> Self {
        Self::with(ClientConfig::new("t"))
    }

    fn ready_with(config: ClientConfig) -> Self {
        let mut played = Self::with(config);
        played.take(HELLO);
        assert!(matches!(played.events()[..], [ClientEvent::Ready(_)]));
        played.sent();
        played
    }

    fn ready() -> Self {
        Self::ready_with(ClientConfig::default())
    }

    fn chat(&mut self) -> CallId {
        let chat = ChatSend::new("websocket", "ann", "hi");
        self.conn.chat_send(&chat, self.now).unwrap()
    }

    fn step(&mut self, id: CallId, event: &str, data: &Value) {
        self.take(&json!({"id": id.to_string(), "event": event, "data": data}).to_string());
    }

    fn done(&mut self, id: CallId) {
        self.take(&json!({"id": id.to_string(), "event": "done"}).to_string());
    }

    fn disconnect(&mut self, why: Disconnect) -> CloseReason {
        self.conn.handle_disconnect(why, self.now);
        reason(&self.events())
    }
}

fn reason(events: &[ClientEvent]) -> CloseReason {
    match events {
        [.., ClientEvent::Closed(reason)] => reason.clone(),
        other => panic!("{other:?}"),
    }
}

fn is_authentication(reason: &CloseReason) -> bool {
    matches!(reason, CloseReason::Authentication { .. }) && reason.retry() == rpc_core::Retry::Never
}

fn text(id: CallId, text: &str) -> ClientEvent {
    let event = StreamEvent::Text(text.into());
    ClientEvent::Chat { id, event }
}

fn well(id: CallId, usage: (u64, u64), frames: u64, text_bytes: u64) -> ClientEvent {
    ClientEvent::ChatEnded {
        id,
        result: Ok(ChatSummary {
            usage: Usage::new(usage.0, usage.1),
            frames,
            text_bytes,
        }),
    }
}

fn failed(id: CallId, words: &str) -> ClientEvent {
    ClientEvent::ChatEnded {
        id,
        result: Err(remote(words)),
    }
}

#[test]
fn the_token_goes_first_and_the_hello_makes_ready() {
    let mut played = Played::with_token();
    assert_eq!(played.sent(), [json!({"token": "t"})]);
    assert_eq!(played.conn.state(), ClientState::AwaitHello);
    assert_eq!(played.conn.ping(played.now), Err(Refused::NotReady));
    played.take(HELLO);
    let events = played.events();
    let [ClientEvent::Ready(hello)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(hello.version(), Some("0.1.0"));
    assert!(played.conn.ping(played.now).is_ok());
}

#[test]
fn a_gateway_without_a_token_may_answer_it_with_one_error() {
    // Before the hello, and behind it.
    for frames in [[ECHO, HELLO], [HELLO, ECHO]] {
        let mut played = Played::with_token();
        for frame in frames {
            played.take(frame);
        }
        assert!(matches!(played.events()[..], [ClientEvent::Ready(_)]));
        played.take(ECHO);
        assert!(matches!(
            played.events()[..],
            [ClientEvent::GatewayError(_)]
        ));
    }
}

#[test]
fn unrelated_errors_during_authentication_are_events() {
    let mut played = Played::with_token();
    played.take(HELLO);
    played.take(r#"{"error":"no route"}"#);
    let id = played.conn.ping(played.now).unwrap().to_string();
    played.take(&json!({"id": id, "result": "pong"}).to_string());
    // An answer has come, so the one to the token must have come before it.
    played.take(ECHO);
    let events = played.events();
    let [
        _,
        ClientEvent::GatewayError(first),
        _,
        ClientEvent::GatewayError(second),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(first.message(), "no route");
    assert_eq!(second.kind(), ErrorKind::Parse);
    let mut played = Played::ready();
    played.take(ECHO);
    assert!(matches!(
        played.events()[..],
        [ClientEvent::GatewayError(_)]
    ));
}

#[test]
fn a_refused_token_closes_for_good_with_the_gateways_message() {
    for frame in [
        r#"{"error":"auth_failed","code":4001}"#,
        r#"{"id":"0","error":"auth_failed","code":4001}"#,
    ] {
        let mut played = Played::with_token();
        played.sent();
        played.take(frame);
        let message = "auth_failed".to_owned();
        assert_eq!(
            reason(&played.events()),
            CloseReason::Authentication { message }
        );
        assert_eq!(played.sent(), [json!(1000)]);
        assert_eq!(played.conn.poll_timeout(), None);
    }
}

#[test]
fn a_clean_close_before_the_hello_is_a_refusal() {
    let closed = |code: u16| Disconnect::PeerClosed(Some(CloseFrame::new(code, "")));
    for config in [ClientConfig::default(), ClientConfig::new("t")] {
        let fresh = || Played::with(config.clone());
        for why in [
            Disconnect::PeerClosed(None),
            closed(1000),
            closed(1008),
            closed(4001),
        ] {
            assert!(
                is_authentication(&fresh().disconnect(why.clone())),
                "{why:?}"
            );
        }
        assert_eq!(fresh().disconnect(Disconnect::Eof), CloseReason::Lost);
        for code in [1001, 1011, 1013] {
            let reason = fresh().disconnect(closed(code));
            assert!(matches!(reason, CloseReason::Peer(_)), "{code}");
        }
    }
    let words = Disconnect::PeerClosed(Some(CloseFrame::new(4001, "go away")));
    let reason = Played::with_token().disconnect(words);
    assert_eq!(reason.to_string(), "authentication failed: go away");
}

#[test]
fn after_the_hello_only_4001_is_a_refusal() {
    let closed = |code: u16| Disconnect::PeerClosed(Some(CloseFrame::new(code, "")));
    let lost = Played::ready().disconnect(Disconnect::PeerClosed(None));
    assert_eq!(lost, CloseReason::Lost);
    for code in [1000, 1008] {
        let reason = Played::ready().disconnect(closed(code));
        assert!(matches!(reason, CloseReason::Peer(_)), "{reason:?}");
    }
    assert!(is_authentication(&Played::ready().disconnect(closed(4001))));
}

#[test]
fn a_reconnect_is_refused_only_by_an_error_or_4001() {
    let again = |config: &ClientConfig| {
        let now = Instant::now();
        let conn = ClientConn::again(config.clone(), 7, now);
        Played { conn, now }
    };
    let closed = |code: u16| Disconnect::PeerClosed(Some(CloseFrame::new(code, "")));
    let open = ClientConfig::default();
    let with_token = ClientConfig::new("t");
    for config in [&open, &with_token] {
        let lost = again(config).disconnect(Disconnect::PeerClosed(None));
        assert_eq!(lost, CloseReason::Lost);
        for code in [1000, 1008] {
            let reason = again(config).disconnect(closed(code));
            assert!(matches!(reason, CloseReason::Peer(_)), "{reason:?}");
        }
        assert!(is_authentication(&again(config).disconnect(closed(4001))));
        let mut refused = again(config);
        refused.take(r#"{"error":"auth_failed","code":4001}"#);
        assert!(is_authentication(&reason(&refused.events())));
    }
    for (config, after) in [
        (&open, TOKENLESS_HELLO_TIMEOUT),
        (&with_token, HELLO_TIMEOUT),
    ] {
        let mut silent = again(config);
        silent.wait(after);
        let expected = CloseReason::HandshakeTimeout { after };
        assert_eq!(reason(&silent.events()), expected);
    }
}

#[test]
fn silence_without_a_token_means_one_is_required() {
    let mut played = Played::with(ClientConfig::default());
    assert_eq!(
        played.conn.next_timeout(),
        Some((played.now + TOKENLESS_HELLO_TIMEOUT, "hello"))
    );
    played.wait(TOKENLESS_HELLO_TIMEOUT);
    let reason = reason(&played.events());
    assert!(is_authentication(&reason));
    assert!(reason.to_string().contains("requires a token"), "{reason}");
}

#[test]
fn nothing_is_pinged_before_the_hello() {
    let config = ClientConfig {
        handshake_timeout: SECOND * 3600,
        ..ClientConfig::new("t")
    };
    let mut played = Played::with(config);
    played.sent();
    played.wait(SECOND * 3599);
    assert!(played.sent().is_empty());
    played.take(HELLO);
    played.wait(PING_INTERVAL);
    assert_eq!(played.sent(), [json!("ping")]);
}

#[test]
fn an_idle_gateway_that_misses_pongs_is_disconnected() {
    let mut played = Played::ready();
    let moment = Duration::from_millis(1);
    played.wait(PING_INTERVAL - moment);
    assert!(played.sent().is_empty());
    played.wait(PONG_TIMEOUT);
    assert_eq!(played.sent(), [json!("ping")]);
    assert!(!played.conn.is_closed());
    played.wait(moment);
    assert_eq!(played.sent(), [json!(1001)]);
    let after = PONG_TIMEOUT;
    assert_eq!(reason(&played.events()), CloseReason::KeepAlive { after });
}

#[test]
fn pongs_are_not_required_during_a_chat() {
    let config = ClientConfig {
        chat_idle_timeout: None,
        ..ClientConfig::default()
    };
    let mut played = Played::ready_with(config);
    let id = played.chat();
    played.wait(SECOND * 3600);
    assert!(!played.conn.is_closed());
    played.done(id);
    assert_eq!(played.events(), [well(id, (0, 0), 0, 0)]);
    played.sent();
    played.wait(PING_INTERVAL + PONG_TIMEOUT);
    assert!(played.conn.is_closed());
}

#[test]
fn commands_are_all_or_nothing() {
    let limits = Limits {
        max_pending: 1,
        max_message_bytes: 200,
        ..Limits::default()
    };
    let mut played = Played::ready_with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    let long = ChatSend::new("c", "a", "x".repeat(200));
    assert!(matches!(
        played.conn.chat_send(&long, played.now),
        Err(Refused::TooLarge { .. })
    ));
    assert_eq!((played.conn.in_flight(), played.sent().len()), (0, 0));
    played.chat();
    assert_eq!(
        played.conn.request(&Call::Status, played.now),
        Err(Refused::TooManyCalls { max: 1 })
    );
    assert_eq!(played.sent().len(), 1);
    played.conn.close(played.now);
    assert_eq!(
        played.conn.request(&Call::Status, played.now),
        Err(Refused::Closed)
    );
}

#[test]
fn every_method_round_trips_through_the_server() {
    let mut played = Played::ready();
    let now = played.now;
    let conn = &mut played.conn;
    let mut session = SessionRef::new("c", "a");
    session.peer = Some("p".into());
    conn.ping(now).unwrap();
    let limit = Some(3);
    let unknown = |method: &str| Call::Unknown {
        tag: method.into(),
        content: None,
    };
    for call in [
        Call::Status,
        Call::ChatSend(ChatSend::new("c", "a", "x")),
        Call::PluginList,
        Call::ChatHistory(ChatHistory {
            session: session.clone(),
            limit,
        }),
        Call::SessionList,
        Call::SessionClear(session.clone()),
        unknown("plugin.load"),
        unknown("plugin.unload"),
        Call::BudgetStatus(BudgetOf {
            session: Some(session.clone()),
        }),
        Call::MemorySearch(MemorySearch {
            session,
            query: "q".into(),
            limit: None,
        }),
    ] {
        conn.request(&call, now).unwrap();
    }
    let limits = Limits::default();
    for (method, frame) in Method::ALL.into_iter().zip(played.sent()) {
        let text = frame.to_string();
        let request = crate::frame::Request::decode(&text, &limits).unwrap();
        assert_eq!(request.call.tag(), method.name());
        if let Call::MemorySearch(search) = request.call {
            assert_eq!((search.session.peer(), &*search.query), ("p", "q"));
        }
    }
}

#[test]
fn unmatched_replies_and_a_second_hello_are_dropped() {
    let mut played = Played::ready();
    for frame in [
        HELLO,
        r#"{"id":"x","result":1}"#,
        r#"{"id":"x","error":"e"}"#,
        r#"{"id":"0123456789abcdef","event":"text","data":"x"}"#,
        r#"{"id":"0","event":"done"}"#,
    ] {
        played.take(frame);
    }
    assert!(played.events().is_empty());
    assert_eq!(played.conn.stray_frames(), 5);
}

#[test]
fn buffered_input_is_processed_before_timeouts() {
    let limits = Limits {
        max_events: 2,
        ..Limits::default()
    };
    let mut played = Played::ready_with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    let chat = played.chat();
    let [lost, ping] = [(); 2].map(|()| played.conn.ping(played.now).unwrap());
    played.step(chat, "text", &json!("x"));
    played.step(chat, "text", &json!("x"));
    played.wait(CALL_TIMEOUT);
    assert_eq!(played.events(), [text(chat, "x"), text(chat, "x")]);
    // The line is read in portions, with a look at the time between them.
    played.wait(Duration::ZERO);
    assert_eq!(played.events(), []);
    played.take(&format!(r#"{{"id":"{ping}","result":"pong"}}"#));
    assert!(matches!(
        played.events()[..],
        [ClientEvent::Reply { id, result: Ok(_) }] if id == ping
    ));
    played.wait(SECOND);
    let delivery = Delivery::Unknown;
    let result = Err(CallError::TimedOut { delivery });
    assert_eq!(played.events(), [ClientEvent::Reply { id: lost, result }]);
}
