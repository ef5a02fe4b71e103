//! Messages of a conversation with a language model, in the format of OpenAI chat completions.
//!
//! Decoding is lenient: `null` counts as absent, an id may be a number, and tool arguments may be
//! JSON instead of a string. Encoding is exact. Unknown members of a message and of its calls are
//! kept, because some providers refuse a conversation in which what they gave is missing.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The operator of the bot; `developer` is read as this too.
    #[serde(alias = "developer")]
    System,
    /// A person.
    User,
    /// The language model.
    Assistant,
    /// A tool that was called by the model.
    Tool,
}

/// The id of a call of a tool: any text, by which its result refers to it.
pub type ToolCallId = rpc_core::Id<ToolCall>;

/// A tool call that a model asks for.
///
/// On the wire: `{"id":…,"type":"function","function":{"name":…,"arguments":…}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolCall {
    /// The model's id of the call, which its result repeats. Empty if the model sent none.
    pub id: ToolCallId,
    /// The tool.
    pub name: String,
    /// The arguments: the text of a JSON object. Not checked; empty means `{}`.
    pub arguments: String,
    /// Further members that are neither `null` nor empty. Those of the inner object are in one that
    /// is called `function`.
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// Creates a call with these arguments, the text of a JSON object.
    pub fn new(
        id: impl Into<ToolCallId>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: Map::new(),
        }
    }
}

/// The inner object of a [`ToolCall`].
#[derive(Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    arguments: &'a str,
    #[serde(flatten)]
    extra: Option<&'a Value>,
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = FunctionOut {
            name: &self.name,
            arguments: &self.arguments,
            extra: self.extra.get("function").filter(|it| it.is_object()),
        };
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("id", &self.id)?;
        out.serialize_entry("type", "function")?;
        out.serialize_entry("function", &function)?;
        let is_own = |name: &str| matches!(name, "id" | "type" | "function");
        for (name, value) in self.extra.iter().filter(|(name, _)| !is_own(name)) {
            out.serialize_entry(name, value)?;
        }
        out.end()
    }
}

#[derive(Deserialize)]
struct CallFields {
    id: Option<ToolCallId>,
    function: Option<FunctionFields>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct FunctionFields {
    name: Option<String>,
    arguments: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = CallFields::deserialize(from)?;
        let function = fields.function.unwrap_or_default();
        let of_function = filled(function.extra).into();
        fields.extra.insert("function".to_owned(), of_function);
        let mut extra = filled(fields.extra);
        extra.retain(|name, _| name != "type" && name != "index");
        Ok(Self {
            id: fields.id.unwrap_or_default(),
            name: function.name.unwrap_or_default(),
            arguments: function.arguments.map_or_else(String::new, text_of),
            extra,
        })
    }
}

/// Returns the members that are neither `null` nor empty.
fn filled(mut members: Map<String, Value>) -> Map<String, Value> {
    let empty = [json!(null), json!(""), json!([]), json!({})];
    members.retain(|_, value| !empty.contains(value));
    members
}

/// Returns a string as it is, and any other value as compact JSON.
pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// One part of a message with several.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Block {
    /// Text. On the wire: `{"type":"text","text":…}`.
    Text(String),
    /// An image by its address, often a `data:` URL. On the wire:
    /// `{"type":"image_url","image_url":{"url":…}}`.
    ImageUrl(String),
    /// A part of another kind, kept as it was received.
    Other(Value),
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Out<'a> {
            Text { text: &'a str },
            ImageUrl { image_url: Value },
        }
        match self {
            Self::Text(text) => Out::Text { text }.serialize(serializer),
            Self::ImageUrl(url) => {
                let image_url = json!({ "url": url });
                Out::ImageUrl { image_url }.serialize(serializer)
            }
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // The tag may come last, and a part of another kind is kept: so as a value first.
        let mut value = Value::deserialize(from)?;
        let Some(members) = value.as_object_mut() else {
            return Err(D::Error::custom("a content block is an object"));
        };
        match members.get("type").and_then(Value::as_str) {
            Some("text") => match members.remove("text") {
                Some(Value::String(text)) => Ok(Self::Text(text)),
                Some(Value::Null) | None => Ok(Self::Text(String::new())),
                Some(_) => Err(D::Error::custom("the text of a block is a string")),
            },
            Some("image_url") => {
                // Some servers send the address itself instead of an object around it.
                let url = match members.remove("image_url") {
                    Some(Value::Object(mut inner)) => inner.remove("url"),
                    other => other,
                };
                match url {
                    Some(Value::String(url)) => Ok(Self::ImageUrl(url)),
                    _ => Err(D::Error::custom("an image block has no url")),
                }
            }
            _ => Ok(Self::Other(value)),
        }
    }
}

/// The content of a message. `""` and `null` stay distinct, because a model's message has to be
/// sent back as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Content {
    /// `null`, or no content at all.
    #[default]
    None,
    /// One text.
    Text(String),
    /// Several parts.
    Blocks(Vec<Block>),
}

impl Content {
    /// Returns all the text, that of several text blocks joined.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(""),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let mut texts = blocks.iter().filter_map(|block| match block {
                    Block::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                let first = Cow::Borrowed(texts.next().unwrap_or_default());
                texts.fold(first, |all, text| all + text)
            }
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self::Blocks(blocks)
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// The author. Decoded as [`Role::Assistant`] if it is missing.
    pub role: Role,
    /// The id of the call that a tool's message answers. Omitted from the JSON if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// The content.
    pub content: Content,
    /// The tool calls that a model asks for. Omitted from the JSON if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Further members that are neither `null` nor empty, such as thoughts and their signatures. A
    /// provider may want them back unchanged; others may refuse them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ChatMessage {
    /// Creates a message of this role, without calls.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            extra: Map::new(),
        }
    }

    /// Creates instructions for the model.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text.into())
    }

    /// Creates a person's message: a text, or blocks with images.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Creates the result of the tool call with this id.
    pub fn tool(id: impl Into<ToolCallId>, text: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(id.into()),
            ..Self::new(Role::Tool, text.into())
        }
    }

    /// Sets [`tool_calls`](Self::tool_calls).
    #[must_use]
    pub fn with_tool_calls(mut self, calls: Vec<ToolCall>) -> Self {
        self.tool_calls = calls;
        self
    }
}

#[derive(Deserialize)]
struct MessageFields {
    role: Option<Role>,
    tool_call_id: Option<ToolCallId>,
    content: Option<Content>,
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl<'de> Deserialize<'de> for ChatMessage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = MessageFields::deserialize(from)?;
        Ok(Self {
            role: fields.role.unwrap_or(Role::Assistant),
            tool_call_id: fields.tool_call_id,
            content: fields.content.unwrap_or_default(),
            tool_calls: fields.tool_calls.unwrap_or_default(),
            extra: filled(fields.extra),
        })
    }
}
