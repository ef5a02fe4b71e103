//! Every malformed answer that is known to have hurt someone: a chat ends, or goes on with a
//! warning; none hangs.

use super::*;

/// What a chat comes to after one more message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum After {
    Done,
    FailedServer,
    Unreadable,
    Refused,
    /// It goes on, and the application is told.
    Warned,
    GoesOn,
}

fn after(message: Value) -> After {
    let mut played = Played::new();
    let id = played.chat();
    played.send(id, json!({"type": "chat.started"}));
    played.updates();
    // Refusals concern chats that were not taken.
    let is_refusal = message["type"] == "error";
    let id = if is_refusal { played.chat() } else { id };
    played.send(id, message);
    let updates = played.updates();
    let after = match updates.first() {
        Some(ChatUpdate::Ended(outcome)) => match outcome {
            Outcome::Done(_) => After::Done,
            Outcome::Failed(Failure::Server(_)) => After::FailedServer,
            Outcome::Failed(Failure::Unreadable(_)) => After::Unreadable,
            Outcome::Refused { .. } => After::Refused,
            other => panic!("{other:?}"),
        },
        Some(ChatUpdate::Warning(_)) => After::Warned,
        Some(_) => After::GoesOn,
        None => panic!("nothing was told"),
    };
    if matches!(after, After::Warned | After::GoesOn) {
        // What goes on still ends, at the latest by its silence.
        played.wait(180 * SECOND);
        played.times_out();
    }
    after
}

#[test]
fn a_malformed_terminal_frame_ends_the_chat() {
    let reply = |reply: Value| json!({"type": "chat.done", "reply": reply});
    for (message, expected) in [
        // Known clients never settle on these.
        (reply(json!({"output": "fine", "model": "m"})), After::Done),
        (
            reply(json!({"output": "fine", "model": "m", "state": "done"})),
            After::Done,
        ),
        (
            reply(json!({"output": "fine", "outputStreamed": true, "model": ""})),
            After::Done,
        ),
        (
            reply(
                json!({"output": "fine", "outputStreamed": true, "model": "m",
                "usage": {"inputTokens": 1, "outputTokens": 2}}),
            ),
            After::Done,
        ),
        (
            reply(
                json!({"output": "fine", "outputStreamed": true, "model": "m", "error": null,
                "toolCalls": null, "usage": null}),
            ),
            After::Done,
        ),
        (
            reply(json!({"output": "fine", "outputStreamed": true, "model": "m", "x": 1})),
            After::Done,
        ),
        // A wrapped answer, and no answer at all.
        (
            json!({"type": "chat.done", "payload": {"reply": {"output": "fine"}}}),
            After::Unreadable,
        ),
        (json!({"type": "chat.done"}), After::Unreadable),
        (
            json!({"type": "chat.done", "reply": null}),
            After::Unreadable,
        ),
        (
            json!({"type": "chat.done", "reply": "fine"}),
            After::Unreadable,
        ),
        (json!({"type": "chat.done", "reply": []}), After::Unreadable),
        // Errors that known clients ignore.
        (
            json!({"type": "chat.error", "errorMessage": "x"}),
            After::FailedServer,
        ),
        (
            json!({"type": "chat.error", "errorMessage": "x", "errorId": null}),
            After::FailedServer,
        ),
        (
            json!({"type": "chat.error", "errorMessage": "x", "errorId": "ERR-1"}),
            After::FailedServer,
        ),
        (
            json!({"type": "chat.error", "error": "x"}),
            After::FailedServer,
        ),
    ] {
        assert_eq!(after(message.clone()), expected, "{message}");
    }
    // What no text says is an end all the same.
    for message in [
        json!({"type": "chat.error"}),
        json!({"type": "chat.error", "payload": {"errorMessage": "x"}}),
        json!({"type": "chat.error", "errorMessage": 7}),
    ] {
        let after = after(message.clone());
        assert!(
            matches!(after, After::FailedServer | After::Unreadable),
            "{message}: {after:?}"
        );
    }
    for message in [
        json!({"type": "error", "error": "no"}),
        json!({"type": "error", "error": {"message": "no"}}),
        json!({"type": "error"}),
        json!({"type": "error", "error": null}),
    ] {
        assert_eq!(after(message.clone()), After::Refused, "{message}");
    }
}

