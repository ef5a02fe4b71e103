//! Tests of [`ServerConn`] with a client that is played by hand.

mod bounds;

use std::time::Duration;

use rpc_core::Limits;
use serde_json::{Value, json};
use switchboard_testing::play::Play;

use super::*;
use crate::event::{Checklist, ChecklistTag, Event, Part, ToolCall, ToolOutput, ToolResult};
use crate::frame::{Reply, Status};
use crate::limits::ABORT_GRACE;
use crate::task::Task;

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

fn rpc(id: &str) -> RpcId {
    format!("rpc_{id}").parse::<RpcId>().unwrap()
}

fn start(id: &str) -> String {
    let request = json!({"message": id, "history": [], "model": "m"});
    json!({"id": rpc(id), "type": "chat.start", "payload": {"request": request}}).to_string()
}

fn abort(id: &str, request_id: &str) -> String {
    let payload = json!({"requestId": rpc(request_id)});
    json!({"id": rpc(id), "type": "chat.abort", "payload": payload}).to_string()
}

fn reply() -> Reply {
    Reply {
        output_streamed: Some(true),
        ..Reply::new("hi", "m")
    }
}

/// A frame in short: its id, its type and what matters of it.
fn short(text: &str) -> String {
    let frame: Value = serde_json::from_str(text).unwrap();
    let id = frame["id"].as_str().unwrap().trim_start_matches("rpc_");
    let kind = frame["type"].as_str().unwrap();
    let kind = kind.trim_start_matches("chat.");
    match kind {
        "queued" => format!("{id} queued {}", frame["position"]),
        "error" if frame["errorCode"].is_string() => {
            format!("{id} error {}", frame["errorCode"].as_str().unwrap())
        }
        "error" => format!("{id} refused"),
        "abort.result" => format!(
            "{id} abort {} {}",
            frame["requestId"].as_str().unwrap(),
            frame["aborted"]
        ),
        "event" => format!("{id} event {}", frame["event"]["type"].as_str().unwrap()),
        kind => format!("{id} {kind}"),
    }
}

impl Played {
    fn with(config: ServerConfig) -> Self {
        let now = Instant::now();
        let conn = ServerConn::new(config, 7, now);
        Self { conn, now }
    }

    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    fn start(&mut self, ids: &[&str]) {
        for id in ids {
            self.take(&start(id));
        }
        self.sent();
        self.events();
    }

    fn sent(&mut self) -> Vec<String> {
        self.sent_texts()
    }

    fn short(&mut self) -> Vec<String> {
        self.sent().iter().map(|text| short(text)).collect()
    }

    fn answer(&mut self, text: &str) -> Vec<String> {
        self.take(text);
        self.short()
    }

    /// The events in short, without those of tasks.
    fn orders(&mut self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter_map(|event| match event {
                ServerEvent::Task { .. } => None,
                ServerEvent::Start { id, .. } => Some(format!("start {id}")),
                ServerEvent::Abort { id } => Some(format!("abort {id}")),
                ServerEvent::GivenUp { id } => Some(format!("given up {id}")),
                other => Some(format!("{other:?}")),
            })
            .collect()
    }

    fn states(&mut self) -> Vec<TaskState> {
        let events = self.events().into_iter();
        events
            .filter_map(|event| match event {
                ServerEvent::Task { state, .. } => Some(state),
                _ => None,
            })
            .collect()
    }

    fn closed(&mut self) -> Option<CloseReason> {
        self.events().into_iter().find_map(|event| match event {
            ServerEvent::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    fn wait(&mut self, time: Duration) {
        self.sleep(time);
    }
}

#[test]
fn a_chat_is_accepted_started_streamed_and_done() {
    let mut played = Played::new();
    assert_eq!(played.answer(&start("a")), ["a accepted", "a started"]);
    assert_eq!(played.orders(), ["start rpc_a"]);
    let id = rpc("a");
    played.conn.event(&id, &Event::text("hé\"")).unwrap();
    let step = r#"{"id":"rpc_a","type":"chat.event","event":{"type":"text-delta","text":"hé\""}}"#;
    assert_eq!(played.sent(), [step]);
    played.conn.done(&id, &reply()).unwrap();
    assert_eq!(played.short(), ["a done"]);
    assert_eq!(played.states(), [TaskState::Completed]);
    assert_eq!(played.conn.done(&id, &reply()), Err(Refused::UnknownId));
}

#[test]
fn tool_output_is_refused_before_its_call() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    let call = Event::ToolCall(ToolCall::new("c", "t", rpc_core::Json::EMPTY_OBJECT));
    let steps = [
        Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput)),
        Event::ToolResult(ToolResult::ok("c", "t")),
    ];
    // A call of an earlier chat does not count either.
    for id in [rpc("a"), rpc("b")] {
        for step in &steps {
            let refused = played.conn.event(&id, step);
            assert!(
                matches!(refused, Err(Refused::Invalid { what: "event", .. })),
                "{refused:?}"
            );
        }
        assert!(played.sent().is_empty());
        played.conn.event(&id, &call).unwrap();
        for step in &steps {
            played.conn.event(&id, step).unwrap();
        }
        assert_eq!(played.sent().len(), 3);
        played.conn.done(&id, &reply()).unwrap();
        played.sent();
    }
}

