//! Bodies of the fuzz targets of frames.

use rpc_core::{DecodeError, Json, Limits, Text};
use serde::Serialize;

use super::read::{assert_from, assert_no_secrets, members};
use crate::error::{self, InvalidJson};
use crate::frame::{ChatItem, ClientFrame, EventKind, ServerFrame, Session};
use crate::{codec, limits};

/// Decoding, encoding and decoding again gives the same, nothing is written that was not read, what
/// is refused is answered, and no secret is logged.
pub fn client_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    redacted(text);
    let limits = limits::server_limits();
    let frame = match ClientFrame::decode(text, &limits) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(
                !matches!(members(text), Some(known) if is_new(&known)),
                "a frame of a new type is refused"
            );
            refused(text, &error);
            return;
        }
    };
    let once = written(&frame);
    match &frame {
        ClientFrame::Input(frame) => {
            if let (Ok(_), Ok(files)) = (frame.images(&limits), frame.files(&limits)) {
                assert!(codec::to_json(&files).is_ok(), "files must encode");
            }
        }
        ClientFrame::Response(frame) => drop(frame.answer.text()),
        ClientFrame::Unknown { tag, .. } => {
            assert!(!error::unknown_type(tag).message.is_empty(), "an answer");
        }
        _ => {}
    }
    match ClientFrame::decode(once.as_str(), &limits) {
        Ok(again) => assert!(again == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
    compared(text, &once);
    too_large(text, |limits| ClientFrame::decode(text, limits).is_err());
}

/// The same for a frame of a server; its conversation and its items survive too.
pub fn server_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    redacted(text);
    let limits = limits::client_limits();
    let Ok(frame) = ServerFrame::decode(text, &limits) else {
        assert!(
            !matches!(members(text), Some(known) if is_new(&known)),
            "a frame of a new type is refused"
        );
        return;
    };
    let once = written(&frame);
    match &frame {
        ServerFrame::Connected(frame) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        ServerFrame::Output(frame) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        ServerFrame::Event(event) => lists(&event.kind, &limits),
        ServerFrame::OnboardRequired(frame) => drop(frame.methods(&limits)),
        _ => {}
    }
    match ServerFrame::decode(once.as_str(), &limits) {
        Ok(again) => assert!(again == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
    compared(text, &once);
    too_large(text, |limits| ServerFrame::decode(text, limits).is_err());
}

fn written(frame: &impl Serialize) -> Text {
    match codec::encode(frame) {
        Ok(text) => text,
        Err(error) => panic!("a decoded frame must encode: {error}"),
    }
}

/// Whether these are the members of a frame whose type nobody knows.
fn is_new(members: &serde_json::Map<String, serde_json::Value>) -> bool {
    let tag = members.get("type").and_then(serde_json::Value::as_str);
    tag.is_some_and(|tag| tag == "later")
}

fn compared(text: &str, once: &Text) {
    if let (Some(read), Some(written)) = (members(text), members(once.as_str())) {
        assert_from(&written, &read);
    }
}

/// The conversation and its items, which frames keep raw.
fn read_on(session: Option<&Json>, items: Option<&Json>, limits: &Limits) {
    if let Some(session) = session
        && let Ok(read) = Session::parse(session.get(), limits)
    {
        let once = written(&read);
        match Session::parse(once.as_str(), limits) {
            Ok(again) => assert!(again == read, "the round trip changed the session"),
            Err(error) => panic!("an encoded session must decode: {error}"),
        }
        drop((read.turn(), read.number("updated"), read.mode()));
    }
    if let Some(items) = items
        && let Ok(read) = ChatItem::list(items.get(), limits)
    {
        let once = codec::to_json(&read);
        match once.map(|once| ChatItem::list(once.get(), limits)) {
            Ok(Ok(again)) => assert!(again == read, "the round trip changed the items"),
            error => panic!("items must encode and decode: {error:?}"),
        }
    }
}

/// Lists in events, which stay raw in them, are read or refused.
fn lists(event: &EventKind, limits: &Limits) {
    match event {
        EventKind::AskUser(it) => drop((it.options(limits), it.fields(limits))),
        EventKind::ApprovalNeeded(it) => drop(it.batch(limits)),
        EventKind::FilesReceived(it) => drop(it.files(limits)),
        EventKind::LlmResult(it) => drop(it.usage()),
        EventKind::SessionSync(session) => read_on(Some(session), None, limits),
        _ => {}
    }
}

/// The size counts before anything else.
fn too_large(text: &str, is_refused: impl Fn(&Limits) -> bool) {
    let limits = |bytes| Limits::default().with_max_message_bytes(bytes);
    assert!(is_refused(&limits(text.len() - 1)), "one byte too many");
    assert!(!is_refused(&limits(text.len())), "as many as may be");
}

/// What is refused is answered, and what is said about its JSON is true.
fn refused(text: &str, error: &DecodeError) {
    let answer = error::refusal(text, error);
    let is_json = Json::new(text).is_ok();
    let says_no_json = answer.message.starts_with("Invalid JSON: ");
    assert!(says_no_json || is_json || text.is_empty(), "no JSON");
    if is_json {
        assert_eq!(InvalidJson::find(text), None, "JSON is not invalid");
    }
    let max = limits::MAX_RECEIVED + limits::TRUNCATED.len();
    let received = answer.received.as_ref();
    let is_short = received.is_none_or(|received| received.chars().count() <= max);
    assert!(is_short, "no more than may be goes back");
    let once = written(&answer);
    let decoded = ServerFrame::decode(once.as_str(), &Limits::default());
    assert!(matches!(decoded, Ok(ServerFrame::Error(_))), "an answer");
}

fn redacted(text: &str) {
    let shown = codec::redact(text);
    if shown.starts_with("(not shown") {
        return;
    }
    assert!(Json::new(&shown).is_ok(), "what is shown is JSON");
    if let Ok(shown) = serde_json::from_str(&shown) {
        assert_no_secrets(&shown);
    }
}
