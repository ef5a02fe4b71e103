//! Tests of [`ClientConn`] with a server that is played by hand.

mod aborts;
mod malformed;
mod timeouts;

use std::fmt;
use std::time::Duration;

use rpc_core::keepalive::KeepAlive;
use rpc_core::{Limits, Refused};
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::error::RpcError;
use crate::event::{Event, ToolResult, Usage};
use crate::frame::ChatRequest;
use crate::id::{RpcId, TaskId};
use crate::task::TaskState;

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
    fn with(config: ClientConfig) -> Self {
        let now = Instant::now();
        let mut conn = ClientConn::new(config, 7, now);
        assert_eq!(conn.poll_event(), Some(ClientEvent::Ready));
        Self { conn, now }
    }

    fn new() -> Self {
        Self::with(quiet())
    }

    /// The server answers `id` with these members.
    fn send(&mut self, id: impl fmt::Display, mut members: Value) {
        members["id"] = json!(format!("{id}"));
        self.take(&members.to_string());
    }

    fn event(&mut self, id: CallId, event: &Value) {
        self.send(id, json!({"type": "chat.event", "event": event}));
    }

    fn done(&mut self, id: CallId) {
        let reply = json!({"output": "fine", "outputStreamed": true, "model": "m"});
        self.send(id, json!({"type": "chat.done", "reply": reply}));
    }

    /// What came of the only chat.
    fn updates(&mut self) -> Vec<ChatUpdate> {
        let update = |event| match event {
            ClientEvent::Chat { update, .. } => update,
            other => panic!("{other:?}"),
        };
        self.events().into_iter().map(update).collect()
    }

    fn chat(&mut self) -> CallId {
        let request = ChatRequest::new("hi", "m");
        let id = self.conn.chat(&request, self.now).unwrap();
        assert!(!self.sent().is_empty());
        id
    }

    /// The last that is told is that a chat timed out.
    #[track_caller]
    fn times_out(&mut self) {
        let updates = self.updates();
        assert!(
            matches!(ended(updates.last()), Outcome::TimedOut { .. }),
            "{updates:?}"
        );
    }
}

/// No pings, so that silence ends nothing by itself.
fn quiet() -> ClientConfig {
    ClientConfig {
        keep_alive: KeepAlive::off(),
        ..ClientConfig::default()
    }
}

