//! The client's machine, frame by frame, in virtual time.

mod answers;
mod gate;
mod session;

use std::time::Duration;

use rpc_core::{CallId, Disconnect, Instant, Refused, Retry};
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::client::{CallValue, Taken};
use crate::frame::{AdminAction, AdminRequest, Input, Mode, ModeChange, SessionState, Signed};
use gate::{PING_INTERVAL, SILENCE_TIMEOUT, gate as gated, success};

const SECOND: Duration = Duration::from_secs(1);

/// A machine and its clock.
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
        json!({ "close": close.code })
    }
}

impl Played {
    fn new(config: ClientConfig) -> Self {
        let now = Instant::now();
        let signed = Signed::new(raw(r#"{"timestamp":1}"#), "0xab", "cd");
        let conn = ClientConn::new(config, &Connect::new(signed), 7, now);
        Self { conn, now }
    }

    /// Let in, with nothing left to say.
    fn ready() -> Self {
        let mut played = Self::new(ClientConfig::default());
        played.take(&connected("new"));
        played.sent();
        played.events();
        played
    }

    /// A run goes on that was started with a prompt.
    fn running() -> (Self, CallId) {
        let mut played = Self::ready();
        let id = played.input("go");
        played.take(&user_input("go", "u1"));
        played.sent();
        played.events();
        (played, id)
    }

    fn input(&mut self, prompt: &str) -> CallId {
        self.conn.input(&Input::new(prompt), self.now).unwrap()
    }

    fn lose(&mut self) -> Vec<ClientEvent> {
        self.conn.handle_disconnect(Disconnect::Eof, self.now);
        self.events()
    }

    /// The only event that waits.
    fn event(&mut self) -> ClientEvent {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    /// The event of the next frame.
    fn after(&mut self, frame: &Value) -> ClientEvent {
        self.take(frame);
        self.event()
    }

    fn wait(&mut self, time: Duration) {
        self.sleep(time);
    }
}

fn raw(json: &str) -> rpc_core::Json {
    rpc_core::Json::new(json).unwrap()
}

fn connected(status: &str) -> Value {
    json!({"type": "CONNECTED", "session_id": "s", "status": status})
}

fn user_input(prompt: &str, id: &str) -> Value {
    json!({"type": "user_input", "content": prompt, "turn": 1, "id": id, "ts": 1.5,
        "session_id": "s"})
}

fn thinking(id: &str) -> Value {
    json!({"type": "thinking", "content": "hm", "id": id, "ts": 1.5, "session_id": "s"})
}

fn output(result: &str) -> Value {
    json!({"type": "OUTPUT", "result": result, "session_id": "s", "duration_ms": 3})
}

fn error(message: &str) -> Value {
    json!({"type": "ERROR", "message": message})
}

fn ack(id: &str) -> Value {
    json!({"type": "RUNTIME_INPUT_ACK", "session_id": "s", "id": id})
}

fn taken(id: CallId, taken: Taken) -> ClientEvent {
    let result = Ok(CallValue::Input(taken));
    ClientEvent::Reply { id, result }
}

fn queued(id: CallId, name: &str) -> ClientEvent {
    taken(id, Taken::Queued { id: name.into() })
}

fn closed(events: &[ClientEvent]) -> CloseReason {
    match events.last() {
        Some(ClientEvent::Closed(reason)) => reason.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_client_is_ready_after_connect_and_its_reply() {
    let mut played = Played::new(ClientConfig::default());
    let sent = played.sent();
    assert_eq!(
        sent,
        [
            json!({"type": "CONNECT", "payload": {"timestamp": 1}, "from": "0xab", "signature": "cd"})
        ]
    );
    assert_eq!(played.conn.state(), ClientState::AwaitConnected);
    let refused = played.conn.input(&Input::new("hi"), played.now);
    assert_eq!(refused, Err(Refused::NotReady));
    let event = played.after(&connected("new"));
    assert!(matches!(event, ClientEvent::Connected(_)));
    assert_eq!(played.conn.state(), ClientState::Ready);
    assert_eq!(played.conn.session_id.as_deref(), Some("s"));
}

#[test]
fn a_prompt_becomes_a_run_and_the_output_ends_it() {
    let mut played = Played::ready();
    let id = played.input("hello");
    assert_eq!(played.sent(), [json!({"type": "INPUT", "prompt": "hello"})]);
    assert_eq!(played.conn.state(), ClientState::Running);
    played.take(&user_input("hello", "u1"));
    let events = played.events();
    assert_eq!(events[0], taken(id, Taken::Started));
    assert!(matches!(&events[1], ClientEvent::Step(step)
        if step.event.id.as_deref() == Some("u1") && step.frame.get().contains("hello")));
    let event = played.after(&output("hi"));
    assert!(matches!(event, ClientEvent::RunEnded(Ok(output)) if output.result == "hi"));
    assert_eq!(played.conn.state(), ClientState::Ready);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_run_ends_without_any_steps() {
    let mut played = Played::ready();
    let id = played.input("hello");
    played.take(&output("hi"));
    let events = played.events();
    assert_eq!(events[0], taken(id, Taken::Started));
    assert!(matches!(&events[1], ClientEvent::RunEnded(Ok(_))));
}

#[test]
fn a_prompt_during_a_run_is_acknowledged() {
    let (mut played, _) = Played::running();
    let id = played.input("and this");
    assert_eq!(played.after(&ack("r1")), queued(id, "r1"));
    assert_eq!(played.conn.state(), ClientState::Running);
    played.take(&output("both"));
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn a_late_prompt_is_refused_or_starts_the_next_run() {
    let (mut played, _) = Played::running();
    let id = played.input("late");
    let rejected = json!({"type": "ERROR", "code": "RUNTIME_INPUT_REJECTED", "message": "retry",
        "retryable": true});
    let event = played.after(&rejected);
    assert!(
        matches!(event, ClientEvent::Reply { id: of, result: Err(CallError::Remote(error)) }
        if of == id && error.retryable == Some(true))
    );
    let id = played.input("later");
    played.take(&output("done"));
    assert_eq!(
        played.conn.state(),
        ClientState::Running,
        "the host has not said"
    );
    played.take(&user_input("later", "u2"));
    assert!(played.events().contains(&taken(id, Taken::Started)));
    played.take(&output("done, too"));
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn a_prompt_joins_a_run_of_another_device() {
    let mut played = Played::ready();
    let id = played.input("hello");
    assert_eq!(played.after(&ack("r1")), queued(id, "r1"));
    played.take(&user_input("theirs", "u1"));
    assert_eq!(played.events().len(), 1);
    assert_eq!(played.conn.state(), ClientState::Running);
}

#[test]
fn an_acknowledgement_before_the_first_step_belongs_to_the_joined_prompt() {
    let mut played = Played::ready();
    let first = played.input("first");
    let second = played.input("second");
    assert_eq!(played.after(&ack("r1")), queued(second, "r1"));
    played.take(&user_input("first", "u1"));
    assert_eq!(played.events()[0], taken(first, Taken::Started));
}

#[test]
fn an_error_before_the_first_step_refuses_the_prompt() {
    let mut played = Played::ready();
    let id = played.input("with ten files too many");
    let event = played.after(&error("Too many files: 11 (max: 10)."));
    assert!(
        matches!(event, ClientEvent::Reply { id: of, result: Err(CallError::Remote(_)) }
        if of == id)
    );
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn a_client_whose_session_the_host_has_removed_connects_again() {
    let mut played = Played::ready();
    let id = played.input("hello?");
    played.input("are you there?");
    played.sent();
    played.take(&error("authenticate first (send CONNECT)"));
    let events = played.events();
    assert!(matches!(&events[0],
        ClientEvent::Reply { id: of, result: Err(CallError::Remote(_)) } if *of == id));
    assert_eq!(closed(&events).retry(), Retry::Backoff);
    assert_eq!(played.sent(), [json!({"close": 1000})]);
}

#[test]
fn a_refused_prompt_does_not_end_the_run() {
    let (mut played, _) = Played::running();
    let id = played.input("and");
    let mut words = error("the prompt was not stored: the disk is full");
    words["code"] = json!("INPUT_REFUSED");
    let event = played.after(&words);
    assert!(
        matches!(event, ClientEvent::Reply { id: of, result: Err(CallError::Remote(_)) }
        if of == id)
    );
    assert!(played.conn.run);
}

#[test]
fn an_unrelated_error_does_not_end_the_run() {
    let (mut played, _) = Played::running();
    for words in [
        "unknown message type: 'mode_change'",
        "interrupt requires an active turn",
    ] {
        let event = played.after(&error(words));
        assert!(matches!(event, ClientEvent::Complaint(_)), "{words}");
        assert_eq!(played.conn.state(), ClientState::Running);
    }
}

#[test]
fn pings_are_answered_at_once_in_every_state() {
    let mut played = Played::new(ClientConfig::default());
    played.sent();
    let ping = json!({"type": "PING"});
    let pong = json!({"type": "PONG"});
    for frame in [&gated(), &success(), &connected("running")] {
        played.take(&ping);
        assert_eq!(played.sent(), std::slice::from_ref(&pong));
        played.take(frame);
    }
    played.take(&ping);
    assert_eq!(played.sent(), [pong]);
}

#[test]
fn any_frame_counts_as_life_and_silence_disconnects() {
    let (mut played, _) = Played::running();
    for frame in [
        json!({"type": "PING"}),
        thinking("t"),
        json!({"type": "NEWS"}),
        json!([]),
    ] {
        played.wait(59 * SECOND);
        played.take(&frame);
    }
    played.sent();
    played.events();
    played.wait(59 * SECOND);
    assert!(played.events().is_empty());
    played.wait(SECOND);
    let events = played.events();
    let after = 60 * SECOND;
    assert_eq!(closed(&events), CloseReason::KeepAlive { after });
    assert_eq!(closed(&events).retry(), Retry::Backoff);
    assert_eq!(played.sent(), [json!({"close": 1001})]);
}

#[test]
fn an_open_question_suspends_timeouts() {
    let (mut played, _) = Played::running();
    for _ in 0..1000 {
        played.wait(PING_INTERVAL);
        played.take(&json!({"type": "PING"}));
        assert_eq!(played.sent().len(), 1);
    }
    assert_eq!(played.conn.state(), ClientState::Running);
}

#[test]
fn a_late_silence_timeout_gets_one_fresh_grace() {
    let mut played = Played::ready();
    played.wait(3 * SILENCE_TIMEOUT);
    assert!(!played.conn.is_closed());
    played.wait(3 * SILENCE_TIMEOUT);
    assert!(played.conn.is_closed());
}

#[test]
fn an_unanswered_connect_times_out() {
    let mut played = Played::new(ClientConfig::default());
    played.sent();
    played.wait(29 * SECOND);
    assert!(played.events().is_empty());
    played.wait(SECOND);
    let after = 30 * SECOND;
    let events = played.events();
    assert_eq!(closed(&events), CloseReason::HandshakeTimeout { after });
    assert_eq!(played.sent(), [json!({"close": 1000})]);
}

#[test]
fn a_connect_that_cannot_be_sent_ends_the_connection_in_order() {
    let now = Instant::now();
    let connect = Connect::new(Signed::none());
    let config = ClientConfig {
        max_sent_bytes: 10,
        ..ClientConfig::default()
    };
    for conn in [
        ClientConn::new(config.clone(), &connect, 7, now),
        ClientConn::without_connect(Arc::new(config), "no key", now),
    ] {
        let mut played = Played { conn, now };
        assert_eq!(played.sent(), [json!({"close": 1000})]);
        let reason = closed(&played.events());
        assert!(matches!(
            reason,
            CloseReason::Refused {
                retryable: false,
                ..
            }
        ));
    }
}

#[test]
fn a_refused_connect_ends_the_connection_with_the_reason() {
    let mut played = Played::new(ClientConfig::default());
    played.take(&error("unauthorized: invalid signature"));
    let events = played.events();
    assert!(matches!(&events[0], ClientEvent::Refused(_)));
    assert_eq!(closed(&events).retry(), Retry::Never);
    let mut played = Played::new(ClientConfig::default());
    played.take(&error("unauthorized: this CONNECT was already used"));
    assert_eq!(closed(&played.events()).retry(), Retry::Backoff);
}

#[test]
fn a_running_session_is_resumed() {
    for word in ["running", "executing"] {
        let mut played = Played::new(ClientConfig::default());
        played.take(&connected(word));
        assert_eq!(played.conn.state(), ClientState::Running, "{word}");
        played.take(&thinking("t"));
        played.take(&output("done"));
        assert_eq!(played.conn.state(), ClientState::Ready);
    }
    let mut played = Played::new(ClientConfig::default());
    played.take(&connected("suspended"));
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn queries_have_a_timeout_and_a_reply() {
    let mut played = Played::ready();
    let asked = played.conn.query("s", played.now).unwrap();
    assert_eq!(
        played.sent(),
        [json!({"type": "SESSION_STATUS", "session": {"session_id": "s"}})]
    );
    let status = json!({"type": "SESSION_STATUS", "session_id": "s", "status": "running"});
    let event = played.after(&status);
    assert!(
        matches!(event, ClientEvent::Reply { id, result: Ok(CallValue::Status(status)) }
        if id == asked && status.status == SessionState::Running)
    );
    let request = AdminRequest::new(AdminAction::GetLevel, Signed::none());
    let asked = played.conn.admin(&request, played.now).unwrap();
    let event = played.after(&error("forbidden: admin only"));
    assert!(
        matches!(event, ClientEvent::Reply { id, result: Err(CallError::Remote(_)) }
        if id == asked)
    );
    let asked = played.conn.query("s", played.now).unwrap();
    played.take(&json!({"type": "PING"}));
    played.wait(30 * SECOND);
    assert!(
        matches!(played.event(), ClientEvent::Reply { id, result: Err(CallError::TimedOut { .. }) }
        if id == asked)
    );
}

#[test]
fn replies_to_dropped_queries_are_discarded() {
    let (mut played, _) = Played::running();
    let first = played.input("first");
    let second = played.input("second");
    assert!(played.conn.cancel(first));
    played.take(&ack("r1"));
    assert_eq!(played.events(), []);
    assert_eq!(played.after(&ack("r2")), queued(second, "r2"));
    assert!(!played.conn.cancel(second));
}

#[test]
fn modes_goals_and_interrupts_are_encoded_as_specified() {
    let (mut played, _) = Played::running();
    let mut change = ModeChange::new(Mode::Ulw);
    change.turns = Some(5);
    played.conn.set_mode(&change, played.now).unwrap();
    let goal = crate::frame::PromptUpdate::new("better");
    played.conn.update_prompt(&goal, played.now).unwrap();
    played.conn.interrupt(played.now).unwrap();
    assert_eq!(
        played.sent(),
        [
            json!({"type": "mode_change", "mode": "ulw", "turns": 5}),
            json!({"type": "prompt_update", "prompt": "better"}),
            json!({"type": "INTERRUPT"}),
        ]
    );
}

#[test]
fn an_empty_prompt_and_one_that_is_too_large_are_refused_at_once() {
    let mut played = Played::new(ClientConfig {
        max_sent_bytes: 500,
        ..ClientConfig::default()
    });
    played.take(&connected("new"));
    let refused = played.conn.input(&Input::new(""), played.now);
    assert!(matches!(
        refused,
        Err(Refused::Invalid { what: "prompt", .. })
    ));
    let large = Input::new("x".repeat(500));
    let refused = played.conn.input(&large, played.now);
    assert!(matches!(refused, Err(Refused::TooLarge { max: 500, .. })));
    assert_eq!(played.conn.state(), ClientState::Ready);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_mode_change_between_runs_starts_none() {
    let mut played = Played::ready();
    let changed = json!({"type": "mode_changed", "mode": "plan", "id": "m", "ts": 1.0});
    assert!(matches!(played.after(&changed), ClientEvent::Step(_)));
    assert_eq!(played.conn.state(), ClientState::Ready);
}

#[test]
fn conversations_after_every_step_can_be_left_out() {
    let mut played = Played::new(ClientConfig {
        session_sync: false,
        ..ClientConfig::default()
    });
    played.take(&connected("running"));
    played.events();
    played.take(&json!({"type": "session_sync", "session": {}, "id": "y", "ts": 1.0}));
    assert_eq!(played.events(), []);
}

#[test]
fn unexpected_frames_are_warnings() {
    let mut played = Played::ready();
    for frame in [
        connected("new"),
        gated(),
        ack("r"),
        success(),
        json!([]),
        json!({"type": 7}),
    ] {
        let event = played.after(&frame);
        assert!(matches!(event, ClientEvent::Warning(_)), "{frame}");
    }
    played
        .conn
        .handle_message(Incoming::Binary(b"{}"), played.now);
    assert!(matches!(
        played.event(),
        ClientEvent::Warning(Warning::BadFrame(_))
    ));
    let news = json!({"type": "AGENT_PROFILE", "name": "x"});
    let event = played.after(&news);
    assert!(matches!(event, ClientEvent::Unknown { tag, .. } if tag == "AGENT_PROFILE"));
    assert_eq!(played.conn.state(), ClientState::Ready);
}
