//! [`StreamEvent`]: one step of a streamed answer.

use std::borrow::Cow;

use rpc_core::decode::{
    DecodeError, DecodeErrorKind, Field, FrameCopy, Members, RawJson, Reader, SharedJson,
    SharedStr, Slot,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// One step of a streamed answer. `S` is a text and `J` a raw JSON value: borrowed from the frame
/// ([`BorrowedEvent`]) or owned ([`OwnedEvent`]). Exoclaw specification, *Streaming Response*.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<S, J> {
    /// More of the model's text; may be empty.
    Text(S),
    /// The model asks for a tool.
    ToolUse(ToolUse<S, J>),
    /// A tool has run.
    ToolResult(ToolResult<S>),
    /// What one call of the model cost. There may be several in one chat: add them up.
    Usage(Usage),
    /// The stream is complete; nothing follows.
    Done,
    /// The chat has failed. A gateway sends [`Done`](Self::Done) after it, or nothing.
    Error(S),
    /// A step that this crate does not know.
    Unknown {
        /// Its name.
        event: S,
        /// Its data, raw; `None` if there is none.
        data: Option<J>,
    },
}

/// A [`StreamEvent`] that borrows from the frame.
pub type BorrowedEvent<'a> = StreamEvent<Cow<'a, str>, RawJson<'a>>;

/// A [`StreamEvent`] whose texts share one copy of the frame.
pub type OwnedEvent = StreamEvent<SharedStr, SharedJson>;

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse<S = SharedStr, J = SharedJson> {
    /// The id that the result will carry.
    pub id: S,
    /// The tool's name.
    pub name: S,
    /// What the tool gets: any JSON value, as a rule an object.
    pub input: J,
}

/// A tool has run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult<S = SharedStr> {
    /// The id of the [`ToolUse`].
    pub tool_use_id: S,
    /// What the tool says.
    pub content: S,
    /// Whether the tool failed. The model is told, and goes on.
    pub is_error: bool,
}

/// What a model was paid for, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
}

impl<S, J> ToolUse<S, J> {
    /// A call of the tool `name`.
    pub fn new(id: impl Into<S>, name: impl Into<S>, input: impl Into<J>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input: input.into(),
        }
    }
}

impl<S> ToolResult<S> {
    /// The result of the call `tool_use_id`.
    pub fn new(tool_use_id: impl Into<S>, content: impl Into<S>, is_error: bool) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            is_error,
        }
    }
}

impl Usage {
    /// So many tokens read and written.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }

    /// Tokens of both kinds. Huge numbers stop at the largest one.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds what another call cost. Huge numbers stop at the largest one.
    pub const fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

impl<S, J> StreamEvent<S, J> {
    /// Whether the stream ends with it: `done` and `error`.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Done | Self::Error(_))
    }
}

impl<S: AsRef<str>, J> StreamEvent<S, J> {
    /// The name on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Usage(_) => "usage",
            Self::Done => "done",
            Self::Error(_) => "error",
            Self::Unknown { event, .. } => event.as_ref(),
        }
    }
}

/// The member `data` of a frame.
pub(super) enum Data<'a> {
    /// The data of an event that was known by then, read.
    Read(BorrowedEvent<'a>),
    /// Any other data.
    Raw(RawJson<'a>),
}

impl<'a> Data<'a> {
    /// Reads the data of `event`, or keeps it if the event is not known, or not yet.
    #[inline]
    pub(super) fn read(
        event: Option<&str>,
        data: &mut Reader<'a>,
    ) -> Result<Option<Self>, DecodeError> {
        let event = match event {
            Some("text") => data.str()?.map(StreamEvent::Text),
            Some("error") => data.str()?.map(StreamEvent::Error),
            Some("tool_use") => object(data, ToolUseMembers::event)?,
            Some("tool_result") => object(data, ToolResultMembers::event)?,
            Some("usage") => object(data, UsageMembers::event)?,
            _ => return Ok(data.raw()?.map(Self::Raw)),
        };
        Ok(event.map(Self::Read))
    }
}

/// Data that is an object or null, made an event.
fn object<'a, M: Members<'a> + Default>(
    data: &mut Reader<'a>,
    event: impl FnOnce(M) -> Result<BorrowedEvent<'a>, DecodeError>,
) -> Result<Option<BorrowedEvent<'a>>, DecodeError> {
    if !matches!(data.first_byte(), Some(b'{' | b'n')) {
        return Err(data.fail(DecodeErrorKind::NotAnObject));
    }
    data.object()?.map(event).transpose()
}