fn ended(update: Option<&ChatUpdate>) -> &Outcome {
    match update {
        Some(ChatUpdate::Ended(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chat_yields_its_steps_and_ends_once() {
    let mut played = Played::new();
    let id = played.chat();
    played.send(id, json!({"type": "chat.accepted", "taskId": "task_a"}));
    played.send(id, json!({"type": "chat.queued", "position": 2}));
    played.send(id, json!({"type": "chat.queued", "position": 1}));
    played.send(id, json!({"type": "chat.started"}));
    played.event(id, &json!({"type": "text-delta", "text": "fine"}));
    played.done(id);
    played.done(id);
    let updates = played.updates();
    let task_id = "task_a".parse::<TaskId>().unwrap();
    assert_eq!(
        updates[..5],
        [
            ChatUpdate::Accepted { task_id },
            ChatUpdate::Queued { position: 2 },
            ChatUpdate::Queued { position: 1 },
            ChatUpdate::Started,
            ChatUpdate::Event(Event::text("fine")),
        ]
    );
    let reply = ended(updates.get(5)).reply().unwrap();
    assert_eq!(reply.output, "fine");
    assert_eq!((updates.len(), played.conn.stray_frames()), (6, 1));
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn requests_are_encoded_as_specified() {
    let mut played = Played::new();
    let request = ChatRequest {
        workspace: Some("/w".into()),
        ..ChatRequest::new("hi", "m")
    };
    let chat = played.conn.chat(&request, played.now).unwrap();
    let abort = played.conn.abort(chat, played.now).unwrap();
    let status = played.conn.status(played.now).unwrap();
    let task_id = "task_a".parse::<TaskId>().unwrap();
    let task = played.conn.task_status(&task_id, played.now).unwrap();
    let text = |id: CallId| id.to_string();
    let payload = json!({"request": {
        "message": "hi", "history": [], "model": "m", "workspace": "/w"
    }});
    assert_eq!(
        played.sent(),
        [
            json!({"id": text(chat), "type": "chat.start", "payload": payload}),
            json!({"id": text(abort), "type": "chat.abort", "payload": {"requestId": text(chat)}}),
            json!({"id": text(status), "type": "status.get"}),
            json!({"id": text(task), "type": "task.status", "payload": {"taskId": "task_a"}}),
        ]
    );
    assert!(
        text(chat)
            .parse::<RpcId>()
            .is_ok_and(|id| id == RpcId::from(chat))
    );
}

#[test]
fn an_invalid_request_is_refused_locally() {
    let mut played = Played::new();
    let request = ChatRequest::new("\u{1f600}".repeat(50_001), "m");
    let refused = played.conn.chat(&request, played.now);
    assert!(
        matches!(refused, Err(Refused::Invalid { .. })),
        "{refused:?}"
    );
    assert_eq!((played.sent().len(), played.conn.in_flight()), (0, 0));
}

#[test]
fn calls_return_typed_replies() {
    let mut played = Played::new();
    let status = played.conn.status(played.now).unwrap();
    let task_id = "task_a".parse::<TaskId>().unwrap();
    let known = played.conn.task_status(&task_id, played.now).unwrap();
    let unknown = played.conn.task_status(&task_id, played.now).unwrap();
    played.send(
        status,
        json!({"type": "status.result", "status": {
            "ok": true, "providers": ["openai"], "model": "m", "protocol_version": "1",
            "capabilities": "stream.sse", "service": "s",
            "tasks_total": 1, "tasks_running": 0, "rpc_queue_length": 0,
        }}),
    );
    let time = "2026-11-21T20:31:08.236Z";
    played.send(
        known,
        json!({"type": "task.status.result", "task": {
            "id": "task_a", "state": "running", "createdAt": time, "updatedAt": time,
        }}),
    );
    played.send(unknown, json!({"type": "task.status.result", "task": null}));
    let events = played.events();
    let [
        ClientEvent::Reply {
            result: Ok(CallValue::Status(status)),
            ..
        },
        ClientEvent::Reply {
            result: Ok(CallValue::Task(Some(task))),
            ..
        },
        ClientEvent::Reply {
            result: Ok(CallValue::Task(None)),
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((&*status.model, task.state), ("m", TaskState::Running));
}

#[test]
fn a_failed_model_is_an_error() {
    let mut played = Played::new();
    let id = played.chat();
    let reply = json!({"output": "", "outputStreamed": false, "model": "m", "error": "500"});
    played.send(id, json!({"type": "chat.done", "reply": reply}));
    let updates = played.updates();
    let outcome = ended(updates.first());
    assert!(
        matches!(outcome, Outcome::Failed(Failure::Model(reply)) if reply.error.as_deref() == Some("500")),
        "{outcome:?}"
    );
    assert!(!outcome.is_done() && outcome.reply().is_none());
    assert_eq!(outcome.to_string(), "failed: 500");
}

#[test]
fn a_server_error_keeps_all_its_details() {
    let mut played = Played::new();
    let id = played.chat();
    played.send(
        id,
        json!({"type": "chat.error", "errorMessage": "boom", "errorId": "err_a",
            "errorCode": "E_X", "error": {"kind": "unknown", "tool": "t"}}),
    );
    let updates = played.updates();
    let Outcome::Failed(Failure::Server(error)) = ended(updates.first()) else {
        panic!("{updates:?}")
    };
    assert_eq!(
        (&*error.message, error.code.as_deref()),
        ("boom", Some("E_X"))
    );
    assert_eq!(error.detail.as_ref().unwrap().tool.as_deref(), Some("t"));
}

#[test]
fn a_refused_start_was_not_run() {
    let mut played = Played::new();
    let id = played.chat();
    let error = "RPC queue is full (25 queued). Try again shortly.";
    played.send(id, json!({"type": "error", "error": error}));
    let updates = played.updates();
    let Outcome::Refused { error: refused } = ended(updates.first()) else {
        panic!("{updates:?}")
    };
    assert_eq!(refused.message(), error);
}

#[test]
fn an_error_after_acceptance_fails_the_chat() {
    let mut played = Played::new();
    let id = played.chat();
    played.send(id, json!({"type": "chat.started"}));
    played.send(id, json!({"type": "error", "error": "what?"}));
    let updates = played.updates();
    let outcome = ended(updates.last());
    assert!(
        matches!(outcome, Outcome::Failed(Failure::Server(error)) if error.message == "what?"),
        "{outcome:?}"
    );
}

#[test]
fn an_error_without_an_id_answers_the_oldest_pending_request() {
    let mut played = Played::new();
    let answered = played.chat();
    played.send(answered, json!({"type": "chat.started"}));
    let status = played.conn.status(played.now).unwrap();
    let chat = played.chat();
    played.events();
    for _ in 0..3 {
        played.send(
            "rpc_unknown",
            json!({"type": "error", "error": "Invalid RPC message"}),
        );
    }
    let events = played.events();
    let [
        ClientEvent::Reply {
            id: first,
            result: Err(CallError::Remote(_)),
        },
        ClientEvent::Chat {
            id: second,
            update: ChatUpdate::Ended(Outcome::Refused { .. }),
        },
        ClientEvent::ServerError(_),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*first, *second), (status, chat));
    assert_eq!(played.conn.in_flight(), 1);
}

#[test]
fn a_result_without_its_call_is_reported_and_delivered() {
    let mut played = Played::new();
    let id = played.chat();
    let result = |id: &str| json!({"type": "tool-result", "toolCallId": id, "toolName": "t"});
    played.event(id, &result("a"));
    played.event(
        id,
        &json!({"type": "tool-call", "toolCallId": "b", "toolName": "t", "args": {}}),
    );
    played.event(id, &result("b"));
    let updates = played.updates();
    let warning = Warning::ToolWithoutCall {
        tool_call_id: "a".into(),
    };
    assert_eq!(updates[0], ChatUpdate::Warning(warning));
    assert_eq!(
        updates[1],
        ChatUpdate::Event(Event::ToolResult(ToolResult::ok("a", "t")))
    );
    assert_eq!(updates.len(), 4);
}

#[test]
fn an_output_without_its_call_has_its_own_warning() {
    let mut played = Played::new();
    let id = played.chat();
    let content = json!({"kind": "text", "text": "lost"});
    played.event(
        id,
        &json!({"type": "tool-output", "toolCallId": "a", "toolName": "t", "content": content}),
    );
    let updates = played.updates();
    let ChatUpdate::Warning(warning) = &updates[0] else {
        panic!("{updates:?}");
    };
    assert!(warning.to_string().contains("output"), "{warning}");
    assert_eq!(updates.len(), 2);
}

#[test]
fn an_error_event_does_not_end_a_chat() {
    let mut played = Played::new();
    let id = played.chat();
    played.event(id, &json!({"type": "error", "errorMessage": "in stream"}));
    played.send(
        id,
        json!({"type": "chat.error", "errorMessage": "terminal"}),
    );
    let updates = played.updates();
    assert!(
        matches!(&updates[0], ChatUpdate::Event(Event::Error(_))),
        "{updates:?}"
    );
    assert!(matches!(
        ended(updates.get(1)),
        Outcome::Failed(Failure::Server(_))
    ));
}

#[test]
fn usage_is_reported_as_received_and_never_summed() {
    let mut played = Played::new();
    let id = played.chat();
    for input in [3126, 11, 3126, 22] {
        played.event(
            id,
            &json!({"type": "usage", "inputTokens": input, "outputTokens": 7}),
        );
    }
    let reported = played
        .updates()
        .into_iter()
        .filter_map(|update| match update {
            ChatUpdate::Event(Event::Usage(usage)) => Some(usage),
            _ => None,
        });
    let expected = [3126, 11, 3126, 22].map(|input| Usage::new(input, 7));
    assert!(reported.eq(expected));
    let usage = json!({"inputTokens": 3307, "outputTokens": 14, "totalTokens": 3321});
    let reply = json!({"output": "o", "outputStreamed": true, "model": "m", "usage": usage});
    played.send(id, json!({"type": "chat.done", "reply": reply}));
    let updates = played.updates();
    let reply = ended(updates.last()).reply().unwrap();
    let usage = reply.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (3307, 14));
}

#[test]
fn a_checklist_is_recognized_by_either_name() {
    let mut played = Played::new();
    let id = played.chat();
    for name in ["checklist", "tasklist"] {
        played.event(
            id,
            &json!({"type": name, "groupId": "g", "groupTitle": "t", "items": []}),
        );
    }
    for update in played.updates() {
        assert!(
            matches!(&update, ChatUpdate::Event(event) if event.checklist().is_some()),
            "{update:?}"
        );
    }
}

#[test]
fn a_full_table_or_outbox_refuses_without_side_effects() {
    let limits = Limits {
        max_pending: 1,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    played.chat();
    let refused = played.conn.status(played.now);
    assert_eq!(refused, Err(Refused::TooManyCalls { max: 1 }));
    let limits = Limits {
        max_outbox_frames: 1,
        ..Limits::default()
    };
    let mut played = Played::with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    played.conn.status(played.now).unwrap();
    assert_eq!(played.conn.status(played.now), Err(Refused::QueueFull));
    assert_eq!(played.conn.in_flight(), 1);
}

#[test]
fn binary_messages_that_hold_text_are_decoded() {
    let mut played = Played::new();
    let id = played.chat();
    let text = format!(r#"{{"id":"{id}","type":"chat.started"}}"#);
    let now = played.now;
    played
        .conn
        .handle_message(Incoming::Binary(text.as_bytes()), now);
    played.conn.handle_message(Incoming::Binary(b"\xff"), now);
    let events = played.events();
    assert!(
        matches!(
            &events[..],
            [
                ClientEvent::Chat {
                    update: ChatUpdate::Started,
                    ..
                },
                ClientEvent::Warning(Warning::BadFrame(_)),
            ]
        ),
        "{events:?}"
    );
}
