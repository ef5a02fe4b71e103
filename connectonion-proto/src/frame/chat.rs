//! [`ChatItem`]: a session as people see it.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{
    self, DecodeError, Field, FrameCopy, Members, RawJson, Reader, SharedJson, SharedStr, Slot,
};
use serde::{Serialize, Serializer};

use super::body::Body;
use super::event::{Eval, FilesReceived, Intent, Thinking};
use super::json::Json;
use super::keep::Keep;
use super::number::Number;
use super::word::{ToolStatus, Word};

/// One item of a session as people see it, in CONNECTED and OUTPUT (`chat_items`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatItem<S = SharedStr, J = SharedJson> {
    /// What names it: `msg-0`, a tool's id.
    pub id: Option<S>,
    /// What it is.
    pub kind: ChatItemKind<S, J>,
}

/// What a [`ChatItem`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChatItemKind<S = SharedStr, J = SharedJson> {
    /// `user`: what the user said, as it was sent: a text, or a list of parts if there were images.
    User(J),
    /// `agent`: what the agent said, as it was sent: a text as a rule.
    Agent(J),
    /// `tool_call`: a tool and how it ended.
    ToolCall(ToolItem<S, J>),
    /// `thinking`: what the agent thought.
    Thinking(Thinking<S>),
    /// `intent`: what the agent took a prompt for.
    Intent(Intent<S>),
    /// `eval`: how the agent judged what it had done.
    Eval(Eval<S>),
    /// `files_received`: files that came with a prompt.
    FilesReceived(FilesReceived<J>),
    /// Any other: the whole item, as it was sent.
    Other(J),
}

/// A tool and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolItem<S = SharedStr, J = SharedJson> {
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<S>,
    /// What it got, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<J>,
    /// How it stands: `running`, `done` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<ToolStatus, S>>,
    /// What it said; of another value than a text its JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<S>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_ms: Option<Number>,
}

impl<S, J> ToolItem<S, J> {
    /// A tool that stands like this.
    pub fn new(name: impl Into<S>, status: ToolStatus) -> Self {
        Self {
            name: Some(name.into()),
            args: None,
            status: Some(Word::Known(status)),
            result: None,
            timing_ms: None,
        }
    }
}

impl<S, J> ChatItem<S, J> {
    /// An item of this name.
    pub fn new(id: impl Into<S>, kind: ChatItemKind<S, J>) -> Self {
        Self {
            id: Some(id.into()),
            kind,
        }
    }
}

impl ChatItem {
    /// A text of the user.
    pub fn user(id: impl Into<SharedStr>, text: &str) -> Self {
        let content = SharedJson::from(&RawJson::string(text));
        Self::new(id, ChatItemKind::User(content))
    }

    /// A text of the agent.
    pub fn agent(id: impl Into<SharedStr>, text: &str) -> Self {
        let content = SharedJson::from(&RawJson::string(text));
        Self::new(id, ChatItemKind::Agent(content))
    }
}

impl<S, J: Json> ChatItem<S, J> {
    /// The text of the user or the agent; of a list of parts the first text.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let (ChatItemKind::User(content) | ChatItemKind::Agent(content)) = &self.kind else {
            return None;
        };
        let json = content.json();
        if decode::first_byte(json) == Some(b'"') {
            return RawJson::new(json).ok()?.into_str();
        }
        let parts = decode::parse_objects(json, &Limits::default(), |part: PartMembers<'_>| {
            Ok(part.text.take())
        });
        parts.ok()?.into_iter().flatten().next()
    }
}

/// A part of what the user said: a text, or an image.
#[derive(Default)]
struct PartMembers<'a> {
    text: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for PartMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "text" => field.str("text", &mut self.text),
            _ => field.skip(),
        }
    }
}

