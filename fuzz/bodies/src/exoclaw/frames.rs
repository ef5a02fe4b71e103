//! Frames, and keys of sessions.

use exoclaw_proto::budget::Exceeded;
use exoclaw_proto::codec;
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{ClientFrame, Request, ServerFrame, StreamEvent, Token};
use rpc_core::Limits;
use rpc_core::json::first_byte;
use serde_json::value::RawValue;

use super::session_keys;
use crate::frames::{frame, round_trip};
use crate::plain::members;
use crate::script::Script;

/// Decoding, encoding and decoding again gives the same frame, and a token is never logged.
pub fn client_frames(text: &str) {
    let limits = Limits::default();
    redacted(text, &limits);
    let decoded = round_trip(text, &limits, ClientFrame::decode).map(|it| it.0);
    let id = Request::id_of(text, &limits);
    let request = Request::decode(text, &limits);
    match &decoded {
        Ok(ClientFrame::Request(frame)) => {
            assert!(request.as_ref() == Ok(frame), "two decoders differ");
            if first_byte(text) == Some(b'{') {
                assert!(id.as_ref() == Some(&frame.id), "two ways to the id differ");
            }
            let known = frame.call.method().is_some();
            let refusal = frame.call.refusal(&limits);
            assert!(known == refusal.is_none(), "what is refused is not known");
        }
        Ok(ClientFrame::Token(token)) => {
            assert!(request.is_err() && id.is_none(), "a token and a request");
            assert!(
                Token::decode(text, &limits).as_ref() == Ok(token),
                "two decoders differ"
            );
        }
        _ => assert!(request.is_err(), "two decoders differ"),
    }
}

/// Decoding, encoding and decoding again gives the same frame.
pub fn server_frames(text: &str) {
    let limits = Limits::default();
    redacted(text, &limits);
    let Ok((frame, again)) = frame(text, &limits, ServerFrame::decode) else {
        return;
    };
    match &frame {
        ServerFrame::Hello(hello) => drop(hello.extensions()),
        ServerFrame::Stream { id, event } => {
            let mut step = String::new();
            let written = codec::encode_event(&mut step, id, event);
            assert!(written.is_ok(), "a step must encode");
            assert_eq!(step, again.as_str(), "two ways to write a step differ");
            if let StreamEvent::Error(words) = event {
                classified(words);
            }
        }
        ServerFrame::Error { error, .. } => classified(error),
        _ => {}
    }
}

/// A key is its parts and its text, and nothing else has them.
///
/// The input is eight texts, each one byte of length and the text: the parts of two keys. The whole
/// input is read as the text of a key, too.
pub fn session_key(data: &[u8]) {
    let mut script = Script::new(data);
    let one = [(); 4].map(|()| script.text());
    let two = [(); 4].map(|()| script.text());
    session_keys::parts(one, two);
    session_keys::text(std::str::from_utf8(data).unwrap_or_default());
}

/// Words are distinguished, and those of a budget give its numbers back.
fn classified(words: &str) {
    let error = RpcError::new(words);
    let kind = error.kind();
    if let Some(exceeded) = Exceeded::parse(words) {
        assert_eq!(kind, ErrorKind::BudgetExceeded, "the kind of a budget");
        let again = Exceeded::parse(&exceeded.to_string());
        assert_eq!(again, Some(exceeded), "a budget's words parse");
    }
}

/// No log shows a token, wherever in the object it stands and however often.
fn redacted(text: &str, limits: &Limits) {
    const HIDDEN: &str = r#"{"token":"***"}"#;
    let shown = codec::redact(text);
    if Token::decode(text, limits).is_ok() {
        assert_eq!(shown, HIDDEN, "a token is shown");
    }
    if shown == HIDDEN {
        return;
    }
    let is_token = |(name, value): &(String, &RawValue)| name == "token" && value.get() != "null";
    if members(text).is_some_and(|members| members.iter().any(is_token)) {
        assert_ne!(shown, text, "a frame with a token is shown");
    }
}
