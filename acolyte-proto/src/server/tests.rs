//! Tests of [`ServerConn`] with a client that is played by hand.

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::rate::RateLimit;
use serde_json::{Value, json};

use super::*;
use crate::event::{Checklist, ChecklistTag, Event};
use crate::frame::{Reply, Status};
use crate::limits::{ABORT_GRACE, MAX_UNANSWERED, PING_INTERVAL, PONG_TIMEOUT, defaults};
use crate::task::Task;

struct Played {
    conn: ServerConn,
    now: Instant,
}

fn rpc(id: &str) -> RpcId {
    RpcId::parse(&format!("rpc_{id}")).unwrap()
}

fn start(id: &str) -> String {
    let request = json!({"message": id, "history": [], "model": "m"});
    json!({"id": rpc(id), "type": "chat.start", "payload": {"request": request}}).to_string()
}

fn abort(id: &str, request_id: &str) -> String {
    let payload = json!({"requestId": rpc(request_id)});
    json!({"id": rpc(id), "type": "chat.abort", "payload": payload}).to_string()
}

fn reply() -> Reply<'static> {
    Reply::new("hi", "m").with_output_streamed(true)
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

    fn take(&mut self, text: &str) {
        self.conn.handle_message(Incoming::Text(text), self.now);
    }

    fn start(&mut self, ids: &[&str]) {
        for id in ids {
            self.take(&start(id));
        }
        self.sent();
        self.events();
    }

    fn sent(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.conn.poll_transmit())
            .map(|frame| match frame {
                Outgoing::Text(text) => text.as_str().to_owned(),
                Outgoing::Close(frame) => format!("close {} {}", frame.code, frame.reason),
                Outgoing::Ping(_) => "ping".to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    fn short(&mut self) -> Vec<String> {
        self.sent().iter().map(|text| short(text)).collect()
    }

    fn answer(&mut self, text: &str) -> Vec<String> {
        self.take(text);
        self.short()
    }

    fn events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.conn.poll_event()).collect()
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

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.conn.handle_timeout(self.now);
    }

    fn closed(&mut self) -> Option<CloseReason> {
        self.events().into_iter().find_map(|event| match event {
            ServerEvent::Closed(reason) => Some(reason),
            _ => None,
        })
    }
}

