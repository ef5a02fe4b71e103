//! How an [`Event`] is read.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Reader, Slot};

use super::{
    Checklist, ChecklistItem, ChecklistTag, Event, ItemStatus, Notice, NoticeLevel, Part, RunState,
    ToolCall, ToolFailure, ToolOutput, ToolResult, Usage,
};
use crate::error::{ErrorDetail, ErrorMembers};
use crate::frame::{Extra, Skill, Unknown};
use crate::wire::{Body, again, count, list, tagged, text};

impl<'a> Event<'a> {
    /// Decodes an event that stands for itself, as in a stream over HTTP. One that this crate does
    /// not know is [`Event::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object with a `type`, or a known event without what makes
    /// it one. Decoding it again fails again.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::check_size(text.len(), limits)?;
        let mut reader = Reader::new(text);
        let event = Self::read(&mut reader)?;
        reader.end()?;
        Ok(event)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut start = reader.clone();
        let object = tagged::<EventBody<'a>>(reader)?;
        let event = object.body.event(&object.tag)?;
        match event {
            Some(event) => Ok(event),
            None => Ok(Self::Unknown(Unknown::new(
                object.tag,
                start.raw_or_null()?,
            ))),
        }
    }
}

enum EventBody<'a> {
    State(Slot<RunState>),
    Text(Slot<Cow<'a, str>>),
    Call(CallMembers<'a>),
    Output(OutputMembers<'a>),
    Result(ResultMembers<'a>),
    Usage(UsageMembers),
    List(ListMembers<'a>),
    Error(ErrorMembers<'a>),
    Notice(NoticeMembers<'a>),
    Skill(Slot<Skill<'a>>),
    SkillName(Slot<Cow<'a, str>>),
    Unknown,
}

#[derive(Default)]
struct CallMembers<'a> {
    id: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    args: Slot<RawJson<'a>>,
}

#[derive(Default)]
struct OutputMembers<'a> {
    id: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    content: Slot<Part<'a>>,
}

#[derive(Default)]
struct ResultMembers<'a> {
    id: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    is_error: Slot<bool>,
    code: Slot<Cow<'a, str>>,
    detail: Slot<ErrorDetail<'a>>,
    extra: Extra<'a>,
}

#[derive(Default)]
struct UsageMembers {
    input_tokens: Slot<u64>,
    output_tokens: Slot<u64>,
}

#[derive(Default)]
struct ListMembers<'a> {
    group_id: Slot<Cow<'a, str>>,
    group_title: Slot<Cow<'a, str>>,
    items: Slot<Vec<ChecklistItem<'a>>>,
}

#[derive(Default)]
struct NoticeMembers<'a> {
    level: Slot<Cow<'a, str>>,
    message: Slot<Cow<'a, str>>,
    source: Slot<Cow<'a, str>>,
}

impl<'a> Body<'a> for EventBody<'a> {
    const TAG: &'static str = "type";

    fn of(tag: &str) -> Self {
        match tag {
            "status" => Self::State(Slot::default()),
            "reasoning" | "text-delta" => Self::Text(Slot::default()),
            "tool-call" => Self::Call(CallMembers::default()),
            "tool-output" => Self::Output(OutputMembers::default()),
            "tool-result" => Self::Result(ResultMembers::default()),
            "usage" => Self::Usage(UsageMembers::default()),
            "checklist" | "tasklist" => Self::List(ListMembers::default()),
            "error" => Self::Error(ErrorMembers::default()),
            "notice" => Self::Notice(NoticeMembers::default()),
            "skill-activated" => Self::Skill(Slot::default()),
            "skill-deactivated" => Self::SkillName(Slot::default()),
            _ => Self::Unknown,
        }
    }

    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match (self, name) {
            (Self::Text(slot), "text") => field.read("text", again(slot), Reader::str_lossy),
            (Self::State(slot), "state") => field.read("state", again(slot), RunState::read),
            (Self::Call(members), _) => members.member(name, field),
            (Self::Output(members), _) => members.member(name, field),
            (Self::Result(members), _) => members.member(name, field),
            (Self::Usage(members), _) => members.member(name, field),
            (Self::List(members), _) => members.member(name, field),
            (Self::Error(members), _) => members.member(name, field),
            (Self::Notice(members), _) => members.member(name, field),
            (Self::Skill(slot), "skill") => field.read("skill", again(slot), Skill::read),
            (Self::SkillName(slot), "name") => field.read("name", again(slot), Reader::str_lossy),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for CallMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "toolCallId" => field.id("toolCallId", again(&mut self.id)),
            "toolName" => field.read("toolName", again(&mut self.name), Reader::str_lossy),
            "args" => field.raw("args", again(&mut self.args)),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for OutputMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "toolCallId" => field.id("toolCallId", again(&mut self.id)),
            "toolName" => field.read("toolName", again(&mut self.name), Reader::str_lossy),
            "content" => field.read("content", again(&mut self.content), Part::read),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for ResultMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "toolCallId" => field.id("toolCallId", again(&mut self.id)),
            "toolName" => field.read("toolName", again(&mut self.name), Reader::str_lossy),
            "isError" => field.bool("isError", again(&mut self.is_error)),
            "errorCode" => field.read("errorCode", again(&mut self.code), text),
            "error" => field.read("error", again(&mut self.detail), ErrorDetail::read),
            _ => self.extra.member(name, field),
        }
    }
}

impl<'a> Members<'a> for UsageMembers {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "inputTokens" => field.read("inputTokens", again(&mut self.input_tokens), count),
            "outputTokens" => field.read("outputTokens", again(&mut self.output_tokens), count),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for ListMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "groupId" => field.id("groupId", again(&mut self.group_id)),
            "groupTitle" => field.read("groupTitle", again(&mut self.group_title), text),
            "items" => field.read("items", again(&mut self.items), |reader| {
                list(reader, ChecklistItem::read)
            }),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for NoticeMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "level" => field.read("level", again(&mut self.level), text),
            "message" => field.read("message", again(&mut self.message), Reader::str_lossy),
            "source" => field.read("source", again(&mut self.source), text),
            _ => field.skip(),
        }
    }
}

