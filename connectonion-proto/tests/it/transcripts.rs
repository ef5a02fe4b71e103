//! Recordings of real hosts, played to the codec.
//!
//! Their names begin with the version of the host. For size, some of them leave something out; their
//! first line says what.

use std::path::Path;

use connectonion_proto::codec;
use connectonion_proto::error;
use connectonion_proto::frame::{ChatItem, ClientFrame, EventKind, ServerFrame, Session, Usage};
use rpc_core::Json;
use rpc_core::Limits;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use switchboard_testing::json::assert_same;

#[derive(serde::Deserialize)]
struct Line {
    conn: Option<u32>,
    dir: Option<String>,
    frame: Option<Box<RawValue>>,
    /// What was sent, where it was not a frame.
    raw: Option<String>,
}

/// The recordings by name, in order.
fn recordings() -> Vec<(String, Vec<Line>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(path).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            (name, lines.collect())
        })
        .collect()
}

/// The frames that went in a direction, with the name of their recording.
fn frames(dir: &str) -> Vec<(String, String)> {
    let mut frames = Vec::new();
    for (name, lines) in recordings() {
        for line in lines {
            if let (Some(frame), true) = (line.frame, line.dir.as_deref() == Some(dir)) {
                frames.push((name.clone(), frame.get().to_owned()));
            }
        }
    }
    frames
}

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// The frames are the same except for members that are null, which this crate leaves out.
#[track_caller]
fn assert_alike(left: &str, right: &str) {
    let [left, right] = [left, right].map(|text| {
        let mut frame: Map<String, Value> = serde_json::from_str(text).unwrap();
        frame.retain(|_, value| !value.is_null());
        Value::Object(frame).to_string()
    });
    assert_same(&left, &right);
}

/// The conversation of a frame and its items, which stay raw in it, are read and written again too.
fn read_on(name: &str, session: Option<&str>, items: Option<&str>) {
    let limits = Limits::default();
    if let Some(session) = session {
        let read = Session::parse(session, &limits).unwrap();
        assert_same(&written(&read), session);
        assert!(read.get("messages").is_some() || name.contains("status"));
    }
    if let Some(items) = items {
        let read = ChatItem::list(items, &limits).unwrap();
        assert_same(&written(&read), items);
    }
}

#[test]
fn every_host_frame_round_trips() {
    let limits = Limits::default();
    let frames = frames("s2c");
    assert!(frames.len() > 300, "{}", frames.len());
    for (name, text) in &frames {
        let frame = ServerFrame::decode(text, &limits)
            .unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        let mut expected: Value = serde_json::from_str(text).unwrap();
        let (mut session, mut items) = (None, None);
        match &frame {
            // What only newer hosts send.
            ServerFrame::Unknown { tag, .. } => {
                let newer = ["AGENT_PROFILE", "DASHBOARD_SNAPSHOT"];
                assert!(newer.contains(&&**tag), "{name}: unknown: {text}");
            }
            ServerFrame::Connected(connected) => {
                session = connected.session.as_ref().map(Json::get);
                items = connected.chat_items.as_ref().map(Json::get);
            }
            ServerFrame::Output(output) => {
                session = output.session.as_ref().map(Json::get);
                items = output.chat_items.as_ref().map(Json::get);
            }
            ServerFrame::Event(event) => {
                assert!(event.id.is_some() && event.ts.is_some() && event.session_id.is_some());
                match &event.kind {
                    EventKind::Unknown { tag, .. } => assert_eq!(tag, "turn_result", "{name}"),
                    EventKind::SessionSync(synced) => session = Some(synced.get()),
                    // Ours has the question in both places.
                    EventKind::AskUser(_) => expected["text"] = expected["question"].clone(),
                    EventKind::LlmResult(result) => {
                        let usage: Usage = result.usage.as_ref().unwrap().parse().unwrap();
                        assert!(usage.input_tokens > 100);
                    }
                    _ => {}
                }
                assert_alike(&written(&event), &expected.to_string());
            }
            _ => {}
        }
        assert_alike(&written(&frame), &expected.to_string());
        assert_eq!(frame.name(), expected["type"]);
        read_on(name, session, items);
    }
}

#[test]
fn every_client_frame_round_trips() {
    let limits = Limits::default();
    let frames = frames("c2s");
    assert!(frames.len() > 80, "{}", frames.len());
    for (name, text) in &frames {
        let frame = match ClientFrame::decode(text, &limits) {
            Ok(frame) => frame,
            Err(error) => {
                let message = error::refusal(text, &error).message;
                let is_named = message.starts_with("unknown message type: ")
                    || message == "Invalid CONNECT: member `payload` is not an object"
                    || message == "Invalid CONNECT: member `signature` is not a string";
                assert!(is_named, "{name}: {message}: {text}");
                continue;
            }
        };
        assert!(
            !matches!(frame, ClientFrame::Unknown { .. }),
            "{name}: {text}"
        );
        assert_alike(&written(&frame), text);
        if let ClientFrame::Input(input) = &frame {
            assert!(input.images(&limits).is_ok() && input.files(&limits).is_ok());
        }
    }
}

#[test]
fn signed_payloads_are_kept_verbatim() {
    for (_, text) in frames("c2s") {
        let Ok(ClientFrame::Connect(connect)) = ClientFrame::decode(&text, &Limits::default())
        else {
            continue;
        };
        let sent: Value = serde_json::from_str(&text).unwrap();
        let Some(payload) = &connect.signed.payload else {
            assert!(sent.get("payload").is_none());
            continue;
        };
        assert!(text.contains(payload.get()));
        assert_same(payload.get(), &sent["payload"].to_string());
        let shown = codec::redact(&text);
        let signature = connect.signed.signature.unwrap();
        assert!(!shown.contains(&*signature), "{shown}");
    }
}

#[test]
fn invalid_frames_are_refused_with_the_hosts_errors() {
    let mut answered = 0;
    for (_, lines) in recordings() {
        for pair in lines.windows(2) {
            let (Some(raw), Some(answer)) = (&pair[0].raw, &pair[1].frame) else {
                continue;
            };
            assert_eq!(pair[0].conn, pair[1].conn);
            let error = ClientFrame::decode(raw, &Limits::default()).unwrap_err();
            // What is wrong is told in words of its own, and where in the host's.
            let place = |text: &str| match text.split_once("Invalid JSON: ") {
                Some((before, after)) => {
                    format!("{before}{}", &after[after.find(" at line").unwrap()..])
                }
                None => text.to_owned(),
            };
            let answered_here = written(&error::refusal(raw, &error));
            assert_same(&place(&answered_here), &place(answer.get()));
            answered += 1;
        }
    }
    assert_eq!(answered, 4);
}
