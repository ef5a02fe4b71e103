//! Bounds, silence and the end of a connection.

use super::*;
use crate::limits::{MAX_UNANSWERED, defaults};

#[test]
fn a_full_stream_reports_writability_and_keeps_room_for_the_end() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..defaults()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
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
fn output_of_a_call_without_room_is_dropped_too() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..defaults()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    played.start(&["a"]);
    let event = Event::text("x");
    while played.conn.event(&rpc("a"), &event) == Ok(()) {}
    let call = Event::ToolCall(ToolCall::new("c", "t", rpc_core::Json::EMPTY_OBJECT));
    let refused = played.conn.event(&rpc("a"), &call);
    assert_eq!(refused, Err(Refused::QueueFull));
    played.sent();
    let result = Event::ToolResult(ToolResult::ok("c", "t"));
    let output = Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput));
    for step in [&output, &result] {
        let refused = played.conn.event(&rpc("a"), step);
        assert!(
            matches!(refused, Err(Refused::Invalid { what: "event", .. })),
            "{refused:?}"
        );
    }
    for step in [&call, &output, &result] {
        played.conn.event(&rpc("a"), step).unwrap();
    }
    assert_eq!(played.sent().len(), 3);
}

#[test]
fn an_end_without_room_has_no_side_effects() {
    let limits = Limits {
        max_outbox_frames: 12,
        ..defaults()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
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
fn a_lost_connection_cancels_every_open_task() {
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
fn a_close_ends_every_open_chat() {
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
fn a_close_does_not_end_an_aborted_chat_again() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.take(&abort("x", "a"));
    played.sent();
    assert_eq!(played.states(), [TaskState::Cancelled]);
    played.conn.close(played.now);
    let sent = played.sent();
    assert_eq!(short(&sent[0]), "b error E_UNKNOWN");
    assert_eq!(sent[1..], ["close 1000 "]);
    assert_eq!(played.states(), [TaskState::Cancelled]);
}

#[test]
fn a_draining_server_finishes_the_running_chat_and_refuses_others() {
    let mut played = Played::new();
    played.start(&["a", "b"]);
    played.conn.stop_taking();
    assert_eq!(played.short(), ["b error E_UNKNOWN"]);
    assert_eq!(played.states(), [TaskState::Cancelled]);
    played.take(&start("c"));
    // An id in use is refused as before.
    played.take(&start("a"));
    assert_eq!(
        played.sent(),
        [
            r#"{"id":"rpc_c","type":"error","error":"The server is shutting down."}"#,
            r#"{"id":"rpc_a","type":"error","error":"Chat request already running for id: rpc_a"}"#,
        ]
    );
    played.conn.done(&rpc("a"), &reply()).unwrap();
    assert_eq!(played.short(), ["a done"]);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_message_over_the_limit_is_refused_when_it_is_sent() {
    let limits = Limits {
        max_message_bytes: 300,
        ..Limits::default()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
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

#[test]
fn chats_over_the_byte_limit_are_refused_unless_alone() {
    let limits = Limits {
        max_event_bytes: 150,
        ..defaults()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
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
fn aborting_a_queued_chat_makes_room() {
    let limits = Limits {
        max_event_bytes: 2 * start("a").len(),
        ..defaults()
    };
    let mut played = Played::with(ServerConfig {
        limits,
        ..ServerConfig::default()
    });
    played.start(&["a", "b"]);
    assert_eq!(played.conn.waiting(), 1);
    assert_eq!(played.answer(&start("c")), ["c refused"]);
    played.take(&abort("x", "b"));
    played.sent();
    assert_eq!(played.answer(&start("c")), ["c accepted", "c queued 1"]);
}

#[test]
fn reading_stops_while_too_many_replies_are_pending() {
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
