//! Encoding into a buffer or a shared text. Decoding is a method of each frame.

use std::borrow::Cow;

use rpc_core::json::tagged::Word;
use rpc_core::json::{self, Tagged, first_byte};
use rpc_core::{CallId, Limits, Refused};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use crate::frame::{StreamEvent, Token};

pub use rpc_core::encode::{encode, encode_into};

/// Appends a request: `{"id", "method", "params"}`. The parameters may be any JSON value.
///
/// # Errors
/// [`Refused::Encode`] if `params` is not JSON. The buffer may then hold a part of it.
pub fn encode_request(
    buffer: &mut String,
    id: CallId,
    method: &str,
    params: &impl Serialize,
) -> Result<(), Refused> {
    buffer.push_str("{\"id\":");
    encode_into(&id, buffer)?;
    buffer.push_str(",\"method\":");
    encode_into(method, buffer)?;
    buffer.push_str(",\"params\":");
    encode_into(params, buffer)?;
    buffer.push('}');
    Ok(())
}

/// Appends an answer: `{"id", "result"}`. `id` is written as JSON: a text becomes a string.
///
/// # Errors
/// [`Refused::Encode`] if `id` or `result` is not JSON. The buffer may then hold a part of it.
pub fn encode_result(
    buffer: &mut String,
    id: &impl Serialize,
    result: &impl Serialize,
) -> Result<(), Refused> {
    answer(buffer, id, ",\"result\":", result)
}

/// Appends the answer to a request that failed: `{"id", "error"}`.
///
/// # Errors
/// [`Refused::Encode`] if `id` is not JSON. The buffer may then hold a part of it.
pub fn encode_error(buffer: &mut String, id: &impl Serialize, error: &str) -> Result<(), Refused> {
    answer(buffer, id, ",\"error\":", error)
}

/// Appends one step of a streamed answer: `{"id", "event", "data"}`.
///
/// # Errors
/// [`Refused::Encode`] if `id` or the data is not JSON. The buffer may then hold a part of it.
pub fn encode_event(
    buffer: &mut String,
    id: &impl Serialize,
    event: &StreamEvent,
) -> Result<(), Refused> {
    encode_tagged(buffer, id, event)
}

/// Appends an id and the members of a tagged value.
pub(crate) fn encode_tagged(
    buffer: &mut String,
    id: &impl Serialize,
    value: &impl Tagged,
) -> Result<(), Refused> {
    struct Frame<'s, I, T>(&'s I, &'s T);
    impl<I: Serialize, T: Tagged> Serialize for Frame<'_, I, T> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let mut frame = to.serialize_map(None)?;
            frame.serialize_entry(&Word("id"), self.0)?;
            self.1.write(&mut frame)?;
            frame.end()
        }
    }
    encode_into(&Frame(id, value), buffer)
}

/// Appends a step like [`encode_event`], with a borrowed text as its data.
pub(crate) fn encode_text(
    buffer: &mut String,
    id: &impl Serialize,
    text: &str,
) -> Result<(), Refused> {
    answer(buffer, id, ",\"event\":\"text\",\"data\":", text)
}

/// Appends a frame with an id and one more member, of which this is the beginning.
fn answer<T: Serialize + ?Sized>(
    buffer: &mut String,
    id: &impl Serialize,
    member: &str,
    value: &T,
) -> Result<(), Refused> {
    buffer.push_str("{\"id\":");
    encode_into(id, buffer)?;
    buffer.push_str(member);
    encode_into(value, buffer)?;
    buffer.push('}');
    Ok(())
}

/// Returns a frame in a form that is safe to log: without the value of any member `token`, at any
/// depth, and without any text that does not decode, because it may be a misplaced token. What is borrowed
/// is the whole frame.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let is_frame = matches!(first_byte(text), Some(b'{' | b'['));
    // A frame that holds a token has the word in it, in some spelling, as it is or with escapes.
    if is_frame && !["oken", "OKEN", "\\"].iter().any(|it| text.contains(it)) {
        return Cow::Borrowed(text);
    }
    let limits = Limits::unlimited();
    if Token::decode(text, &limits).is_ok() {
        return Cow::Owned(r#"{"token":"***"}"#.to_owned());
    }
    match json::from_slice(text.as_bytes()) {
        Ok(value) if is_frame && !names_token(&value) => Cow::Borrowed(text),
        _ => Cow::Owned(format!("(not shown, {} bytes)", text.len())),
    }
}

/// Returns whether an object in a JSON value has a member `token`, in capitals or not.
fn names_token(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(names_token),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("token") || names_token(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_frame_never_holds_a_token() {
        for text in [
            r#"{"token":"hunter2"}"#,
            r#"{"tok\u0065n":"hunter2"}"#,
            r#"{"token":"hunter2""#,
            r#"{"token":["hunter2"]}"#,
            r#"{"token":"a","token":"hunter2"}"#,
            r#"{"token":null,"token":"hunter2"}"#,
            r#"[{"token":"hunter2""#,
            r#"[{"token":"hunter2"}]"#,
            r#"{"id":"1","method":"x","params":{"a":[{"t\u006fken":"hunter2"}]}}"#,
            r#""hunter2""#,
            "hunter2",
            r#"{"id":"1","method":"ping","token":"hunter2"}"#,
            r#"{"Token":"hunter2"}"#,
            r#"{"auth":{"TOKEN":"hunter2"}}"#,
        ] {
            let shown = redact(text);
            assert!(!shown.contains("hunter2"), "{text}");
            assert!(matches!(shown, Cow::Owned(_)), "{text} is not whole");
        }
    }

    #[test]
    fn other_frames_are_logged_as_they_are() {
        for text in [
            r#"{"id":"1","method":"ping"}"#,
            r#"{"id":"1","event":"usage","data":{"input_tokens":1,"output_tokens":2}}"#,
            r#"{"id":"1","event":"text","data":"a \"token\" \n"}"#,
            r#"["\n",null,true,-1,1,1.5,123456789012345678901234567890,"token"]"#,
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_request_has_the_member_order_of_the_specification() {
        let mut buffer = String::new();
        let id = CallId::from_raw(0xab);
        encode_request(
            &mut buffer,
            id,
            "ping",
            &std::collections::BTreeMap::<u8, u8>::new(),
        )
        .unwrap();
        assert_eq!(
            buffer,
            r#"{"id":"00000000000000ab","method":"ping","params":{}}"#
        );
    }
}
