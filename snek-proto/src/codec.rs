//! Encoding into a buffer or a shared text. Decoding is a method of each frame.

use std::borrow::Cow;

use rpc_core::json::{DecodeErrorKind, each_member};
use rpc_core::{CallId, Hex16, IdForm as _, Limits, Refused};
use serde::Serialize;

use crate::frame::{ClientFrame, LOGIN};

pub use rpc_core::encode::{encode, encode_into};

/// Appends a request, with the members in the specification's order. `args` and `kwargs` may be any
/// values of the right JSON type.
///
/// # Errors
/// [`Refused::Invalid`] if `args` is not written as an array or `kwargs` not as an object,
/// [`Refused::Encode`] if they are not JSON. The buffer may then hold a part of it.
pub fn encode_request(
    buffer: &mut String,
    method: &str,
    args: &impl Serialize,
    kwargs: &impl Serialize,
    call_id: CallId,
) -> Result<(), Refused> {
    encode_method(buffer, method, args, kwargs)?;
    encode_call_id(buffer, call_id)
}

/// Appends a request up to its `callId`, which [`encode_call_id`] adds.
///
/// # Errors
/// As for [`encode_request`].
pub(crate) fn encode_method(
    buffer: &mut String,
    method: &str,
    args: &impl Serialize,
    kwargs: &impl Serialize,
) -> Result<(), Refused> {
    buffer.push_str("{\"method\":");
    encode_into(method, buffer)?;
    buffer.push_str(",\"args\":");
    encode_checked(buffer, args, b'[', "args", "an array")?;
    buffer.push_str(",\"kwargs\":");
    encode_checked(buffer, kwargs, b'{', "kwargs", "an object")
}

/// Appends the end of a request.
///
/// # Errors
/// Never in practice: an id is always valid JSON.
pub(crate) fn encode_call_id(buffer: &mut String, call_id: CallId) -> Result<(), Refused> {
    buffer.push_str(",\"callId\":\"");
    // Its digits need no escapes, and a string takes all that is written.
    let _ = Hex16::write(call_id.raw(), buffer);
    buffer.push_str("\"}");
    Ok(())
}

fn encode_checked(
    buffer: &mut String,
    value: &impl Serialize,
    first: u8,
    what: &'static str,
    expected: &str,
) -> Result<(), Refused> {
    let at = buffer.len();
    encode_into(value, buffer)?;
    match buffer.as_bytes().get(at) == Some(&first) {
        true => Ok(()),
        false => Err(Refused::invalid(what, format!("it is not {expected}"))),
    }
}

/// Appends a successful answer. `call_id` is the request's id as JSON.
///
/// # Errors
/// [`Refused::Encode`] if `data` is not JSON. The buffer may then hold a part of it.
pub(crate) fn encode_success(
    buffer: &mut String,
    call_id: &str,
    data: &impl Serialize,
) -> Result<(), Refused> {
    buffer.push_str("{\"callId\":");
    buffer.push_str(call_id);
    buffer.push_str(",\"success\":true,\"data\":");
    encode_into(data, buffer)?;
    buffer.push('}');
    Ok(())
}

/// Appends a failed answer. `call_id` is the request's id as JSON.
///
/// # Errors
/// Never in practice: a text is always valid JSON.
pub(crate) fn encode_failure(
    buffer: &mut String,
    call_id: &str,
    error: &str,
) -> Result<(), Refused> {
    buffer.push_str("{\"callId\":");
    buffer.push_str(call_id);
    buffer.push_str(",\"success\":false,\"data\":{\"error\":");
    encode_into(error, buffer)?;
    buffer.push_str("}}");
    Ok(())
}

/// Returns a frame in a form that is safe to log: without the arguments of a login, and without any
/// text that is not a frame of either side, because it might be a login, or a part of one. What is borrowed is
/// the whole frame.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let limits = Limits::unlimited();
    match ClientFrame::decode(text, &limits) {
        Ok(frame) if frame.method.eq_ignore_ascii_case(LOGIN) => {
            let call_id = frame.call_id.as_ref().map_or("null", |id| id.get());
            Cow::Owned(format!(
                r#"{{"method":"login","args":["***"],"callId":{call_id}}}"#
            ))
        }
        Ok(_) => Cow::Borrowed(text),
        // Frames of the server have no method, and no arguments either.
        Err(error)
            if error.kind() == DecodeErrorKind::MissingMember("method") && !has_arguments(text) =>
        {
            Cow::Borrowed(text)
        }
        Err(_) => Cow::Owned(format!("(no frame, {} bytes)", text.len())),
    }
}

/// Returns whether a frame has arguments, as a request whose method is missing.
fn has_arguments(text: &str) -> bool {
    let mut has = false;
    let read = each_member(text, |name, _| has |= name == "args" || name == "kwargs");
    has || read.is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_frame_never_holds_a_password() {
        for text in [
            r#"{"method":"login","args":["ann","hunter2"],"kwargs":{},"callId":"1"}"#,
            r#"{"method":"log\u0069n","kwargs":{"password":"hunter2"}}"#,
            r#"{"method":"login","args":["ann","hunter2""#,
            r#"{"method":"login","args":{"password":"hunter2"}}"#,
            r#"{"method":1,"args":["hunter2"]}"#,
            r#"{"mehtod":"login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"\u0061rgs":["ann","hunter2"],"callId":"1"}"#,
            r#"{"kwargs":{"password":"hunter2"}}"#,
            r#"{"method":"Login","args":["ann","hunter2"],"callId":"1"}"#,
        ] {
            assert!(!redact(text).contains("hunter2"), "{text}");
        }
        let login = r#"{"method":"login","args":["a","b"],"callId":7}"#;
        assert_eq!(
            redact(login),
            r#"{"method":"login","args":["***"],"callId":7}"#
        );
    }

    #[test]
    fn other_frames_are_logged_as_they_are() {
        for text in [
            r#"{"method":"ping","args":[],"kwargs":{},"callId":"1"}"#,
            r#"{"event":"message","message":"my login"}"#,
            r#"{"callId":"1","data":null}"#,
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(same) if same == text));
        }
    }
}
