//! A session over several connections, in virtual time: what goes on, what is told once, what is sent
//! again.

use rpc_core::{CallId, Refused};
use serde_json::json;
use switchboard_testing::play::Play as _;

use super::super::*;
use super::{Played, Value, connected, output, queued, raw, user_input};
use crate::client::{ClientSession, Resume};
use crate::frame::{Answer, ErrorFrame, Input, Output, Response, Signed};
use crate::merge::turn_of;

/// A session and its connection.
struct Harness {
    session: ClientSession,
    line: Played,
}

impl Harness {
    fn resuming(resume: Resume) -> Self {
        let session = ClientSession::new(ClientConfig::default(), resume);
        let line = Played::new(ClientConfig::default());
        let mut played = Self { session, line };
        played.connect();
        played
    }

    /// Let in, with nothing left to say.
    fn ready() -> Self {
        let mut played = Self::resuming(Resume::default());
        played.take(&connected("new"));
        played
    }

    /// A run goes on that has asked a question, which was answered.
    fn asked() -> Self {
        let mut played = Self::ready();
        played.input("go");
        let events = played.recv(&[user_input("go", "u"), question("q")]);
        assert_eq!(events, ["started", "user_input u", "ask_user q"]);
        played.answer("q");
        assert_eq!(played.sent(), [answer("q")]);
        played
    }

    /// Opens the next connection, and returns its CONNECT.
    fn connect(&mut self) -> Value {
        let connect = self.session.connect(Signed::none());
        self.line.conn = ClientConn::new(ClientConfig::default(), &connect, 7, self.line.now);
        self.line.sent().remove(0)
    }

    /// Loses the connection, opens the next one, and has it admitted.
    fn back(&mut self, frame: &Value) -> (Value, Vec<String>) {
        self.lose();
        let connect = self.connect();
        (connect, self.take(frame))
    }

    fn lose(&mut self) {
        self.line
            .conn
            .handle_disconnect(Disconnect::Eof, self.line.now);
        assert_eq!(self.events(), ["closed"]);
    }

    fn input(&mut self, prompt: &str) -> CallId {
        let input = Input::new(prompt);
        let id = self
            .session
            .input(&mut self.line.conn, &input, self.line.now);
        self.line.sent();
        id.unwrap()
    }

    fn answer(&mut self, id: &str) {
        let answer = Response::new(id, Answer::AskUser(raw("\"a\"")));
        self.session.respond(answer).unwrap();
        assert_eq!(self.events(), Vec::<String>::new());
    }

    fn take(&mut self, frame: &Value) -> Vec<String> {
        self.line.take(frame);
        self.events()
    }

    fn recv(&mut self, frames: &[Value]) -> Vec<String> {
        frames.iter().flat_map(|frame| self.take(frame)).collect()
    }

    fn events(&mut self) -> Vec<String> {
        for event in self.line.events() {
            self.session.handle_event(event);
        }
        self.session
            .send_answers(&mut self.line.conn, self.line.now);
        let mut names = Vec::new();
        while let Some(event) = self.session.poll_event() {
            if let ClientEvent::Step(step) = &event {
                self.session.mark_delivered(step);
            }
            names.push(name(&event));
        }
        names
    }

    /// What has left, but queries that are receipts.
    fn sent(&mut self) -> Vec<Value> {
        let mut sent = self.line.sent();
        sent.retain(|frame| frame["type"] != "SESSION_STATUS");
        sent
    }
}

/// An event in a few words.
fn name(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Connected(frame) => format!("connected {}", frame.status.name()),
        ClientEvent::Step(step) => {
            let kind = step.event.kind.tag();
            let id = step.event.id.as_deref().unwrap_or_default();
            let note = if step.answered { ", answered" } else { "" };
            format!("{kind} {id}{note}")
        }
        ClientEvent::Reply {
            result: Ok(CallValue::Input(Taken::Started)),
            ..
        } => "started".to_owned(),
        ClientEvent::Reply { result: Ok(_), .. } => "queued".to_owned(),
        ClientEvent::RunEnded(end) => ended(end),
        ClientEvent::Closed(_) => "closed".to_owned(),
        other => format!("{other:?}"),
    }
}

fn ended(end: &Result<Output, CallError<ErrorFrame>>) -> String {
    match end {
        Ok(output) => format!("output {}", output.result),
        Err(CallError::Refused(refused)) => format!("{refused:?}"),
        Err(error) => format!("{:?}", error.delivery()),
    }
}

fn question(id: &str) -> Value {
    json!({"type": "ask_user", "question": "Which?", "id": id, "ts": 1.5})
}

fn answer(id: &str) -> Value {
    json!({"type": "ASK_USER_RESPONSE", "answer": "a", "request_id": id})
}

/// A CONNECTED with the host's conversation.
fn newer(messages: &Value) -> Value {
    let mut frame = connected("connected");
    frame["server_newer"] = json!(true);
    frame["session"] = json!({"turn": 1, "messages": messages});
    frame
}