impl<'a> EventBody<'a> {
    /// The event with this tag; `None` if it is not known.
    fn event(self, tag: &str) -> Result<Option<Event<'a>>, DecodeError> {
        Ok(Some(match self {
            Self::Text(text) => {
                let text = text.require("text")?;
                match tag {
                    "reasoning" => Event::Reasoning(text),
                    _ => Event::TextDelta(text),
                }
            }
            Self::State(state) => return Ok(state.take().map(Event::Status)),
            Self::Call(members) => Event::ToolCall(ToolCall {
                id: members.id.require("toolCallId")?,
                name: members.name.require("toolName")?,
                args: match members.args.take() {
                    Some(args) => args,
                    None => RawJson::new("{}")?,
                },
            }),
            Self::Output(members) => Event::ToolOutput(ToolOutput {
                id: members.id.require("toolCallId")?,
                name: members.name.require("toolName")?,
                content: members.content.require("content")?,
            }),
            Self::Result(members) => Event::ToolResult(members.result()?),
            Self::Usage(members) => Event::Usage(Usage {
                input_tokens: members.input_tokens.take().unwrap_or_default(),
                output_tokens: members.output_tokens.take().unwrap_or_default(),
            }),
            Self::List(members) => Event::Checklist(Checklist {
                tag: match tag {
                    "tasklist" => ChecklistTag::Tasklist,
                    _ => ChecklistTag::Checklist,
                },
                group_id: members.group_id.require("groupId")?,
                group_title: members.group_title.take().unwrap_or_default(),
                items: members.items.require("items")?,
            }),
            Self::Error(members) => Event::Error(members.error()),
            Self::Notice(members) => Event::Notice(Notice {
                level: NoticeLevel::parse(members.level.take().unwrap_or(Cow::Borrowed("warn"))),
                message: members.message.require("message")?,
                source: members.source.take(),
            }),
            Self::Skill(skill) => Event::SkillActivated(skill.require("skill")?),
            Self::SkillName(name) => Event::SkillDeactivated(name.require("name")?),
            Self::Unknown => return Ok(None),
        }))
    }
}

impl<'a> ResultMembers<'a> {
    fn result(self) -> Result<ToolResult<'a>, DecodeError> {
        let failure = ToolFailure {
            code: self.code.take(),
            detail: self.detail.take().map(Box::new),
        };
        let says_more = failure.code.is_some() || failure.detail.is_some();
        let is_error = self.is_error.take().unwrap_or(says_more);
        Ok(ToolResult {
            id: self.id.require("toolCallId")?,
            name: self.name.require("toolName")?,
            failure: is_error.then_some(failure),
            extra: self.extra,
        })
    }
}

impl RunState {
    /// A state; `None` if it is not known.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        if reader.first_byte() != Some(b'{') {
            return reader.skip().map(|()| None);
        }
        let members = reader.object::<StateMembers<'_>>()?.unwrap_or_default();
        let kind = members.kind.take().unwrap_or_default();
        Ok(match &*kind {
            "running" => Some(Self::Running {
                tool_calls: members.tool_calls.take(),
            }),
            "queued" => Some(Self::Queued {
                position: members.position.take(),
            }),
            "accepted" => Some(Self::Accepted),
            "awaiting-input" => Some(Self::AwaitingInput),
            _ => None,
        })
    }
}

#[derive(Default)]
struct StateMembers<'a> {
    kind: Slot<Cow<'a, str>>,
    tool_calls: Slot<u64>,
    position: Slot<u64>,
}

impl<'a> Members<'a> for StateMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "kind" => field.read("kind", again(&mut self.kind), text),
            "toolCalls" => field.read("toolCalls", again(&mut self.tool_calls), count),
            "position" => field.read("position", again(&mut self.position), count),
            _ => field.skip(),
        }
    }
}

#[derive(Default)]
struct ItemMembers<'a> {
    id: Slot<Cow<'a, str>>,
    label: Slot<Cow<'a, str>>,
    status: Slot<Cow<'a, str>>,
    order: Slot<u64>,
}

impl<'a> Members<'a> for ItemMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.id("id", again(&mut self.id)),
            "label" => field.read("label", again(&mut self.label), Reader::str_lossy),
            "status" => field.read("status", again(&mut self.status), text),
            "order" => field.read("order", again(&mut self.order), count),
            _ => field.skip(),
        }
    }
}

impl<'a> ChecklistItem<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        let Some(members) = reader.object::<ItemMembers<'a>>()? else {
            return Ok(None);
        };
        let status = members.status.take().unwrap_or(Cow::Borrowed("pending"));
        Ok(Some(Self {
            id: members.id.require("id")?,
            label: members.label.require("label")?,
            status: ItemStatus::parse(status),
            order: members.order.take().unwrap_or_default(),
        }))
    }
}