impl<'a> ChatItem<Cow<'a, str>, RawJson<'a>> {
    /// Reads the items of a list. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no array of objects, if there are too many, or if one is of a
    /// known type with a member of the wrong type.
    pub fn list(json: &'a str, limits: &Limits) -> Result<Vec<Self>, DecodeError> {
        let mut items = Vec::new();
        let mut reader = Reader::new(json);
        reader.items(limits.max_items, |reader| {
            items.push(Self::read(json, reader, limits)?);
            Ok(())
        })?;
        reader.end()?;
        Ok(items)
    }

    fn read(json: &'a str, reader: &mut Reader<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        let mut again = reader.clone();
        let mut body = Body::new(json);
        body.read_from(reader, limits)?;
        let content = || {
            let content = body.raw("content")?;
            content.ok_or_else(|| DecodeError::missing("content"))
        };
        let tag = body.text_of("type")?;
        let kind = match tag.as_deref() {
            Some("user") => ChatItemKind::User(content()?),
            Some("agent") => ChatItemKind::Agent(content()?),
            Some("tool_call") => ChatItemKind::ToolCall(ToolItem {
                name: body.text_of("name")?,
                args: body.raw("args")?,
                status: body.word("status")?,
                result: body.loose("result")?,
                timing_ms: body.number("timing_ms")?,
            }),
            Some("thinking") => ChatItemKind::Thinking(Thinking::read(&body)?),
            Some("intent") => ChatItemKind::Intent(Intent::read(&body)?),
            Some("eval") => ChatItemKind::Eval(Eval::read(&body)?),
            Some("files_received") => ChatItemKind::FilesReceived(FilesReceived::read(&body)?),
            _ => ChatItemKind::Other(again.raw_or_null()?),
        };
        let id = body.id("id")?;
        Ok(Self { id, kind })
    }

    /// A copy whose pieces share one copy of the text that the list was read from.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> ChatItem {
        self.keep(copy)
    }

    fn keep<K: Keep>(&self, how: &K) -> ChatItem<K::Text, K::Json> {
        let kind = match &self.kind {
            ChatItemKind::User(content) => ChatItemKind::User(how.json(content)),
            ChatItemKind::Agent(content) => ChatItemKind::Agent(how.json(content)),
            ChatItemKind::ToolCall(tool) => ChatItemKind::ToolCall(ToolItem {
                name: how.texts(&tool.name),
                args: how.jsons(&tool.args),
                status: how.words(&tool.status),
                result: how.texts(&tool.result),
                timing_ms: tool.timing_ms,
            }),
            ChatItemKind::Thinking(it) => ChatItemKind::Thinking(it.keep(how)),
            ChatItemKind::Intent(it) => ChatItemKind::Intent(it.keep(how)),
            ChatItemKind::Eval(it) => ChatItemKind::Eval(it.keep(how)),
            ChatItemKind::FilesReceived(it) => ChatItemKind::FilesReceived(it.keep(how)),
            ChatItemKind::Other(item) => ChatItemKind::Other(how.json(item)),
        };
        ChatItem {
            id: how.texts(&self.id),
            kind,
        }
    }
}

impl<S: Serialize, J: Json> Serialize for ChatItem<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let id = self.id.as_ref();
        match &self.kind {
            ChatItemKind::User(content) => Item::said(id, "user", content).serialize(serializer),
            ChatItemKind::Agent(content) => Item::said(id, "agent", content).serialize(serializer),
            ChatItemKind::ToolCall(it) => Item::new(id, "tool_call", it).serialize(serializer),
            ChatItemKind::Thinking(it) => Item::new(id, "thinking", it).serialize(serializer),
            ChatItemKind::Intent(it) => Item::new(id, "intent", it).serialize(serializer),
            ChatItemKind::Eval(it) => Item::new(id, "eval", it).serialize(serializer),
            ChatItemKind::FilesReceived(it) => {
                Item::new(id, "files_received", it).serialize(serializer)
            }
            ChatItemKind::Other(item) => item.serialize(serializer),
        }
    }
}

/// An item for encoding, whose other members are those of `kind`.
#[derive(Serialize)]
struct Item<'f, S, K> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'f S>,
    #[serde(rename = "type")]
    tag: &'static str,
    #[serde(flatten)]
    kind: K,
}

impl<'f, S, C> Item<'f, S, Content<'f, C>> {
    const fn said(id: Option<&'f S>, tag: &'static str, content: &'f C) -> Self {
        Self::new(id, tag, Content { content })
    }
}

impl<'f, S, K> Item<'f, S, K> {
    const fn new(id: Option<&'f S>, tag: &'static str, kind: K) -> Self {
        Self { id, tag, kind }
    }
}

#[derive(Serialize)]
struct Content<'f, J> {
    content: &'f J,
}