fn bound() -> Value {
    let mut frame = connected("running");
    frame["bound_answers"] = json!(true);
    frame
}

#[test]
fn the_connect_has_the_last_known_position() {
    let mut resume = Resume {
        session_id: Some("s".into()),
        ..Resume::default()
    };
    let mut played = Harness::resuming(resume.clone());
    let connect = played.connect();
    assert_eq!(connect, json!({"type": "CONNECT", "session_id": "s"}));
    resume.last_msg_id = Some("ev-1".into());
    resume.session = Some(raw(r#"{"turn":3,"iteration":2}"#));
    played.session = ClientSession::new(ClientConfig::default(), resume);
    let connect = played.connect();
    assert_eq!(connect["last_msg_id"], "ev-1");
    assert_eq!(connect["session"], json!({"turn": 3, "iteration": 2}));
    // The host may have a run, and then its conversation is the newer one.
    played.session.attach();
    assert_eq!(played.connect()["session"]["iteration"], 0);
    played.session.renew(true);
    let connect = played.connect();
    assert_eq!(connect.get("session_id"), None);
    assert_eq!(connect["session"]["turn"], 3);
    played.session.renew(false);
    assert_eq!(played.connect(), json!({"type": "CONNECT"}));
}

#[test]
fn a_conversation_with_fewer_turns_replaces_none() {
    let mut played = Harness::ready();
    let turn_of = |played: &Harness| turn_of(played.session.resume().session.as_ref()?);
    for (turn, kept) in [(7, 7), (2, 7), (8, 8)] {
        played.input("go");
        let mut frame = output("hi");
        frame["session"] = json!({"turn": turn});
        played.recv(&[user_input("go", "u"), frame]);
        assert_eq!(turn_of(&played), Some(kept));
    }
    let (_, events) = played.back(&newer(&json!([])));
    assert_eq!(events, ["connected connected"]);
    assert_eq!(turn_of(&played), Some(8));
}

#[test]
fn an_unsent_prompt_is_reported_as_not_sent() {
    let mut played = Harness::ready();
    let input = Input::new("go");
    let now = played.line.now;
    played
        .session
        .input(&mut played.line.conn, &input, now)
        .unwrap();
    let (_, events) = played.back(&connected("connected"));
    assert_eq!(events, ["connected connected", "NotSent"]);
}

#[test]
fn a_prompt_that_joins_a_run_ends_with_it() {
    let mut played = Harness::ready();
    let id = played.input("mine");
    played.line.take(&super::ack("r"));
    let events = played.line.events();
    assert_eq!(events, [queued(id, "r")]);
    played.session.handle_event(queued(id, "r"));
    assert!(played.session.poll_event().is_some());
    let theirs =
        json!([{"role": "user", "content": "mine"}, {"role": "assistant", "content": "x"}]);
    let (_, events) = played.back(&newer(&theirs));
    assert_eq!(events[1..], ["Delivered"]);
}

#[test]
fn open_work_ends_with_the_last_connection() {
    let mut played = Harness::asked();
    played.lose();
    played.session.end(&CloseReason::Lost);
    assert_eq!(played.events(), ["Delivered"]);
    let mut played = Harness::asked();
    played.lose();
    played.connect();
    let refused = played.take(&super::error("unauthorized: invalid signature"));
    assert_eq!(refused[1..], ["Delivered", "closed"]);
}

#[test]
fn an_answer_without_a_connection_waits_for_the_next_one() {
    let mut played = Harness::ready();
    played.input("go");
    played.recv(&[user_input("go", "u"), question("q")]);
    played.lose();
    played.answer("q");
    played.connect();
    played.take(&bound());
    assert_eq!(played.sent(), [answer("q")]);
    // Its run is over by then.
    let mut played = Harness::asked();
    played.lose();
    played.answer("q");
    played.connect();
    played.take(&connected("connected"));
    assert_eq!(played.sent(), [] as [Value; 0]);
}

#[test]
fn a_host_with_bound_answers_may_refuse_a_second_one() {
    let mut played = Harness::asked();
    played.back(&bound());
    assert_eq!(played.sent(), [answer("q")]);
    let stale = json!({"type": "ERROR", "code": "STALE_ANSWER", "message": "m", "request_id": "q"});
    assert_eq!(played.take(&stale), [] as [&str; 0]);
    assert_eq!(played.take(&stale).len(), 1, "only the second one is told");
}

#[test]
fn an_answer_that_is_too_large_is_refused_at_once() {
    let config = ClientConfig {
        max_sent_bytes: 100,
        ..ClientConfig::default()
    };
    let mut session = ClientSession::new(config, Resume::default());
    let answer = Response::new("q", Answer::PlanReview("x".repeat(100).into()));
    let refused = session.respond(answer);
    assert!(matches!(refused, Err(Refused::TooLarge { max: 100, .. })));
}

#[test]
fn debug_output_of_a_session_shows_no_contents() {
    let mut played = Harness::ready();
    played.input("s3cret");
    assert!(!format!("{:?}", played.session).contains("s3cret"));
}
