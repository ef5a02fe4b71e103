//! The body of a chat over HTTP: [`read_body`].

use rpc_core::json::DecodeErrorKind;
use rpc_core::{DecodeError, Limits};

use crate::frame::ChatRequest;

/// Reads the body of `POST /v1/chat/stream`: the chat itself, without an envelope.
///
/// Known servers check it less strictly than over a WebSocket, and so does this function: unknown
/// members are ignored, malformed ids are left out, and only the size of the whole body is limited,
/// to [`Limits::max_message_bytes`].
///
/// # Errors
/// [`DecodeError`]; the same body fails again.
pub fn read_body(body: &[u8], limits: &Limits) -> Result<ChatRequest, DecodeError> {
    let text = std::str::from_utf8(body).map_err(|_| DecodeError::new(DecodeErrorKind::Binary))?;
    ChatRequest::decode_lax(text, limits)
}

/// Returns the body of the `400` response to a body that is not a chat, as known servers send it.
#[cfg(any(feature = "server", test))]
pub(crate) fn refusal(body: &[u8]) -> &'static str {
    match std::str::from_utf8(body).map(rpc_core::Json::new) {
        Ok(Ok(_)) => "Invalid request shape",
        _ => "Invalid JSON body",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Skill;

    fn read(body: &str) -> Result<ChatRequest, DecodeError> {
        read_body(body.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_body_is_a_bare_chat_request() {
        let body = r#"{"message":"hi","history":[{"id":"msg_1"},null],"model":"m",
            "sessionId":"sess_a","resourceId":"user_a","workspace":"/tmp","suggestions":["s"],
            "activeSkills":[{"name":"n","instructions":"i"}]}"#;
        let request = read(body).unwrap();
        assert_eq!((&*request.message, &*request.model), ("hi", "m"));
        assert_eq!(request.history.len(), 2);
        assert_eq!(request.session_id.unwrap().as_str(), "sess_a");
        assert_eq!(request.active_skills, [Skill::new("n", "i")]);
        assert_eq!(request.suggestions, ["s"]);
        assert_eq!(request.workspace.as_deref(), Some("/tmp"));
    }

    #[test]
    fn http_accepts_what_the_websocket_refuses() {
        let long = "x".repeat(100_001);
        let body = format!(
            r#"{{"message":"{long}","history":[],"model":"m","more":1,"sessionId":"a-b","resourceId":"x"}}"#
        );
        let request = read(&body).unwrap();
        assert_eq!((request.session_id, request.resource_id), (None, None));
        assert_eq!(request.message.len(), 100_001);
    }

    #[test]
    fn a_bad_body_gets_the_error_text_of_known_servers() {
        for body in [
            "",
            "{",
            "nope",
            "{} {}",
            r#"{"message":"#,
            r#"{"message":1,"#,
        ] {
            assert!(read(body).is_err(), "{body}");
            assert_eq!(refusal(body.as_bytes()), "Invalid JSON body", "{body}");
        }
        for body in [
            "[]",
            "7",
            "{}",
            r#"{"message":"hi","history":[]}"#,
            r#"{"message":1,"history":[],"model":"m"}"#,
            r#"{"message":"hi","history":{},"model":"m"}"#,
            r#"{"message":"hi","history":[],"model":"m","suggestions":[1]}"#,
            r#"{"message":"hi","history":[],"model":"m","activeSkills":[{}]}"#,
        ] {
            assert!(read(body).is_err(), "{body}");
            assert_eq!(refusal(body.as_bytes()), "Invalid request shape", "{body}");
        }
        assert!(read_body(b"\xff", &Limits::default()).is_err());
        assert_eq!(refusal(b"\xff"), "Invalid JSON body");
    }
}
