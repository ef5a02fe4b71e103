//! [`ChatModel`]: a language model that answers in pieces, and [`Assembler`], which joins them.

pub mod answer;
pub mod anthropic;
mod assembler;
mod error;
pub mod http;
pub mod openai;
pub mod options;
pub mod provider;
pub mod scripted;

use std::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::tool::ToolDefinition;

use assembler::MAX_CALLS;

pub use assembler::Assembler;
pub use error::{ModelError, Wait, error_message};

/// What a model is asked.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest<'a> {
    /// The conversation, oldest first.
    pub messages: Vec<&'a ChatMessage>,
    /// The tools that the model may ask for; none to have it answer in words.
    pub tools: &'a [ToolDefinition],
    /// The places in the conversation, counted from 0, of the results that tell of a failure. Some
    /// interfaces tell the model so apart from the text. Places and not ids: a model may use an id
    /// again in a later answer.
    pub failed: &'a [usize],
    /// Another model of the same provider than the configured one, by its provider's name for it.
    pub model: Option<&'a str>,
}

impl<'a> ChatRequest<'a> {
    /// This conversation, without tools.
    #[must_use]
    pub const fn new(messages: Vec<&'a ChatMessage>) -> Self {
        Self {
            messages,
            tools: &[],
            failed: &[],
            model: None,
        }
    }

    /// Sets [`tools`](Self::tools).
    #[must_use]
    pub const fn with_tools(mut self, tools: &'a [ToolDefinition]) -> Self {
        self.tools = tools;
        self
    }

    /// Sets [`failed`](Self::failed).
    #[must_use]
    pub const fn with_failed(mut self, results: &'a [usize]) -> Self {
        self.failed = results;
        self
    }

    /// Sets [`model`](Self::model).
    #[must_use]
    pub const fn with_model(mut self, name: Option<&'a str>) -> Self {
        self.model = name;
        self
    }
}

/// The pieces of one answer. It ends by itself after [`Delta::Finish`] (at most a
/// [`Delta::Usage`] follows that), or with an error. Pieces of text are never empty.
pub type Deltas = BoxStream<'static, Result<Delta, ModelError>>;

/// A language model.
#[async_trait]
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// Asks, and returns the answer as it grows.
    ///
    /// # Errors
    /// [`ModelError`] if there is no answer at all. A stream that has begun can still fail.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream gives the answer up. It may have been paid for.
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError>;
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of what the model thinks aloud. It is no part of the answer, and need not be shown.
    Thought(String),
    /// More of a tool call.
    ToolCall(CallPiece),
    /// Why the answer has ended.
    Finish(Finish),
    /// What the answer costs, as far as it is known. Several may come in one answer, the first
    /// before any text: each is about the whole answer and replaces the one before, so an answer
    /// that is given up half-way can still be charged. Never add those of one answer up.
    Usage(Usage),
}

/// A piece of a tool call. Calls may be interleaved; the index says which one goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// Which call of this answer. Without one: a new call if there is an id, else the last one.
    pub index: Option<usize>,
    /// The call's id; as a rule only in its first piece.
    pub id: Option<String>,
    /// The tool's name; as a rule only in its first piece.
    pub name: Option<String>,
    /// More of the arguments' JSON text.
    pub arguments: String,
}

/// Why an answer has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// All is said.
    Stop,
    /// The model waits for tools.
    ToolCalls,
    /// The model was not allowed to say more: the answer is cut.
    Length,
    /// The provider holds the answer back.
    ContentFilter,
    /// Something else, in the provider's words.
    Other(String),
}

impl Finish {
    /// What to tell people of an answer that ends before its time; `None` for a complete one.
    #[must_use]
    pub const fn shortfall(&self) -> Option<&'static str> {
        match self {
            Self::Length => Some("the answer is cut: it has grown too long"),
            Self::ContentFilter => Some("the provider holds the answer back"),
            Self::Stop | Self::ToolCalls | Self::Other(_) => None,
        }
    }
}

impl From<&str> for Finish {
    fn from(reason: &str) -> Self {
        match reason {
            "stop" => Self::Stop,
            "tool_calls" | "function_call" => Self::ToolCalls,
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What an answer costs, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read, those from a cache too.
    pub prompt: u64,
    /// Tokens that were written.
    pub completion: u64,
}