#[test]
fn a_task_keeps_its_id_through_its_states() {
    let mut played = Played::new();
    played.take(&start("a"));
    let frame: Value = serde_json::from_str(&played.sent()[0]).unwrap();
    let events = played.events();
    let ServerEvent::Start {
        task_id, request, ..
    } = &events[2]
    else {
        panic!("{events:?}");
    };
    assert_eq!(frame["taskId"], task_id.as_str());
    assert_eq!(request.message, "a");
    let state = |state| ServerEvent::Task {
        task_id: task_id.clone(),
        state,
    };
    assert_eq!(
        events[..2],
        [state(TaskState::Accepted), state(TaskState::Running)]
    );
}

#[test]
fn queued_chats_learn_their_position_when_it_changes() {
    let mut played = Played::new();
    played.start(&["a"]);
    assert_eq!(played.answer(&start("b")), ["b accepted", "b queued 1"]);
    assert_eq!(played.answer(&start("c")), ["c accepted", "c queued 2"]);
    assert_eq!(played.answer(&start("d")), ["d accepted", "d queued 3"]);
    assert_eq!(
        played.answer(&abort("x", "c")),
        [
            "c error E_ABORTED",
            "b queued 1",
            "d queued 2",
            "x abort rpc_c true"
        ]
    );
    assert!(played.orders().is_empty());
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.short(), ["a done", "d queued 1", "b started"]);
    assert_eq!(played.orders(), ["start rpc_b"]);
    played
        .conn
        .fail(&rpc("b"), &AppError::failed("no"))
        .unwrap();
    assert_eq!(played.short(), ["b error E_UNKNOWN", "d started"]);
}

#[test]
fn a_full_queue_and_ids_in_use_are_refused_without_side_effects() {
    let mut played = Played::with(ServerConfig {
        max_queued: 1,
        ..ServerConfig::default()
    });
    played.start(&["a", "b"]);
    played.take(&start("c"));
    played.take(&start("a"));
    played.take(&start("b"));
    assert_eq!(
        played.sent(),
        [
            r#"{"id":"rpc_c","type":"error","error":"RPC queue is full (1 queued). Try again shortly."}"#,
            r#"{"id":"rpc_a","type":"error","error":"Chat request already running for id: rpc_a"}"#,
            r#"{"id":"rpc_b","type":"error","error":"Chat request already running for id: rpc_b"}"#,
        ]
    );
    assert!(played.events().is_empty());
}

#[test]
fn an_aborted_chat_ends_at_once_and_the_next_starts_when_its_work_has_stopped() {
    let mut played = Played::new();
    played.start(&["a", "b", "c"]);
    assert_eq!(
        played.answer(&abort("x", "a")),
        ["a error E_ABORTED", "x abort rpc_a true"]
    );
    assert_eq!(played.orders(), ["abort rpc_a"]);
    let event = Event::text("late");
    assert_eq!(
        played.conn.event(&rpc("a"), &event),
        Err(Refused::UnknownId)
    );
    assert_eq!(played.answer(&abort("y", "a")), ["y abort rpc_a true"]);
    assert!(played.orders().is_empty());
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.short(), ["c queued 1", "b started"]);
    assert_eq!(played.orders(), ["start rpc_b"]);
    assert_eq!(played.answer(&abort("z", "a")), ["z abort rpc_a false"]);
}

