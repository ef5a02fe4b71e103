//! [`ChatRequest`]: what a client says, and with which history.

use rpc_core::json::DecodeErrorKind;
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

/// What a client says. Acolyte specification, *Contract shape*; these are all the members there
/// are: a server refuses others, and null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatRequest {
    /// What the user says; may be empty.
    pub message: Str,
    /// What was said before, oldest first: [`HistoryItem`]s, but servers do not check that.
    pub history: Vec<Json>,
    /// The model that is to answer.
    pub model: Str,
    /// The conversation; without it nothing is remembered.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What the memory belongs to.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<ResourceId>,
    /// Skills that are on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active_skills: Vec<Skill>,
    /// Hints for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Str>,
    /// The folder that tools work in.
    #[serde(default, deserialize_with = "some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Str>,
}

/// A member that may be absent, which is not the same as null.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// As a [`ChatRequest`] is read over HTTP.
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

/// An id; one of another form is left out.
fn lax_id<'de, D: Deserializer<'de>, K: Kind>(from: D) -> Result<Option<Id<K>>, D::Error> {
    let text: Str = loose::text(from)?;
    Ok(Id::parse(&text).ok())
}

/// Instructions with a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The name; not empty.
    pub name: Str,
    /// What the model is told; not empty.
    pub instructions: Str,
}

/// Why a server would refuse a [`ChatRequest`]. Sending it again fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// A text is too long.
    #[error("`{member}` has more than {max} UTF-16 code units")]
    TooLong {
        /// The member.
        member: &'static str,
        /// The limit in UTF-16 code units.
        max: usize,
    },
    /// A list is too long.
    #[error("`{member}` has more than {max} items")]
    TooMany {
        /// The member.
        member: &'static str,
        /// The limit.
        max: usize,
    },
    /// A skill has no name or no instructions.
    #[error("`activeSkills` has an item with an empty `{member}`")]
    EmptySkill {
        /// The member.
        member: &'static str,
    },
}

impl ChatRequest {
    /// This message to this model, without a history.
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

    /// Adds a message behind the history.
    ///
    /// # Errors
    /// If the item is not JSON, which no item is.
    pub fn with_history_item(mut self, item: &HistoryItem) -> Result<Self, Refused> {
        self.history.push(Json::of(item)?);
        Ok(self)
    }

    /// Sets [`workspace`](Self::workspace).
    #[must_use]
    pub fn with_workspace(mut self, workspace: impl Into<Str>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Checks the limits that servers keep on WebSockets.
    ///
    /// # Errors
    /// [`RequestFault`]; a server would refuse the request without saying why.
    pub fn validate(&self) -> Result<(), RequestFault> {
        let text = |member, text: &str, max| match fits(text, max) {
            true => Ok(()),
            false => Err(RequestFault::TooLong { member, max }),
        };
        let list = |member, len, max| match len <= max {
            true => Ok(()),
            false => Err(RequestFault::TooMany { member, max }),
        };
        text("message", &self.message, MAX_MESSAGE_UNITS)?;
        list("history", self.history.len(), MAX_HISTORY)?;
        text("model", &self.model, MAX_MODEL_UNITS)?;
        for skill in &self.active_skills {
            for (member, text) in [("name", &skill.name), ("instructions", &skill.instructions)] {
                if text.is_empty() {
                    return Err(RequestFault::EmptySkill { member });
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

    /// Decodes a request that stands for itself, as strictly as servers read it on a WebSocket: no
    /// other members, no null, ids of their form, and within the [limits](Self::validate).
    ///
    /// # Errors
    /// [`DecodeError`]; decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let request: Self = json::decode_js(text, limits)?;
        Ok(request.validate().map(|()| request)?)
    }

    /// Decodes the body of a chat over HTTP, where known servers are not strict: other members are
    /// ignored, null counts as absent, an id of another form is left out, and texts may be long.
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

impl From<RequestFault> for DecodeError {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::TooLong { member, .. } => Self::bad_value(member, "short enough"),
            RequestFault::TooMany { max, .. } => Self::new(DecodeErrorKind::TooManyItems { max }),
            RequestFault::EmptySkill { member } => Self::bad_value(member, "a text with contents"),
        }
    }
}

impl Skill {
    /// A skill.
    pub fn new(name: impl Into<Str>, instructions: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            instructions: instructions.into(),
        }
    }
}