#[derive(Default)]
struct ToolUseMembers<'a> {
    id: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    input: Slot<RawJson<'a>>,
}

impl<'a> Members<'a> for ToolUseMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.str("id", &mut self.id),
            "name" => field.str("name", &mut self.name),
            "input" => field.raw_or_null("input", &mut self.input),
            _ => field.skip(),
        }
    }
}

impl<'a> ToolUseMembers<'a> {
    fn event(self) -> Result<BorrowedEvent<'a>, DecodeError> {
        Ok(StreamEvent::ToolUse(ToolUse {
            id: self.id.require("id")?,
            name: self.name.require("name")?,
            input: self.input.require("input")?,
        }))
    }
}

#[derive(Default)]
struct ToolResultMembers<'a> {
    tool_use_id: Slot<Cow<'a, str>>,
    content: Slot<Cow<'a, str>>,
    is_error: Slot<bool>,
}

impl<'a> Members<'a> for ToolResultMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "tool_use_id" => field.str("tool_use_id", &mut self.tool_use_id),
            "content" => field.str("content", &mut self.content),
            "is_error" => field.bool("is_error", &mut self.is_error),
            _ => field.skip(),
        }
    }
}

impl<'a> ToolResultMembers<'a> {
    fn event(self) -> Result<BorrowedEvent<'a>, DecodeError> {
        Ok(StreamEvent::ToolResult(ToolResult {
            tool_use_id: self.tool_use_id.require("tool_use_id")?,
            content: self.content.require("content")?,
            is_error: self.is_error.take().unwrap_or(false),
        }))
    }
}

#[derive(Default)]
struct UsageMembers {
    input_tokens: Slot<u64>,
    output_tokens: Slot<u64>,
}

impl<'a> Members<'a> for UsageMembers {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "input_tokens" => field.u64("input_tokens", &mut self.input_tokens),
            "output_tokens" => field.u64("output_tokens", &mut self.output_tokens),
            _ => field.skip(),
        }
    }
}

impl UsageMembers {
    fn event<'a>(self) -> Result<BorrowedEvent<'a>, DecodeError> {
        Ok(StreamEvent::Usage(Usage {
            input_tokens: self.input_tokens.require("input_tokens")?,
            output_tokens: self.output_tokens.require("output_tokens")?,
        }))
    }
}

impl<'a> BorrowedEvent<'a> {
    /// Puts an event together. `whole` is the frame's text.
    #[inline]
    pub(super) fn new(
        event: Cow<'a, str>,
        data: Option<Data<'a>>,
        whole: &'a str,
    ) -> Result<Self, DecodeError> {
        let raw = match data {
            Some(Data::Read(event)) => return Ok(event),
            Some(Data::Raw(raw)) => Some(raw),
            None => None,
        };
        match (&*event, raw) {
            ("done", _) => Ok(Self::Done),
            ("text" | "error" | "tool_use" | "tool_result" | "usage", None) => {
                Err(DecodeError::missing("data"))
            }
            ("text", Some(raw)) => late_text(raw).map(Self::Text),
            ("error", Some(raw)) => late_text(raw).map(Self::Error),
            (_, Some(raw)) => {
                let read = Data::read(Some(&event), &mut Reader::back_to(&raw, whole));
                match read.map_err(|error| error.under("data"))? {
                    Some(Data::Read(event)) => Ok(event),
                    _ => Ok(Self::Unknown {
                        event,
                        data: Some(raw),
                    }),
                }
            }
            (_, None) => Ok(Self::Unknown { event, data: None }),
        }
    }

