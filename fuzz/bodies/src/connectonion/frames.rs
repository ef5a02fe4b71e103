//! Frames, and what they keep raw.

use connectonion_proto::error;
use connectonion_proto::frame::{
    AskField, BatchItem, ChatItem, ClientFrame, EventKind, OnboardMethod, ReceivedFile,
    ServerFrame, Session, Usage,
};
use connectonion_proto::{codec, limits};
use rpc_core::{DecodeError, Json, Limits};
use serde_json::Value;

use crate::frames::{frame, round_trip, written};

/// Decoding, encoding and decoding again gives the same, what is refused is answered, and no secret
/// is logged.
pub fn client_frames(text: &str) {
    redacted(text);
    let limits = limits::defaults();
    match frame(text, &limits, ClientFrame::decode).map(|it| it.0) {
        Err(error) => refused(text, &error),
        Ok(ClientFrame::Input(frame)) => {
            if let (Ok(_), Ok(files)) = (frame.images(&limits), frame.files(&limits)) {
                assert!(Json::of(&files).is_ok(), "files must encode");
            }
        }
        Ok(ClientFrame::Unknown { tag, .. }) => {
            assert!(!error::unknown_type(&tag).message.is_empty(), "an answer");
        }
        Ok(_) => {}
    }
}

/// The same for a frame of a server; its conversation and its items survive too.
pub fn server_frames(text: &str) {
    redacted(text);
    let limits = limits::defaults();
    match frame(text, &limits, ServerFrame::decode).map(|it| it.0) {
        Ok(ServerFrame::Connected(frame)) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        Ok(ServerFrame::Output(frame)) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        Ok(ServerFrame::Event(event)) => lists(&event.kind, &limits),
        Ok(ServerFrame::OnboardRequired(it)) => drop(it.methods.parse::<Vec<OnboardMethod>>()),
        _ => {}
    }
}

/// The conversation and its items, which frames keep raw.
fn read_on(session: Option<&Json>, items: Option<&Json>, limits: &Limits) {
    if let Some(session) = session
        && let Ok((read, _)) = round_trip(session.get(), limits, Session::parse)
    {
        drop((read.number("turn"), read.text("mode")));
    }
    if let Some(items) = items
        && let Ok(read) = ChatItem::list(items.get(), limits)
    {
        let once = Json::of(&read);
        match once.map(|once| ChatItem::list(once.get(), limits)) {
            Ok(Ok(again)) => assert!(again == read, "the round trip changed the items"),
            error => panic!("items must encode and decode: {error:?}"),
        }
    }
}

/// Lists in events, which stay raw in them, are read or refused.
fn lists(event: &EventKind, limits: &Limits) {
    match event {
        EventKind::AskUser(it) => drop(it.fields.as_ref().map(Json::parse::<Vec<AskField>>)),
        EventKind::ApprovalNeeded(it) => {
            drop(
                it.batch_remaining
                    .as_ref()
                    .map(Json::parse::<Vec<BatchItem>>),
            );
        }
        EventKind::FilesReceived(it) => drop(it.files.parse::<Vec<ReceivedFile>>()),
        EventKind::LlmResult(it) => drop(it.usage.as_ref().map(Json::parse::<Usage>)),
        EventKind::SessionSync(session) => read_on(Some(session), None, limits),
        _ => {}
    }
}

/// What is refused is answered, and what is said about its JSON is true.
fn refused(text: &str, error: &DecodeError) {
    let answer = error::refusal(text, error);
    let is_json = Json::new(text).is_ok();
    let says_no_json = answer.message.starts_with("Invalid JSON: ");
    assert!(says_no_json != is_json || text.is_empty(), "no JSON");
    let max = limits::MAX_RECEIVED + limits::TRUNCATED.len();
    let received = answer.received.as_ref();
    let is_short = received.is_none_or(|received| received.chars().count() <= max);
    assert!(is_short, "no more than may be goes back");
    let decoded = ServerFrame::decode(written(&answer).as_str(), &Limits::default());
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

/// No secret is in a frame that may be logged.
fn assert_no_secrets(shown: &Value) {
    match shown {
        Value::Object(members) => {
            for (name, value) in members {
                let secret = ["signature", "invite_code", "payment", "received"];
                let hidden = value.is_null() || value.as_str() == Some("***");
                let is_public = !secret.contains(&name.as_str());
                assert!(hidden || is_public, "a secret is shown");
                assert_no_secrets(value);
            }
        }
        Value::Array(items) => items.iter().for_each(assert_no_secrets),
        Value::String(text) => {
            let is_long_url = text.len() > 80 && text.starts_with("data:");
            assert!(!is_long_url, "a data URL is shown");
        }
        _ => {}
    }
}