#[test]
fn work_that_does_not_stop_in_time_is_abandoned() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.take(&abort("x", "a"));
    assert_eq!(played.states(), [TaskState::Cancelled]);
    played.sent();
    played.wait(Duration::from_millis(249));
    assert!(played.sent().is_empty());
    played.wait(Duration::from_millis(1));
    assert_eq!(played.short(), ["b started"]);
    assert_eq!(played.orders(), ["given up rpc_a", "start rpc_b"]);
    assert_eq!(
        played.conn.done(&rpc("a"), &reply()),
        Err(Refused::UnknownId)
    );
    played.wait(ABORT_GRACE);
    assert_eq!(played.conn.running(), Some(&rpc("b")));
}

#[test]
fn without_a_grace_the_next_chat_starts_with_the_abort() {
    let config = ServerConfig {
        abort_grace: Duration::ZERO,
        ..ServerConfig::default()
    };
    let mut played = Played::with(config);
    played.start(&["a", "b"]);
    assert_eq!(
        played.answer(&abort("x", "a")),
        ["a error E_ABORTED", "x abort rpc_a true", "b started"]
    );
    assert_eq!(
        played.orders(),
        ["abort rpc_a", "given up rpc_a", "start rpc_b"]
    );
}

#[test]
fn a_silent_abort_sends_no_terminal_message() {
    let mut played = Played::with(ServerConfig {
        silent_aborts: true,
        ..ServerConfig::default()
    });
    played.start(&["a", "b", "c"]);
    assert_eq!(
        played.answer(&abort("x", "b")),
        ["c queued 1", "x abort rpc_b true"]
    );
    assert_eq!(played.answer(&abort("y", "a")), ["y abort rpc_a true"]);
}

#[test]
fn aborting_an_unknown_chat_returns_false() {
    let mut played = Played::new();
    assert_eq!(played.answer(&abort("x", "a")), ["x abort rpc_a false"]);
    assert!(played.events().is_empty());
}

#[test]
fn an_aborted_id_is_in_use_until_its_work_has_stopped() {
    let mut played = Played::new();
    played.start(&["a"]);
    played.take(&abort("x", "a"));
    played.sent();
    assert_eq!(played.answer(&start("a")), ["a refused"]);
    played
        .conn
        .fail(&rpc("a"), &AppError::failed("stopped"))
        .unwrap();
    assert!(played.sent().is_empty());
    assert_eq!(played.answer(&start("a")), ["a accepted", "a started"]);
}