    /// An owned copy. `copy` is of the frame that the event was read from.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> OwnedEvent {
        match self {
            Self::Text(text) => StreamEvent::Text(copy.str(text)),
            Self::Error(text) => StreamEvent::Error(copy.str(text)),
            Self::Done => StreamEvent::Done,
            Self::Usage(usage) => StreamEvent::Usage(*usage),
            Self::ToolUse(tool) => StreamEvent::ToolUse(ToolUse {
                id: copy.str(&tool.id),
                name: copy.str(&tool.name),
                input: copy.json(&tool.input),
            }),
            Self::ToolResult(result) => StreamEvent::ToolResult(ToolResult {
                tool_use_id: copy.str(&result.tool_use_id),
                content: copy.str(&result.content),
                is_error: result.is_error,
            }),
            Self::Unknown { event, data } => StreamEvent::Unknown {
                event: copy.str(event),
                data: data.as_ref().map(|data| copy.json(data)),
            },
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> BorrowedEvent<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Text(chunk) => StreamEvent::Text(text(chunk)),
            Self::Error(error) => StreamEvent::Error(text(error)),
            Self::Done => StreamEvent::Done,
            Self::Usage(usage) => StreamEvent::Usage(usage),
            Self::ToolUse(tool) => StreamEvent::ToolUse(ToolUse {
                id: text(tool.id),
                name: text(tool.name),
                input: tool.input.into_owned(),
            }),
            Self::ToolResult(result) => StreamEvent::ToolResult(ToolResult {
                tool_use_id: text(result.tool_use_id),
                content: text(result.content),
                is_error: result.is_error,
            }),
            Self::Unknown { event, data } => StreamEvent::Unknown {
                event: text(event),
                data: data.map(RawJson::into_owned),
            },
        }
    }
}

/// The text of data that came before its event.
fn late_text(raw: RawJson<'_>) -> Result<Cow<'_, str>, DecodeError> {
    raw.into_str()
        .ok_or_else(|| DecodeError::wrong_type("data", "a string"))
}

impl<S: AsRef<str>, J: Serialize> Serialize for ToolUse<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut data = serializer.serialize_struct("ToolUse", 3)?;
        data.serialize_field("id", self.id.as_ref())?;
        data.serialize_field("name", self.name.as_ref())?;
        data.serialize_field("input", &self.input)?;
        data.end()
    }
}

/// `is_error` is always written, as the known gateway does.
impl<S: AsRef<str>> Serialize for ToolResult<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut data = serializer.serialize_struct("ToolResult", 3)?;
        data.serialize_field("tool_use_id", self.tool_use_id.as_ref())?;
        data.serialize_field("content", self.content.as_ref())?;
        data.serialize_field("is_error", &self.is_error)?;
        data.end()
    }
}

impl Serialize for Usage {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut data = serializer.serialize_struct("Usage", 2)?;
        data.serialize_field("input_tokens", &self.input_tokens)?;
        data.serialize_field("output_tokens", &self.output_tokens)?;
        data.end()
    }
}

impl<S: AsRef<str>, J: Serialize> StreamEvent<S, J> {
    /// Writes the members `event` and `data`.
    pub(super) fn write<W: SerializeStruct>(&self, to: &mut W) -> Result<(), W::Error> {
        to.serialize_field("event", self.name())?;
        match self {
            Self::Text(text) | Self::Error(text) => to.serialize_field("data", text.as_ref()),
            Self::ToolUse(tool) => to.serialize_field("data", tool),
            Self::ToolResult(result) => to.serialize_field("data", result),
            Self::Usage(usage) => to.serialize_field("data", usage),
            Self::Unknown {
                data: Some(data), ..
            } => to.serialize_field("data", data),
            Self::Done | Self::Unknown { data: None, .. } => Ok(()),
        }
    }
}