#[test]
fn a_malformed_step_is_reported_and_does_not_end_the_chat() {
    let event = |event: Value| json!({"type": "chat.event", "event": event});
    for message in [
        json!({"type": "chat.accepted"}),
        json!({"type": "chat.accepted", "taskId": "nope"}),
        json!({"type": "chat.queued", "position": 0}),
        json!({"type": "chat.queued", "position": -1}),
        json!({"type": "chat.queued"}),
        json!({"type": "chat.event"}),
        event(json!(null)),
        event(json!("text")),
        event(json!({"text": "no type"})),
        json!({"type": "status.result", "status": {}}),
        json!({"type": "chat.abort.result", "requestId": "rpc_a", "aborted": true}),
        json!({"type": "task.status.result", "task": null}),
        json!({"type": 7}),
        json!({"payload": {"type": "chat.started"}}),
    ] {
        assert_eq!(after(message.clone()), After::Warned, "{message}");
    }
    for message in [
        json!({"type": "chat.later", "more": 1}),
        json!({"type": "chat.queued", "position": 3}),
        event(json!({"type": "later", "more": [1]})),
        event(json!({"type": "text-delta", "text": "x", "more": 1})),
        event(json!({"type": "tool-call", "toolCallId": "c", "toolName": "t"})),
        event(json!({"type": "status", "state": {"kind": "awaiting-input"}})),
    ] {
        assert_eq!(after(message.clone()), After::GoesOn, "{message}");
    }
    // Known bodies that are odd may be read or told as odd, but never more than that.
    for message in [
        event(json!({"type": "usage", "inputTokens": 1.5, "outputTokens": -2})),
        event(json!({"type": "status", "state": "running"})),
        event(json!({"type": "status", "message": "running"})),
        event(json!({"type": "tool-output", "toolCallId": "c", "toolName": "t", "content": "s"})),
        event(json!({"type": "text-delta"})),
    ] {
        let after = after(message.clone());
        assert!(
            matches!(after, After::GoesOn | After::Warned),
            "{message}: {after:?}"
        );
    }
}

#[test]
fn a_malformed_reply_ends_its_call() {
    for members in [
        json!({"type": "status.result"}),
        json!({"type": "status.result", "status": 7}),
        json!({"type": "status.result", "payload": {"status": {"ok": true}}}),
        json!({"type": "error", "error": {"code": 1}}),
    ] {
        let mut played = Played::new();
        let id = played.conn.status(played.now).unwrap();
        played.send(id, members.clone());
        let events = played.events();
        assert!(
            matches!(
                &events[..],
                [ClientEvent::Reply {
                    result: Err(CallError::Remote(_)),
                    ..
                }]
            ),
            "{members}: {events:?}"
        );
    }
}

#[test]
fn frames_for_unknown_ids_are_tolerated() {
    let mut played = Played::new();
    for (id, members) in [
        (
            "rpc_zzzzzzzzzzzzz",
            json!({"type": "chat.done", "reply": {"output": "x", "model": "m"}}),
        ),
        (
            "rpc_a",
            json!({"type": "chat.abort.result", "requestId": "rpc_b", "aborted": true}),
        ),
        ("rpc_unknown", json!({"type": "chat.started"})),
    ] {
        played.send(id, members);
    }
    assert_eq!((played.events(), played.conn.stray_frames()), (vec![], 3));
    for text in [
        "",
        "x",
        "[]",
        "7",
        "{}",
        r#"{"id":7,"type":"chat.started"}"#,
    ] {
        played.take(text);
        let events = played.events();
        assert!(
            matches!(
                &events[..],
                [ClientEvent::Warning(_) | ClientEvent::Unknown { .. }]
            ),
            "{text}: {events:?}"
        );
    }
    played.send("rpc_a", json!({"type": "later"}));
    assert!(matches!(&played.events()[..], [ClientEvent::Unknown { tag, .. }] if tag == "later"));
}
