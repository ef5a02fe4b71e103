//! Recordings of real servers of two eras: every frame is typed and written again as it was, and
//! every connection keeps the order.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use acolyte_proto::event::Event;
use acolyte_proto::frame::{Answer, ChatRequest, ClientFrame, Reply, ServerFrame};
use acolyte_proto::limits;
use serde_json::{Value, json};

use crate::order::OrderChecker;

/// The recordings by name, in order.
fn recordings() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (name, lines.collect())
    };
    files.into_iter().map(read).collect()
}

/// The text of a message, if the line is one.
fn message(line: &Value, dir: &str) -> Option<String> {
    let is_message = line["dir"] == dir && line["kind"] == "text";
    is_message.then(|| match line["raw"].as_str() {
        Some(raw) => raw.to_owned(),
        None => line["msg"].to_string(),
    })
}

/// What this crate always writes, though old servers do not.
fn with_what_is_always_written(mut frame: Value) -> Value {
    if let Some(reply) = frame.get_mut("reply").and_then(Value::as_object_mut) {
        reply.entry("outputStreamed").or_insert(json!(false));
        reply.entry("activeSkills").or_insert(json!([]));
    }
    if let Some(status) = frame.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("tasks_detached").or_insert(json!(0));
        status.entry("provider_auth").or_insert(json!([]));
    }
    frame
}

fn again(frame: &impl serde::Serialize) -> Value {
    let text = acolyte_proto::codec::encode(frame).unwrap();
    serde_json::from_str(text.as_str()).unwrap()
}

#[test]
fn every_recorded_reply_round_trips() {
    let limits = limits::defaults();
    let mut seen = HashMap::<String, u32>::new();
    for (name, lines) in recordings() {
        for text in lines.iter().filter_map(|line| message(line, "s2c")) {
            let frame =
                ServerFrame::decode(&text, &limits).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(
                !matches!(frame.answer, Answer::Unknown { .. }),
                "{name}: {text}"
            );
            if let Answer::Event(event) = &frame.answer {
                assert!(!matches!(event, Event::Unknown { .. }), "{name}: {text}");
                *seen.entry(event.tag().to_owned()).or_default() += 1;
            }
            *seen.entry(frame.answer.tag().to_owned()).or_default() += 1;
            let was = with_what_is_always_written(serde_json::from_str(&text).unwrap());
            assert_eq!(again(&frame), was, "{name}");
            assert_eq!(frame.clone(), frame, "{name}");
        }
    }
    for tag in [
        "status.result",
        "chat.accepted",
        "chat.queued",
        "chat.started",
        "chat.event",
        "chat.done",
        "chat.abort.result",
        "task.status.result",
        "error",
        "status",
        "text-delta",
        "tool-call",
        "tool-output",
        "tool-result",
        "usage",
        "checklist",
        "tasklist",
    ] {
        assert!(seen.contains_key(tag), "{tag} is not in the recordings");
    }
}

#[test]
fn every_recorded_request_decodes() {
    let limits = limits::defaults();
    let mut refused = 0;
    for (name, lines) in recordings() {
        for (at, text) in lines.iter().enumerate() {
            let Some(text) = message(text, "c2s") else {
                continue;
            };
            match ClientFrame::decode(&text, &limits) {
                Ok(frame) => {
                    let was: Value = serde_json::from_str(&text).unwrap();
                    // Requests for the status with members that mean nothing, or twice the same.
                    if was.get("extra").is_none() && !text.contains("rpc_dupkey") {
                        assert_eq!(again(&frame), was, "{name}");
                    }
                }
                Err(error) => {
                    let mut answers = lines[at..].iter().filter_map(|line| message(line, "s2c"));
                    let answer = answers.next().unwrap();
                    let wanted =
                        ServerFrame::new(error.reply_to(), Answer::error("Invalid RPC message"));
                    assert_eq!(ServerFrame::decode(&answer, &limits).as_ref(), Ok(&wanted));
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 8, "{refused}");
}

#[test]
fn a_recorded_stream_over_http_has_the_same_events() {
    let limits = limits::defaults();
    let (_, lines) = recordings()
        .into_iter()
        .find(|it| it.0 == "noauth-sse-happy")
        .unwrap();
    let body = lines.iter().find_map(|line| line["body"].as_str()).unwrap();
    let request = ChatRequest::decode(body, &limits).unwrap();
    assert_eq!(
        again(&request),
        serde_json::from_str::<Value>(body).unwrap()
    );
    let mut tags = Vec::new();
    for data in lines
        .iter()
        .filter(|line| line["kind"] == "sse")
        .map(|line| &line["data"])
    {
        let text = data.to_string();
        let event = Event::decode(&text, &limits).unwrap();
        assert_eq!(again(&event), *data);
        tags.push(event.tag().to_owned());
        if let Event::Unknown { tag, .. } = event {
            let reply = data["reply"].to_string();
            let reply = Reply::decode(&reply, &limits).unwrap();
            assert_eq!((&*tag, &*reply.output), ("done", "Done over SSE."));
        }
    }
    assert_eq!(tags.first().map(String::as_str), Some("status"));
    assert_eq!(tags.last().map(String::as_str), Some("done"));
}

/// What the real client made of answers of a scripted server.
#[test]
fn frames_of_the_real_client_decode() {
    let limits = limits::defaults();
    let (_, cases) = recordings()
        .into_iter()
        .find(|it| it.0 == "real-client-acceptance")
        .unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        for event in case["events"].as_array().unwrap() {
            let text = event.to_string();
            let read = Event::decode(&text, &limits).unwrap();
            assert!(!matches!(read, Event::Unknown { .. }), "{text}");
            assert_eq!(again(&read), *event);
        }
        let reply = &case["outcome"]["reply"];
        if reply.is_object() {
            let read = Reply::decode(&reply.to_string(), &limits).unwrap();
            assert_eq!(reply["output"], *read.output);
        }
    }
}

#[test]
fn every_recorded_connection_is_in_order() {
    let limits = limits::defaults();
    let mut chats = 0;
    for (name, lines) in recordings() {
        let mut order = OrderChecker::default();
        for line in &lines {
            if line["kind"] == "http-request" {
                order = OrderChecker::default();
            }
            let frame = message(line, "c2s");
            if let Some(frame) = frame
                .as_deref()
                .and_then(|it| ClientFrame::decode(it, &limits).ok())
            {
                order.sent(&frame);
            }
            if let Some(text) = message(line, "s2c") {
                let frame = ServerFrame::decode(&text, &limits).unwrap();
                chats += usize::from(matches!(frame.answer, Answer::Accepted(_)));
                order
                    .received(&frame)
                    .unwrap_or_else(|rule| panic!("{name}: {rule}"));
            }
        }
        order
            .finished()
            .unwrap_or_else(|rule| panic!("{name}: {rule}"));
    }
    assert!(chats > 10, "{chats}");
}
