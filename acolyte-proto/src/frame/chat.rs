//! [`ChatRequest`]: the user's message, with its history and options.

use rpc_core::json::lenient;
use rpc_core::{DecodeError, Json, Limits, Refused, Str, json};
use serde::{Deserialize, Deserializer, Serialize};

use super::history::HistoryItem;
use crate::id::{Id, Kind, ResourceId, SessionId};
use crate::limits::{
    MAX_HISTORY, MAX_MESSAGE_UNITS, MAX_MODEL_UNITS, MAX_SUGGESTION_UNITS, MAX_SUGGESTIONS,
    MAX_WORKSPACE_UNITS, fits,
};
use crate::loose;

/// The payload of a `chat.start`. Acolyte specification, *Contract shape*. The list of members is
/// complete: a server refuses any other, and null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatRequest {
    /// The user's message; may be empty.
    pub message: Str,
    /// The conversation so far, oldest first: [`HistoryItem`]s, but servers do not check that.
    pub history: Vec<Json>,
    /// The model to use.
    pub model: Str,
    /// The conversation; without it the server remembers nothing.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The owner of the memory.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<ResourceId>,
    /// The active skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active_skills: Vec<Skill>,
    /// Hints for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Str>,
    /// The folder in which tools work.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Str>,
}

/// Reads a member that may be absent, but not null.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A [`ChatRequest`] as read over HTTP.
#[derive(Deserialize)]
#[serde(remote = "ChatRequest", rename_all = "camelCase")]
struct LaxRequest {
    message: Str,
    history: Vec<Json>,
    model: Str,
    #[serde(default, deserialize_with = "lax_id")]
    session_id: Option<SessionId>,
    #[serde(default, deserialize_with = "lax_id")]
    resource_id: Option<ResourceId>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    active_skills: Vec<Skill>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    suggestions: Vec<Str>,
    workspace: Option<Str>,
}

/// Reads an id; one of another form is left out.
fn lax_id<'de, D: Deserializer<'de>, K: Kind>(from: D) -> Result<Option<Id<K>>, D::Error> {
    let text: Str = loose::text(from)?;
    Ok(Id::read(&text))
}

/// Instructions with a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The name; not empty.
    pub name: Str,
    /// The instructions for the model; not empty.
    pub instructions: Str,
}

impl ChatRequest {
    /// Creates a request with this message and model, without a history.
    pub fn new(message: impl Into<Str>, model: impl Into<Str>) -> Self {
        Self {
            message: message.into(),
            history: Vec::new(),
            model: model.into(),
            session_id: None,
            resource_id: None,
            active_skills: Vec::new(),
            suggestions: Vec::new(),
            workspace: None,
        }
    }

    /// Adds a message at the end of the history.
    ///
    /// # Errors
    /// [`Refused::Encode`] if the item is not JSON, which does not happen.
    pub fn with_history_item(mut self, item: &HistoryItem) -> Result<Self, Refused> {
        self.history.push(Json::of(item)?);
        Ok(self)
    }

    /// Checks the limits that servers keep on WebSockets.
    ///
    /// # Errors
    /// [`DecodeError`] that names the member; a server would refuse the request without saying why.
    pub fn validate(&self) -> Result<(), DecodeError> {
        let text = |member, text: &str, max| match fits(text, max) {
            true => Ok(()),
            false => Err(DecodeError::bad_value(member, "short enough")),
        };
        let list = |member, len, max| match len <= max {
            true => Ok(()),
            false => Err(DecodeError::bad_value(member, "of few enough items")),
        };
        text("message", &self.message, MAX_MESSAGE_UNITS)?;
        list("history", self.history.len(), MAX_HISTORY)?;
        text("model", &self.model, MAX_MODEL_UNITS)?;
        for skill in &self.active_skills {
            for (member, text) in [("name", &skill.name), ("instructions", &skill.instructions)] {
                if text.is_empty() {
                    return Err(DecodeError::bad_value(member, "a text with contents"));
                }
            }
        }
        list("suggestions", self.suggestions.len(), MAX_SUGGESTIONS)?;
        for suggestion in &self.suggestions {
            text("suggestions", suggestion, MAX_SUGGESTION_UNITS)?;
        }
        let workspace = self.workspace.as_deref().unwrap_or_default();
        text("workspace", workspace, MAX_WORKSPACE_UNITS)
    }

    /// Decodes a request on its own, as strictly as servers read it on a WebSocket: no other
    /// members, no null, well-formed ids, and within the [limits](Self::validate).
    ///
    /// # Errors
    /// [`DecodeError`]; decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let request: Self = json::decode_js(text, limits)?;
        request.validate().map(|()| request)
    }

    /// Decodes the body of a chat over HTTP, where known servers are not strict: other members are
    /// ignored, null counts as absent, a malformed id is left out, and texts may be long.
    ///
    /// # Errors
    /// [`DecodeError`] if `message`, `model` or the array `history` is absent, or a member has
    /// another type. Decoding it again fails again.
    pub fn decode_lax(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Body(#[serde(with = "LaxRequest")] ChatRequest);
        json::decode_js(text, limits).map(|Body(request)| request)
    }
}

impl Skill {
    /// Creates a skill.
    pub fn new(name: impl Into<Str>, instructions: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            instructions: instructions.into(),
        }
    }
}
