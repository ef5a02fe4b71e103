//! The body of a chat over HTTP: [`read_body`].

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, DecodeErrorKind, Field, Members, RawJson, Slot};

use crate::frame::{ChatRequest, Skill};
use crate::id::{ResourceId, SessionId};

/// Why a body is no chat. The display text is the body of the `400` answer, as known servers put it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is no JSON.
    #[error("Invalid JSON body")]
    NotJson(DecodeError),
    /// It is JSON, but no chat.
    #[error("Invalid request shape")]
    Shape(DecodeError),
}

/// Reads the body of `POST /v1/chat/stream`: the chat itself, without an envelope.
///
/// Known servers check it less strictly than over a WebSocket, and so does this: unknown members are
/// ignored, ids of another form are left out, null is absent, and no text is too long but for the
/// whole, which may have [`Limits::max_message_bytes`].
///
/// # Errors
/// [`BodyError`]; the same body would be refused again.
pub fn read_body<'a>(body: &'a [u8], limits: &Limits) -> Result<ChatRequest<'a>, BodyError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| BodyError::NotJson(DecodeError::new(DecodeErrorKind::Binary)))?;
    let read = decode::parse_object::<Body<'_>>(text, limits);
    let read = read.and_then(|body| body.into_request(limits));
    read.map_err(|error| match error.kind() {
        DecodeErrorKind::Syntax => BodyError::NotJson(error),
        DecodeErrorKind::NotAnObject if RawJson::new(text).is_err() => BodyError::NotJson(error),
        _ => BodyError::Shape(error),
    })
}

#[derive(Default)]
struct Body<'a> {
    message: Slot<Cow<'a, str>>,
    history: Slot<RawJson<'a>>,
    model: Slot<Cow<'a, str>>,
    session_id: Slot<RawJson<'a>>,
    resource_id: Slot<RawJson<'a>>,
    active_skills: Slot<RawJson<'a>>,
    suggestions: Slot<RawJson<'a>>,
    workspace: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for Body<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "message" => field.str("message", &mut self.message),
            "history" => field.raw_array("history", &mut self.history),
            "model" => field.str("model", &mut self.model),
            "sessionId" => field.raw("sessionId", &mut self.session_id),
            "resourceId" => field.raw("resourceId", &mut self.resource_id),
            "activeSkills" => field.raw_array("activeSkills", &mut self.active_skills),
            "suggestions" => field.raw_array("suggestions", &mut self.suggestions),
            "workspace" => field.str("workspace", &mut self.workspace),
            _ => field.skip(),
        }
    }
}

impl<'a> Body<'a> {
    fn into_request(self, limits: &Limits) -> Result<ChatRequest<'a>, DecodeError> {
        let message = self.message.require("message")?;
        let mut request = ChatRequest::new(message, self.model.require("model")?);
        let history = self.history.require("history")?;
        let items = decode::raw_list(history.get(), limits)?;
        request.history = items.into_iter().map(RawJson::into_owned).collect();
        let id = |slot: Slot<RawJson<'a>>| slot.take().and_then(RawJson::into_str);
        request.session_id = id(self.session_id).and_then(|id| SessionId::parse(&id).ok());
        request.resource_id = id(self.resource_id).and_then(|id| ResourceId::parse(&id).ok());
        if let Some(list) = self.active_skills.take() {
            let skills = decode::parse_objects(list.get(), limits, SkillBody::into_skill)?;
            request.active_skills = skills;
        }
        if let Some(list) = self.suggestions.take() {
            let texts = decode::parse_list::<String>(list.get(), limits)?;
            request.suggestions = texts.into_iter().map(Cow::Owned).collect();
        }
        request.workspace = self.workspace.take();
        Ok(request)
    }
}

#[derive(Default)]
struct SkillBody<'a> {
    name: Slot<Cow<'a, str>>,
    instructions: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for SkillBody<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "name" => field.str("name", &mut self.name),
            "instructions" => field.str("instructions", &mut self.instructions),
            _ => field.skip(),
        }
    }
}

impl SkillBody<'_> {
    fn into_skill(self) -> Result<Skill<'static>, DecodeError> {
        let name = self.name.require("name")?;
        Ok(Skill::new(name, self.instructions.require("instructions")?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<ChatRequest<'_>, BodyError> {
        read_body(body.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_body_is_the_chat_itself() {
        let body = r#"{"message":"hi","history":[{"id":"msg_1"},null],"model":"m",
            "sessionId":"sess_a","resourceId":"user_a","workspace":"/tmp","suggestions":["s"],
            "activeSkills":[{"name":"n","instructions":"i","more":1}]}"#;
        let request = read(body).unwrap();
        assert_eq!((&*request.message, &*request.model), ("hi", "m"));
        assert_eq!(request.history.len(), 2);
        assert_eq!(request.session_id.unwrap().as_str(), "sess_a");
        assert_eq!(request.active_skills, [Skill::new("n", "i")]);
        assert_eq!(request.suggestions, ["s"]);
        assert_eq!(request.workspace.as_deref(), Some("/tmp"));
    }

    #[test]
    fn what_a_websocket_would_refuse_passes() {
        let long = "x".repeat(100_001);
        let body = format!(
            r#"{{"message":"{long}","history":[],"model":"m","more":1,"sessionId":"a-b","resourceId":7}}"#
        );
        let request = read(&body).unwrap();
        assert_eq!((request.session_id, request.resource_id), (None, None));
        assert_eq!(request.message.len(), 100_001);
    }

    #[test]
    fn a_bad_body_gets_the_words_of_known_servers() {
        for body in ["", "{", "nope", "{} {}", r#"{"message":"#] {
            assert_eq!(
                read(body).unwrap_err().to_string(),
                "Invalid JSON body",
                "{body}"
            );
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
            assert_eq!(
                read(body).unwrap_err().to_string(),
                "Invalid request shape",
                "{body}"
            );
        }
        let bytes = read_body(b"\xff", &Limits::default()).unwrap_err();
        assert_eq!(bytes.to_string(), "Invalid JSON body");
    }
}
