//! [`ChatError`] and [`ErrorDetail`]: how a chat or a tool failed.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Field, Members, Reader, Slot};
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::frame::{Extra, owned};
use crate::id::ErrorId;
use crate::wire::{again, text};

/// The words of a failure that comes without.
const WORDLESS: &str = "unknown error";

/// How a chat failed: `chat.error`, the event `error`, and the end of a failed stream over HTTP.
/// Acolyte specification, *Event model* and *Invariants*.
///
/// Whether repeating the chat is safe is not told: its tools may have done their work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ChatError<'a> {
    /// What to show people.
    pub message: Cow<'a, str>,
    /// Names the failure in the server's log. One of another form is left out.
    pub id: Option<ErrorId>,
    /// What kind of failure: see [`error::code`](crate::error::code), an open set.
    pub code: Option<Cow<'a, str>>,
    /// More about it.
    pub detail: Option<Box<ErrorDetail<'a>>>,
}

impl<'a> ChatError<'a> {
    /// An error with these words.
    pub fn new(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            message: message.into(),
            id: None,
            code: None,
            detail: None,
        }
    }

    /// Sets [`id`](Self::id).
    #[must_use]
    pub fn with_id(mut self, id: ErrorId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets [`code`](Self::code).
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'a, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets [`detail`](Self::detail).
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail<'a>) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ChatError<'static> {
        ChatError {
            message: owned(self.message),
            id: self.id,
            code: self.code.map(owned),
            detail: self.detail.map(|detail| Box::new(detail.into_owned())),
        }
    }
}

/// More about an error. Every value is of an open set, and `kind` and `category` of known servers
/// are often wrong: show them, do not decide by them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ErrorDetail<'a> {
    /// As [`ChatError::code`].
    pub code: Option<Cow<'a, str>>,
    /// Seen: `timeout`, `file-not-found`, `budget-exhausted`, `other`.
    pub category: Option<Cow<'a, str>>,
    /// Seen: `timeout`, `file_not_found`, `budget_exhausted`, `sandbox_violation`, `unknown`.
    pub kind: Option<Cow<'a, str>>,
    /// Seen: `generate`, `tool-result`, `tool-error`, `server`.
    pub source: Option<Cow<'a, str>>,
    /// The tool that failed.
    pub tool: Option<Cow<'a, str>>,
    /// Members that this crate does not know.
    pub extra: Extra<'a>,
}

impl<'a> ErrorDetail<'a> {
    /// A detail that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`code`](Self::code).
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'a, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets [`category`](Self::category).
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Cow<'a, str>>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Sets [`kind`](Self::kind).
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<Cow<'a, str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Sets [`source`](Self::source).
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cow<'a, str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets [`tool`](Self::tool).
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<Cow<'a, str>>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ErrorDetail<'static> {
        ErrorDetail {
            code: self.code.map(owned),
            category: self.category.map(owned),
            kind: self.kind.map(owned),
            source: self.source.map(owned),
            tool: self.tool.map(owned),
            extra: self.extra.into_owned(),
        }
    }
}

/// The members that an error is written as, beside others.
#[derive(Default)]
pub(crate) struct ErrorMembers<'a> {
    message: Slot<Cow<'a, str>>,
    id: Slot<Cow<'a, str>>,
    code: Slot<Cow<'a, str>>,
    error: Slot<ErrorValue<'a>>,
}

/// The member `error`: details, or the words, where another peer puts them there.
enum ErrorValue<'a> {
    Words(Cow<'a, str>),
    Detail(ErrorDetail<'a>),
}

impl<'a> Members<'a> for ErrorMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "errorMessage" => field.read("errorMessage", again(&mut self.message), text),
            "errorId" => field.read("errorId", again(&mut self.id), text),
            "errorCode" => field.read("errorCode", again(&mut self.code), text),
            "error" => field.read("error", again(&mut self.error), ErrorValue::read),
            _ => field.skip(),
        }
    }
}

impl<'a> ErrorValue<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        match reader.first_byte() {
            Some(b'"') => Ok(reader.str_lossy()?.map(Self::Words)),
            _ => Ok(ErrorDetail::read(reader)?.map(Self::Detail)),
        }
    }
}

impl<'a> ErrorMembers<'a> {
    /// The error. It may be the end of a chat, so anything passes for one.
    pub(crate) fn error(self) -> ChatError<'a> {
        let (words, detail) = match self.error.take() {
            Some(ErrorValue::Words(words)) => (Some(words), None),
            Some(ErrorValue::Detail(detail)) => (None, Some(detail)),
            None => (None, None),
        };
        let told = || {
            detail
                .as_ref()
                .and_then(|detail| detail.extra.get("message"))
        };
        let told = || told().and_then(|message| message.clone().into_str());
        let message = self.message.take().or(words).or_else(told);
        ChatError {
            message: message.unwrap_or(Cow::Borrowed(WORDLESS)),
            id: self.id.take().and_then(|id| ErrorId::parse(&id).ok()),
            code: self.code.take(),
            detail: detail.map(Box::new),
        }
    }

    /// The words only.
    pub(crate) fn words(self) -> Cow<'a, str> {
        self.error().message
    }
}

impl ChatError<'_> {
    /// Writes the members, beside others.
    pub(crate) fn write<W: SerializeStruct>(&self, to: &mut W) -> Result<(), W::Error> {
        to.serialize_field("errorMessage", &self.message)?;
        if let Some(id) = &self.id {
            to.serialize_field("errorId", id)?;
        }
        if let Some(code) = &self.code {
            to.serialize_field("errorCode", code)?;
        }
        if let Some(detail) = &self.detail {
            to.serialize_field("error", detail)?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct DetailMembers<'a> {
    code: Slot<Cow<'a, str>>,
    category: Slot<Cow<'a, str>>,
    kind: Slot<Cow<'a, str>>,
    source: Slot<Cow<'a, str>>,
    tool: Slot<Cow<'a, str>>,
    extra: Extra<'a>,
}

impl<'a> Members<'a> for DetailMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "code" => field.read("code", again(&mut self.code), text),
            "category" => field.read("category", again(&mut self.category), text),
            "kind" => field.read("kind", again(&mut self.kind), text),
            "source" => field.read("source", again(&mut self.source), text),
            "tool" => field.read("tool", again(&mut self.tool), text),
            _ => self.extra.member(name, field),
        }
    }
}

impl<'a> ErrorDetail<'a> {
    /// A detail; `None` for what is no object.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        if reader.first_byte() != Some(b'{') {
            return reader.skip().map(|()| None);
        }
        let members = reader.object::<DetailMembers<'a>>()?.unwrap_or_default();
        Ok(Some(Self {
            code: members.code.take(),
            category: members.category.take(),
            kind: members.kind.take(),
            source: members.source.take(),
            tool: members.tool.take(),
            extra: members.extra,
        }))
    }
}

impl Serialize for ErrorDetail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_map(None)?;
        for (name, value) in [
            ("code", &self.code),
            ("category", &self.category),
            ("kind", &self.kind),
            ("source", &self.source),
            ("tool", &self.tool),
        ] {
            if let Some(value) = value {
                to.serialize_entry(name, value)?;
            }
        }
        self.extra.write(&mut to)?;
        to.end()
    }
}
