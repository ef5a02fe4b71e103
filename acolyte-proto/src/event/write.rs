//! How an [`Event`] is written.

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{ChecklistItem, Event, RunState, ToolResult};

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown(unknown) => return unknown.serialize(serializer),
            Self::ToolResult(result) => return result.serialize(serializer),
            _ => {}
        }
        let mut to = serializer.serialize_struct("Event", 5)?;
        to.serialize_field("type", self.tag())?;
        match self {
            Self::Status(state) => to.serialize_field("state", state)?,
            Self::Reasoning(text) | Self::TextDelta(text) => to.serialize_field("text", text)?,
            Self::ToolCall(call) => {
                to.serialize_field("toolCallId", &call.id)?;
                to.serialize_field("toolName", &call.name)?;
                to.serialize_field("args", &call.args)?;
            }
            Self::ToolOutput(output) => {
                to.serialize_field("toolCallId", &output.id)?;
                to.serialize_field("toolName", &output.name)?;
                to.serialize_field("content", &output.content)?;
            }
            Self::Usage(usage) => {
                to.serialize_field("inputTokens", &usage.input_tokens)?;
                to.serialize_field("outputTokens", &usage.output_tokens)?;
            }
            Self::Checklist(list) => {
                to.serialize_field("groupId", &list.group_id)?;
                to.serialize_field("groupTitle", &list.group_title)?;
                to.serialize_field("items", &list.items)?;
            }
            Self::Error(error) => error.write(&mut to)?,
            Self::Notice(notice) => {
                to.serialize_field("level", notice.level.name())?;
                to.serialize_field("message", &notice.message)?;
                if let Some(source) = &notice.source {
                    to.serialize_field("source", source)?;
                }
            }
            Self::SkillActivated(skill) => to.serialize_field("skill", skill)?,
            Self::SkillDeactivated(name) => to.serialize_field("name", name)?,
            Self::ToolResult(_) | Self::Unknown(_) => {}
        }
        to.end()
    }
}

/// As an event: it may hold members that are known at run time only.
impl Serialize for ToolResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_map(None)?;
        to.serialize_entry("type", "tool-result")?;
        to.serialize_entry("toolCallId", &self.id)?;
        to.serialize_entry("toolName", &self.name)?;
        if let Some(failure) = &self.failure {
            to.serialize_entry("isError", &true)?;
            if let Some(code) = &failure.code {
                to.serialize_entry("errorCode", code)?;
            }
            if let Some(detail) = &failure.detail {
                to.serialize_entry("error", detail)?;
            }
        }
        self.extra.write(&mut to)?;
        to.end()
    }
}

impl Serialize for RunState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("RunState", 2)?;
        match self {
            Self::Running { tool_calls } => {
                to.serialize_field("kind", "running")?;
                if let Some(calls) = tool_calls {
                    to.serialize_field("toolCalls", calls)?;
                }
            }
            Self::Queued { position } => {
                to.serialize_field("kind", "queued")?;
                if let Some(position) = position {
                    to.serialize_field("position", position)?;
                }
            }
            Self::Accepted => to.serialize_field("kind", "accepted")?,
            Self::AwaitingInput => to.serialize_field("kind", "awaiting-input")?,
        }
        to.end()
    }
}

impl Serialize for ChecklistItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("ChecklistItem", 4)?;
        to.serialize_field("id", &self.id)?;
        to.serialize_field("label", &self.label)?;
        to.serialize_field("status", self.status.name())?;
        to.serialize_field("order", &self.order)?;
        to.end()
    }
}
