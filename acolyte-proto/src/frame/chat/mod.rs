//! [`ChatRequest`]: what a client says, and with which history.

mod history;
mod wire;

use std::borrow::Cow;

use rpc_core::Refused;
use rpc_core::decode::RawJson;

pub use history::{HistoryItem, HistoryKind, Role};

use super::open::{owned, to_raw};
use crate::id::{ResourceId, SessionId};
use crate::limits::{
    MAX_HISTORY, MAX_MESSAGE_UNITS, MAX_MODEL_UNITS, MAX_SUGGESTION_UNITS, MAX_SUGGESTIONS,
    MAX_WORKSPACE_UNITS, fits,
};

/// What a client says. Acolyte specification, *Contract shape*; these are all the members there
/// are: a server refuses others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest<'a> {
    /// What the user says; may be empty.
    pub message: Cow<'a, str>,
    /// What was said before, oldest first: [`HistoryItem`]s, but servers do not check that.
    pub history: Vec<RawJson<'a>>,
    /// The model that is to answer.
    pub model: Cow<'a, str>,
    /// The conversation; without it nothing is remembered.
    pub session_id: Option<SessionId>,
    /// What the memory belongs to.
    pub resource_id: Option<ResourceId>,
    /// Skills that are on.
    pub active_skills: Vec<Skill<'a>>,
    /// Hints for the model.
    pub suggestions: Vec<Cow<'a, str>>,
    /// The folder that tools work in.
    pub workspace: Option<Cow<'a, str>>,
}

/// Instructions with a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Skill<'a> {
    /// The name; not empty.
    pub name: Cow<'a, str>,
    /// What the model is told; not empty.
    pub instructions: Cow<'a, str>,
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

impl<'a> ChatRequest<'a> {
    /// This message to this model, without a history.
    pub fn new(message: impl Into<Cow<'a, str>>, model: impl Into<Cow<'a, str>>) -> Self {
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
    pub fn with_history_item(mut self, item: &HistoryItem<'_>) -> Result<Self, Refused> {
        self.history.push(to_raw(item)?);
        Ok(self)
    }

    /// Sets [`history`](Self::history), any JSON.
    #[must_use]
    pub fn with_raw_history(mut self, history: Vec<RawJson<'a>>) -> Self {
        self.history = history;
        self
    }

    /// Sets [`session_id`](Self::session_id).
    #[must_use]
    pub fn with_session_id(mut self, id: SessionId) -> Self {
        self.session_id = Some(id);
        self
    }

    /// Sets [`resource_id`](Self::resource_id).
    #[must_use]
    pub fn with_resource_id(mut self, id: ResourceId) -> Self {
        self.resource_id = Some(id);
        self
    }

    /// Adds a skill that is on.
    #[must_use]
    pub fn with_active_skill(mut self, skill: Skill<'a>) -> Self {
        self.active_skills.push(skill);
        self
    }

    /// Adds a hint for the model.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<Cow<'a, str>>) -> Self {
        self.suggestions.push(suggestion.into());
        self
    }

    /// Sets [`workspace`](Self::workspace).
    #[must_use]
    pub fn with_workspace(mut self, workspace: impl Into<Cow<'a, str>>) -> Self {
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

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ChatRequest<'static> {
        ChatRequest {
            message: owned(self.message),
            history: self.history.into_iter().map(RawJson::into_owned).collect(),
            model: owned(self.model),
            session_id: self.session_id,
            resource_id: self.resource_id,
            active_skills: self
                .active_skills
                .into_iter()
                .map(Skill::into_owned)
                .collect(),
            suggestions: self.suggestions.into_iter().map(owned).collect(),
            workspace: self.workspace.map(owned),
        }
    }
}

impl<'a> Skill<'a> {
    /// A skill.
    pub fn new(name: impl Into<Cow<'a, str>>, instructions: impl Into<Cow<'a, str>>) -> Self {
        Self {
            name: name.into(),
            instructions: instructions.into(),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Skill<'static> {
        Skill {
            name: owned(self.name),
            instructions: owned(self.instructions),
        }
    }
}
