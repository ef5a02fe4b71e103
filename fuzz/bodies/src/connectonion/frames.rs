//! Frames, and what they keep raw.

use connectonion_proto::error;
use connectonion_proto::frame::{
    AskField, BatchItem, ChatItem, ClientFrame, EventKind, OnboardMethod, ReceivedFile,
    ServerFrame, Session, Usage,
};
use connectonion_proto::{codec, limits};
use rpc_core::{DecodeError, Json, Limits, Text};

use super::read::{assert_from, assert_no_secrets, object};
use crate::frames::{round_trip, size_counts, written};

/// Decoding, encoding and decoding again gives the same, nothing is written that was not read, what
/// is refused is answered, and no secret is logged.
pub fn client_frames(text: &str) {
    redacted(text);
    let limits = limits::defaults();
    let (frame, once) = match round_trip(text, &limits, ClientFrame::decode) {
        Ok(read) => read,
        Err(error) => {
            assert!(!is_new(text), "a frame of a new type is refused");
            return refused(text, &error);
        }
    };
    match &frame {
        ClientFrame::Input(frame) => {
            if let (Ok(_), Ok(files)) = (frame.images(&limits), frame.files(&limits)) {
                assert!(Json::of(&files).is_ok(), "files must encode");
            }
        }
        ClientFrame::Response(frame) => drop(frame.answer.text()),
        ClientFrame::Unknown { tag, .. } => {
            assert!(!error::unknown_type(tag).message.is_empty(), "an answer");
        }
        _ => {}
    }
    compared(text, &once);
    size_counts(text, &Limits::default(), ClientFrame::decode);
}

/// The same for a frame of a server; its conversation and its items survive too.
pub fn server_frames(text: &str) {
    redacted(text);
    let limits = limits::defaults();
    let Ok((frame, once)) = round_trip(text, &limits, ServerFrame::decode) else {
        return assert!(!is_new(text), "a frame of a new type is refused");
    };
    match &frame {
        ServerFrame::Connected(frame) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        ServerFrame::Output(frame) => {
            read_on(frame.session.as_ref(), frame.chat_items.as_ref(), &limits);
        }
        ServerFrame::Event(event) => lists(&event.kind, &limits),
        ServerFrame::OnboardRequired(frame) => drop(frame.methods.parse::<Vec<OnboardMethod>>()),
        _ => {}
    }
    compared(text, &once);
    size_counts(text, &Limits::default(), ServerFrame::decode);
}

/// Whether this is a frame whose type no one knows.
fn is_new(text: &str) -> bool {
    let tag = object(text).and_then(|mut members| members.remove("type"));
    tag.is_some_and(|tag| tag == "later")
}

fn compared(text: &str, once: &Text) {
    if let (Some(read), Some(written)) = (object(text), object(once.as_str())) {
        assert_from(&written, &read);
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