#[test]
fn an_invalid_request_is_answered_under_its_id() {
    let mut played = Played::new();
    for (text, id) in [
        ("{not json", "rpc_unknown"),
        ("", "rpc_unknown"),
        ("[]", "rpc_unknown"),
        (r#"{"type":"status.get"}"#, "rpc_unknown"),
        (r#"{"id":"rpc_A","type":"status.get"}"#, "rpc_unknown"),
        (r#"{"id":"rpc_a","type":"nope"}"#, "rpc_a"),
        (r#"{"id":"rpc_a","type":"chat.abort"}"#, "rpc_a"),
    ] {
        played.take(text);
        let answer = format!(r#"{{"id":"{id}","type":"error","error":"Invalid RPC message"}}"#);
        assert_eq!(played.sent(), [answer], "{text}");
        assert!(matches!(played.events()[..], [ServerEvent::Warning(_)]));
    }
    played
        .conn
        .handle_message(Incoming::Binary(b"\xff"), played.now);
    assert_eq!(played.short(), ["unknown refused"]);
}

#[test]
fn requests_are_strict() {
    let long = "x".repeat(100_001);
    let request = json!({"message": long, "history": [], "model": "m", "more": 1,
        "sessionId": "no", "workspace": null});
    let text = json!({"id": "rpc_a", "type": "chat.start", "payload": {"request": request}});
    assert_eq!(Played::new().answer(&text.to_string()), ["a refused"]);
    let mut played = Played::new();
    for bad in [
        format!("{text} more"),
        r#"{"id":"rpc_b","type":"chat.start","payload":{"request":{"history":[]}}}"#.to_owned(),
        r#"{"id":"rpc_b","type":"nope"}"#.to_owned(),
        start("b").replace("chat.start", "chat.begin"),
    ] {
        let answers = played.answer(&bad);
        assert!(answers[0].ends_with("refused"), "{answers:?}");
    }
}

#[test]
fn json_in_a_binary_message_is_a_request_too() {
    let mut played = Played::new();
    let text = start("a");
    let message = Incoming::Binary(text.as_bytes());
    played.conn.handle_message(message, played.now);
    assert_eq!(played.short(), ["a accepted", "a started"]);
}

#[test]
fn calls_are_answered_once_by_the_application() {
    let mut played = Played::new();
    let id = rpc("s");
    played.take(r#"{"id":"rpc_s","type":"status.get"}"#);
    played.take(r#"{"id":"rpc_s","type":"task.status","payload":{"taskId":"task_1"}}"#);
    let task_id = "task_1".parse::<TaskId>().unwrap();
    assert_eq!(
        played.events(),
        [
            ServerEvent::StatusGet { id: id.clone() },
            ServerEvent::TaskStatus {
                id: id.clone(),
                task_id: task_id.clone()
            }
        ]
    );
    assert_eq!(played.conn.in_flight(), 2);
    let task = Task::new(task_id, std::time::SystemTime::UNIX_EPOCH);
    played.conn.task_status(&id, Some(&task)).unwrap();
    assert_eq!(
        played.sent(),
        [
            r#"{"id":"rpc_s","type":"task.status.result","task":{"id":"task_1","state":"accepted","createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"1970-01-01T00:00:00.000Z"}}"#
        ]
    );
    assert_eq!(played.conn.task_status(&id, None), Err(Refused::UnknownId));
    let status = Status::new("m", "http://localhost:6767");
    played.conn.status(&id, &status).unwrap();
    assert_eq!(played.short(), ["s status.result"]);
    assert_eq!(played.conn.status(&id, &status), Err(Refused::UnknownId));
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn an_unknown_task_is_null() {
    let mut played = Played::new();
    played.take(r#"{"id":"rpc_s","type":"task.status","payload":{"taskId":"task_1"}}"#);
    played.conn.task_status(&rpc("s"), None).unwrap();
    assert_eq!(
        played.sent(),
        [r#"{"id":"rpc_s","type":"task.status.result","task":null}"#]
    );
}

#[test]
fn an_error_event_is_refused_as_a_step_on_a_websocket() {
    let mut played = Played::new();
    played.start(&["a"]);
    let event = Event::Error(AppError::failed("no"));
    let refused = played.conn.event(&rpc("a"), &event);
    assert!(matches!(refused, Err(Refused::Invalid { .. })));
}

#[test]
fn checklists_have_the_configured_event_name() {
    for (tag, name) in [
        (ChecklistTag::Checklist, "checklist"),
        (ChecklistTag::Tasklist, "tasklist"),
    ] {
        let mut played = Played::with(ServerConfig {
            checklist: tag,
            ..ServerConfig::default()
        });
        played.start(&["a"]);
        for event in [Event::Checklist, Event::Tasklist] {
            let list = Checklist::new("g", "title");
            played.conn.event(&rpc("a"), &event(list)).unwrap();
            assert_eq!(played.short(), [format!("a event {name}")]);
        }
    }
}

#[test]
fn an_error_has_the_members_of_known_servers() {
    let mut played = Played::new();
    played.start(&["a"]);
    played
        .conn
        .fail(
            &rpc("a"),
            &AppError {
                code: Some("E_X".into()),
                ..AppError::failed("no")
            },
        )
        .unwrap();
    let frame: Value = serde_json::from_str(&played.sent()[0]).unwrap();
    assert_eq!(frame["errorMessage"], "no");
    assert_eq!(frame["errorCode"], "E_X");
    let detail = json!({"code": "E_X", "category": "other", "kind": "unknown", "source": "server"});
    assert_eq!(frame["error"], detail);
    let id = frame["errorId"].as_str().unwrap();
    assert!(id.parse::<ErrorId>().is_ok(), "{id}");
    // What the application says stays as it is.
    played.start(&["b"]);
    let error = AppError {
        id: Some(ErrorId::random(1)),
        detail: Some(Box::new(ErrorDetail {
            kind: Some("timeout".into()),
            ..ErrorDetail::default()
        })),
        ..AppError::failed("no")
    };
    played.conn.fail(&rpc("b"), &error).unwrap();
    let frame: Value = serde_json::from_str(&played.sent()[0]).unwrap();
    assert_eq!(frame["errorId"], "err_10000000");
    assert_eq!(frame["errorCode"], "E_UNKNOWN");
    assert_eq!(frame["error"], json!({"kind": "timeout"}));
}