#[test]
fn a_chat_is_accepted_starts_says_its_steps_and_is_done() {
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
fn a_task_has_the_id_that_was_told_and_goes_through_its_states() {
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
fn chats_wait_in_line_and_are_told_where_whenever_it_moves() {
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
    played.conn.fail(&rpc("b"), &ChatError::new("no")).unwrap();
    assert_eq!(played.short(), ["b error E_UNKNOWN", "d started"]);
}

#[test]
fn starts_beyond_the_line_and_ids_in_use_are_refused_and_nothing_else_happens() {
    let mut played = Played::with(ServerConfig::default().with_max_queued(1));
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
fn work_that_does_not_stop_in_time_is_given_up_and_the_next_chat_starts() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.take(&abort("x", "a"));
    assert_eq!(played.states(), [TaskState::Cancelled]);
    played.sent();
    played.wait(ABORT_GRACE - Duration::from_millis(1));
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
    let config = ServerConfig::default().with_abort_grace(Duration::ZERO);
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
fn a_silent_abort_ends_without_a_terminal_message() {
    let mut played = Played::with(ServerConfig::default().with_silent_aborts(true));
    played.start(&["a", "b", "c"]);
    assert_eq!(
        played.answer(&abort("x", "b")),
        ["c queued 1", "x abort rpc_b true"]
    );
    assert_eq!(played.answer(&abort("y", "a")), ["y abort rpc_a true"]);
}

#[test]
fn an_abort_of_nothing_is_answered_with_false() {
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
        .fail(&rpc("a"), &ChatError::new("stopped"))
        .unwrap();
    assert!(played.sent().is_empty());
    assert_eq!(played.answer(&start("a")), ["a accepted", "a started"]);
}

#[test]
fn what_is_no_request_is_answered_by_its_own_id_if_there_is_one() {
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
fn json_in_a_binary_message_is_a_request_too() {
    let mut played = Played::new();
    let text = start("a");
    let message = Incoming::Binary(text.as_bytes());
    played.conn.handle_message(message, played.now);
    assert_eq!(played.short(), ["a accepted", "a started"]);
}

#[test]
fn questions_are_answered_once_each_by_the_application() {
    let mut played = Played::new();
    let id = rpc("s");
    played.take(r#"{"id":"rpc_s","type":"status.get"}"#);
    played.take(r#"{"id":"rpc_s","type":"task.status","payload":{"taskId":"task_1"}}"#);
    let task_id = TaskId::parse("task_1").unwrap();
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
fn a_task_that_nobody_knows_is_null() {
    let mut played = Played::new();
    played.take(r#"{"id":"rpc_s","type":"task.status","payload":{"taskId":"task_1"}}"#);
    played.conn.task_status(&rpc("s"), None).unwrap();
    assert_eq!(
        played.sent(),
        [r#"{"id":"rpc_s","type":"task.status.result","task":null}"#]
    );
}

#[test]
fn nothing_is_read_while_too_many_answers_are_owed() {
    let mut played = Played::new();
    for _ in 0..MAX_UNANSWERED {
        assert!(played.conn.wants_input());
        played.take(r#"{"id":"rpc_s","type":"status.get"}"#);
    }
    assert!(!played.conn.wants_input());
    played.events();
    let status = Status::new("m", "");
    played.conn.status(&rpc("s"), &status).unwrap();
    assert!(played.conn.wants_input());
}

#[test]
fn chats_that_hold_too_many_bytes_are_refused_unless_there_is_only_one() {
    let limits = defaults().with_max_event_bytes(150);
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    let long = start(&"a".repeat(100));
    assert!(long.len() > 150);
    played.take(&long);
    assert_eq!(played.sent().len(), 2);
    assert_eq!(played.answer(&start("b")), ["b refused"]);
    let id = rpc(&"a".repeat(100));
    played.conn.done(&id, &reply()).unwrap();
    played.sent();
    assert_eq!(played.answer(&start("b")), ["b accepted", "b started"]);
}

#[test]
fn the_event_error_is_no_step_of_a_chat_on_a_websocket() {
    let mut played = Played::new();
    played.start(&["a"]);
    let event = Event::Error(ChatError::new("no"));
    let refused = played.conn.event(&rpc("a"), &event);
    assert!(matches!(refused, Err(Refused::Invalid { .. })));
}

#[test]
fn checklists_are_sent_by_the_configured_name() {
    for (tag, name) in [
        (ChecklistTag::Checklist, "checklist"),
        (ChecklistTag::Tasklist, "tasklist"),
    ] {
        let mut played = Played::with(ServerConfig::default().with_checklist(tag));
        played.start(&["a"]);
        for tag in [ChecklistTag::Checklist, ChecklistTag::Tasklist] {
            let list = Checklist::new("g", "title").with_tag(tag);
            played
                .conn
                .event(&rpc("a"), &Event::Checklist(list))
                .unwrap();
            assert_eq!(played.short(), [format!("a event {name}")]);
        }
    }
}

#[test]
fn an_error_is_told_with_all_that_known_servers_tell() {
    let mut played = Played::new();
    played.start(&["a"]);
    played
        .conn
        .fail(&rpc("a"), &ChatError::new("no").with_code("E_X"))
        .unwrap();
    let frame: Value = serde_json::from_str(&played.sent()[0]).unwrap();
    assert_eq!(frame["errorMessage"], "no");
    assert_eq!(frame["errorCode"], "E_X");
    assert_eq!(frame["error"]["code"], "E_X");
    let id = frame["errorId"].as_str().unwrap();
    assert!(ErrorId::parse(id).is_ok(), "{id}");
}

#[test]
fn a_full_stream_is_told_when_there_is_room_and_leaves_room_for_the_end() {
    let limits = defaults().with_max_outbox_frames(16);
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    played.start(&["a", "b"]);
    let event = Event::text("x");
    let mut fitted = 0;
    while played.conn.event(&rpc("a"), &event) == Ok(()) {
        fitted += 1;
    }
    assert_eq!(fitted, 4);
    assert_eq!(
        played.conn.event(&rpc("a"), &event),
        Err(Refused::QueueFull)
    );
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.sent().len(), 6);
    assert!(played.events().contains(&ServerEvent::Writable));
}

#[test]
fn an_end_for_which_there_is_no_room_changes_nothing() {
    let limits = defaults().with_max_outbox_frames(12);
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    played.start(&["a", "b", "c"]);
    for _ in 0..3 {
        played.conn.event(&rpc("a"), &Event::text("x")).unwrap();
    }
    for n in 0..6 {
        played.take(&abort(&format!("x{n}"), "nothing"));
    }
    assert_eq!(
        played.conn.done(&rpc("a"), &reply()),
        Err(Refused::QueueFull)
    );
    assert_eq!(played.conn.running(), Some(&rpc("a")));
    played.sent();
    assert!(played.events().contains(&ServerEvent::Writable));
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.short(), ["a done", "c queued 1", "b started"]);
}

#[test]
fn a_client_that_never_reads_its_answers_is_closed() {
    let limits = defaults().with_max_outbox_frames(4);
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    for _ in 0..5 {
        played.take(&abort("x", "a"));
    }
    assert_eq!(played.closed(), Some(CloseReason::SlowConsumer));
    assert!(played.sent().last().unwrap().starts_with("close 1008"));
}

#[test]
fn a_client_above_the_rate_limit_is_disconnected() {
    let rate = RateLimit::new(1, Duration::from_secs(1));
    let limits = defaults().with_max_message_rate(Some(rate));
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    played.take(&abort("x", "a"));
    played.take(&abort("x", "a"));
    assert_eq!(played.closed(), Some(CloseReason::RateLimited));
}

#[test]
fn a_silent_client_is_pinged_and_then_given_up() {
    let mut played = Played::new();
    played.wait(PING_INTERVAL);
    assert_eq!(played.sent(), ["ping"]);
    played.wait(PONG_TIMEOUT);
    let after = PONG_TIMEOUT;
    assert_eq!(played.closed(), Some(CloseReason::KeepAlive { after }));
}

#[test]
fn a_lost_line_cancels_every_task_that_has_not_ended() {
    let mut played = Played::new();
    played.start(&["a", "b", "c"]);
    played.take(&abort("x", "a"));
    assert_eq!(played.states(), [TaskState::Cancelled]);
    played.conn.handle_disconnect(Disconnect::Eof, played.now);
    let events = played.events();
    let cancelled = |event: &&ServerEvent| {
        matches!(
            event,
            ServerEvent::Task {
                state: TaskState::Cancelled,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(cancelled).count(), 2);
    assert_eq!(events.last(), Some(&ServerEvent::Closed(CloseReason::Lost)));
    assert_eq!(played.conn.poll_timeout(), None);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_close_ends_every_chat_before_it() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.conn.close(played.now);
    let sent = played.sent();
    let short: Vec<_> = sent[..2].iter().map(|text| short(text)).collect();
    assert_eq!(short, ["a error E_UNKNOWN", "b error E_UNKNOWN"]);
    assert_eq!(sent[2..], ["close 1000 "]);
    assert_eq!(played.closed(), Some(CloseReason::Local));
    assert_eq!(played.conn.done(&rpc("a"), &reply()), Err(Refused::Closed));
}

#[test]
fn a_server_that_ends_lets_the_running_chat_end_and_takes_no_other() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.conn.stop_taking();
    assert_eq!(played.short(), ["b error E_UNKNOWN"]);
    assert_eq!(played.states(), [TaskState::Cancelled]);
    assert_eq!(played.answer(&start("c")), ["c refused"]);
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.short(), ["a done"]);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_message_over_the_limit_is_refused_when_it_is_sent() {
    let limits = Limits::default().with_max_message_bytes(300);
    let mut played = Played::with(ServerConfig::default().with_limits(limits));
    played.start(&["a"]);
    let long = "x".repeat(300);
    let too_large = |refused| matches!(refused, Err(Refused::TooLarge { .. }));
    assert!(too_large(
        played.conn.event(&rpc("a"), &Event::text(long.as_str()))
    ));
    let reply = Reply::new(long, "m");
    assert!(too_large(played.conn.done(&rpc("a"), &reply)));
    assert_eq!(played.conn.running(), Some(&rpc("a")));
    assert!(played.sent().is_empty());
}
