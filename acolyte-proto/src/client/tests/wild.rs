//! Random commands, answers and pauses: every request and every chat ends exactly once.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Chat,
    Status,
    Task,
    /// Of the request with this index.
    Abort(usize),
    Cancel(usize),
    Idle(usize, Option<u64>),
    /// This answer to the request with this index.
    Answer(usize, usize),
    Unmatched,
    Drain,
    Wait(u64),
    Close,
    Cut,
}

/// What may be behind the id of an answer.
const ANSWERS: [&str; 20] = [
    r#""type":"chat.accepted","taskId":"task_a""#,
    r#""type":"chat.accepted","taskId":"no""#,
    r#""type":"chat.queued","position":2"#,
    r#""type":"chat.queued","position":0"#,
    r#""type":"chat.started""#,
    r#""type":"chat.event","event":{"type":"text-delta","text":"x"}"#,
    r#""type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t"}"#,
    r#""type":"chat.event","event":[]"#,
    r#""type":"chat.done","reply":{"output":"o","outputStreamed":true,"model":"m"}"#,
    r#""type":"chat.done","reply":{"output":"","model":"","error":"no"}"#,
    r#""type":"chat.done""#,
    r#""type":"chat.error","errorMessage":"no","errorCode":"E_ABORTED""#,
    r#""type":"chat.error""#,
    r#""type":"chat.abort.result","requestId":"rpc_a","aborted":true"#,
    r#""type":"chat.abort.result","requestId":"rpc_a","aborted":false"#,
    r#""type":"chat.abort.result""#,
    r#""type":"task.status.result","task":null"#,
    r#""type":"status.result","status":{"ok":true,"protocol_version":"1","model":"m"}"#,
    r#""type":"error","error":"no""#,
    r#""type":"later""#,
];

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let index = 0..12_usize;
    let op = prop_oneof![
        3 => Just(Op::Chat),
        1 => Just(Op::Status),
        1 => Just(Op::Task),
        2 => index.clone().prop_map(Op::Abort),
        1 => index.clone().prop_map(Op::Cancel),
        1 => (index.clone(), proptest::option::of(0..200_u64)).prop_map(|(at, idle)| Op::Idle(at, idle)),
        12 => (index, 0..ANSWERS.len()).prop_map(|(at, answer)| Op::Answer(at, answer)),
        1 => Just(Op::Unmatched),
        2 => Just(Op::Drain),
        2 => (0..200_u64).prop_map(Op::Wait),
    ];
    let end = prop_oneof![Just(Op::Close), Just(Op::Cut)];
    (proptest::collection::vec(op, 0..60), end).prop_map(|(mut ops, end)| {
        ops.push(end);
        ops
    })
}

/// What the application waits for.
#[derive(Default)]
struct OpenRequests {
    /// Requests that were asked for and whose end was not told yet.
    open: HashMap<CallId, ()>,
    ids: Vec<CallId>,
    cancelled: Vec<CallId>,
    closed: bool,
}

impl OpenRequests {
    fn note(&mut self, started: &Result<CallId, Refused>) {
        if let Ok(id) = *started {
            assert!(self.open.insert(id, ()).is_none(), "an id was given twice");
            self.ids.push(id);
        }
    }

    fn id(&self, at: usize) -> Option<CallId> {
        // The latest are the interesting ones.
        self.ids.iter().rev().nth(at).copied()
    }

    fn take(&mut self, event: &ClientEvent) {
        assert!(!self.closed, "told after the end: {event:?}");
        let (id, ends) = match event {
            ClientEvent::Chat { id, update } => (id, matches!(update, ChatUpdate::Ended(_))),
            ClientEvent::Reply { id, .. } => (id, true),
            ClientEvent::Closed(_) => return self.closed = true,
            _ => return,
        };
        if self.cancelled.contains(id) {
            return;
        }
        assert!(self.open.contains_key(id), "told after its end: {event:?}");
        if ends {
            self.open.remove(id);
        }
    }
}

proptest! {
    #[test]
    fn every_request_ends_once_whatever_the_server_says(ops in ops(), small in any::<bool>()) {
        let limits = match small {
            true => Limits { max_pending: 4, max_outbox_frames: 3, max_events: 2, ..Limits::default() },
            false => Limits::default(),
        };
        let mut played = Played::with(ClientConfig {
limits,
..quiet()
});
        let mut book = OpenRequests::default();
        for op in ops {
            let now = played.now;
            match op {
                Op::Chat => {
                    let request = ChatRequest::new("hi", "m");
                    book.note(&played.conn.chat(&request, now));
                }
                Op::Status => book.note(&played.conn.status(now)),
                Op::Task => {
                    let task = "task_a".parse::<TaskId>().unwrap();
                    book.note(&played.conn.task_status(&task, now));
                }
                Op::Abort(at) => {
                    if let Some(id) = book.id(at) {
                        book.note(&played.conn.abort(id, now));
                    }
                }
                Op::Cancel(at) => {
                    if let Some(id) = book.id(at)
                        && played.conn.cancel(id, now)
                    {
                        book.open.remove(&id);
                        book.cancelled.push(id);
                    }
                }
                Op::Idle(at, idle) => {
                    if let Some(id) = book.id(at) {
                        let idle = idle.map(Duration::from_secs);
                        played.conn.set_idle_timeout(id, idle, now);
                    }
                }
                Op::Answer(at, answer) => {
                    if let Some(id) = book.id(at) {
                        played.take(&format!(r#"{{"id":"{id}",{}}}"#, ANSWERS[answer]));
                    }
                }
                Op::Unmatched => {
                    let error = json!({"type": "error", "error": "Invalid RPC message"});
                    played.say("rpc_unknown", error);
                }
                Op::Drain => drop(played.sent()),
                Op::Wait(seconds) => played.wait(Duration::from_secs(seconds)),
                Op::Close => played.conn.close(now),
                Op::Cut => played.conn.handle_disconnect(Disconnect::Eof, now),
            }
            if !small || matches!(op, Op::Drain) {
                played.events().iter().for_each(|event| book.take(event));
            }
        }
        played.events().iter().for_each(|event| book.take(event));
        prop_assert!(book.closed);
        prop_assert!(book.open.is_empty(), "never ended: {:?}", book.open);
        prop_assert_eq!(played.conn.in_flight(), 0);
        prop_assert_eq!(played.conn.poll_timeout(), None);
    }

    /// Nothing but silence, and an application that takes its events: then every wait has an end.
    #[test]
    fn silence_times_out_every_request(ops in ops()) {
        let mut played = Played::new();
        for op in ops {
            let now = played.now;
            match op {
                Op::Chat => drop(played.conn.chat(&ChatRequest::new("hi", "m"), now)),
                Op::Status => drop(played.conn.status(now)),
                Op::Answer(..) | Op::Abort(_) => {
                    let chat = played.conn.calls.iter().map(|(id, _)| id).min_by_key(|id| id.raw());
                    if let (Some(id), Op::Answer(_, answer)) = (chat, op) {
                        played.take(&format!(r#"{{"id":"{id}",{}}}"#, ANSWERS[answer]));
                    } else if let Some(id) = chat {
                        drop(played.conn.abort(id, now));
                    }
                }
                Op::Wait(seconds) => played.wait(Duration::from_secs(seconds)),
                _ => {}
            }
            played.sent();
            played.events();
        }
        for _ in 0..10 {
            played.wait(400 * SECOND);
            played.sent();
            played.events();
        }
        prop_assert_eq!(played.conn.in_flight(), 0);
        prop_assert_eq!(played.conn.unanswered, 0);
        prop_assert!(played.conn.deferred.is_empty());
    }
}
