//! [`ChatModel`]: a language model with streamed answers, and [`Assembler`], which joins their
//! pieces.

pub mod answer;
pub mod anthropic;
mod assembler;
pub mod config;
mod error;
pub mod extra;
pub mod http;
pub mod ollama;
pub mod openai;
pub mod options;
pub mod provider;
mod refusal;
pub mod request;
pub mod scripted;
mod surrogates;
mod thoughts;
mod written;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::tool::ToolDefinition;

use self::refusal::finds;
use crate::text::counted;

pub(crate) use answer::whole;
pub use assembler::Assembler;
pub use error::ModelError;
pub use refusal::Refusal;
pub(crate) use request::{find_tool, is_object};

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest<'a> {
    /// The conversation, oldest first.
    pub messages: Vec<&'a ChatMessage>,
    /// The tools that the model may call; without tools it answers with text.
    pub tools: &'a [ToolDefinition],
    /// Another model of the same provider, by the provider's name, instead of the configured one.
    pub model: Option<&'a str>,
}

impl<'a> ChatRequest<'a> {
    /// Creates a request with this conversation, without tools.
    pub const fn new(messages: Vec<&'a ChatMessage>) -> Self {
        Self {
            messages,
            tools: &[],
            model: None,
        }
    }

    /// Sets [`tools`](Self::tools).
    pub const fn with_tools(mut self, tools: &'a [ToolDefinition]) -> Self {
        self.tools = tools;
        self
    }
}

/// The pieces of one answer. It ends by itself after [`Delta::Finish`] (at most a
/// [`Delta::Usage`] and a [`Notice::Lost`] follow that), or with an error. Pieces of text are never
/// empty. Only a [`Delta::Notice`] comes before the provider has answered.
pub type Deltas = BoxStream<'static, Result<Delta, ModelError>>;

/// A language model.
#[async_trait]
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// Asks, and returns the answer as it grows.
    ///
    /// # Errors
    /// [`ModelError`] if there is no answer at all. The stream can still fail; it does so first of
    /// all if the provider is asked only while the stream is read.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream stops the answer. It may still be charged.
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError>;

    /// Returns whose the members are that an answer has beside text and calls. Default: nobody's, and they are not
    /// kept.
    fn origin(&self) -> String {
        String::new()
    }

    /// Returns the names of the models that the provider lists. Default: none.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn models(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of the model's thoughts. They are not part of the answer, and need not be shown.
    Thought(String),
    /// More of a tool call.
    ToolCall(CallPiece),
    /// More of what only this provider knows, for the next request to it: of a block of the content, or of the message.
    Extra(Option<usize>, Map<String, Value>),
    /// Why the answer has ended.
    Finish(Finish),
    /// The usage of the answer so far. An answer may have several, the first before any text: each
    /// covers the whole answer and replaces the previous one, so an interrupted answer can still be
    /// charged. Never add up those of one answer.
    Usage(Usage),
    /// What people should know of the answer. Not part of it.
    Notice(Notice),
}

/// Something that people should know of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// The provider does not answer for now, and is asked again.
    #[error("{reason}; asking again in {}", seconds(*wait))]
    Retry {
        /// The reason, for people.
        reason: String,
        /// When it is asked again.
        wait: Duration,
    },
    /// The provider refuses a member of the request, and is asked without it from now on.
    #[error("the model does not take {member}: it is asked with{}", instead.as_ref().map_or_else(|| "out".to_owned(), |it| format!(" {it}")))]
    LeftOut {
        /// The name of the member.
        member: String,
        /// What the provider proposes instead.
        instead: Option<String>,
    },
    /// The conversation is too long for the model, which gets it without the oldest messages.
    #[error(
        "this conversation has grown too long for the model: it no longer gets the {}",
        counted(*left_out, "oldest message")
    )]
    Shortened {
        /// The number of messages left out.
        left_out: usize,
    },
    /// The question alone is longer than what the model is given.
    #[error(
        "this message alone has about {tokens} tokens, more than the {max} of context_tokens (--context-tokens): the \
         model may get only a part of it"
    )]
    TooLong {
        /// Its tokens, as they are estimated.
        tokens: usize,
        /// The limit.
        max: usize,
    },
    /// The text of the answer until now was a thought, and is no part of it.
    #[error("what came until here were the model's thoughts: its answer follows")]
    Thoughts,
    /// Parts of the answer could not be read.
    #[error("{} of the model's answer could not be read: it is not whole", counted(*parts, "part"))]
    Lost {
        /// The number of parts.
        parts: usize,
    },
}

/// Returns a time in words, not shorter than it is.
pub fn seconds(time: Duration) -> String {
    format!("{} s", time.as_millis().div_ceil(1000))
}

/// A piece of a tool call. Calls may be interleaved; the index says which one continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// The index of the call in this answer. Without one: a new call if there is an id, otherwise
    /// the last one.
    pub index: Option<usize>,
    /// The call's id; usually only in its first piece.
    pub id: Option<String>,
    /// The tool's name; usually only in its first piece.
    pub name: Option<String>,
    /// More of the arguments' JSON text.
    pub arguments: String,
    /// More of what only this provider knows.
    pub extra: Map<String, Value>,
}

/// The reason why an answer has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The model waits for tools.
    ToolCalls,
    /// The length limit was reached: the answer is cut.
    Length,
    /// The provider withholds the answer.
    ContentFilter,
    /// The model would go on if it were asked to.
    Paused,
    /// The answer is broken, in the provider's words.
    Broken(String),
    /// Any other reason, in the provider's words.
    Other(String),
}

/// How providers say that an answer is broken, within other words.
const BROKEN: &str = "malformed|abort|cancel|time|interrupt|fail|incomplete|insufficient";
/// How they say that they withhold one.
const WITHHELD: &str =
    "filter|refus|safety|sensitive|recitation|prohibited|blocklist|spii|guardrail|toxic";
/// How they say that it is complete. Ollama says that it has loaded a model.
const ENDED: &str =
    "(?i)stop|end|eos|eot|complete|done|finish|success|^(?:null|none|load|unload|compaction)$";

impl Finish {
    /// Returns a message for people about an incomplete answer, or `None` for a complete one.
    pub fn shortfall(&self) -> Option<Cow<'static, str>> {
        let text = match self {
            Self::Length => {
                "the answer is cut at its length limit: raise max_tokens (--max-tokens), or ask for \
                 less"
            }
            Self::ContentFilter => "the model refuses to answer this: ask in other words",
            Self::Paused => "the model has paused before the end: ask it to go on",
            Self::Broken(why) | Self::Other(why) if !finds(ENDED, why) => {
                let why = why.escape_debug();
                return Some(
                    format!("the model has stopped early ({why}): ask it to go on").into(),
                );
            }
            _ => return None,
        };
        Some(text.into())
    }
}

impl From<&str> for Finish {
    /// Providers have many words for a few reasons, most of them made of the same ones.
    fn from(reason: &str) -> Self {
        let low = reason.to_ascii_lowercase().replace(['-', ' '], "_");
        let has = |words| finds(words, &low);
        match low.as_str() {
            "stop" | "end_turn" | "stop_sequence" => Self::Stop,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "pause_turn" => Self::Paused,
            _ if has(BROKEN) => Self::Broken(reason.to_owned()),
            _ if has(WITHHELD) => Self::ContentFilter,
            _ if has("error") => Self::Broken(reason.to_owned()),
            _ if has("tool|function") => Self::ToolCalls,
            _ if has("length|max_|limit|context_window") => Self::Length,
            _ => Self::Other(reason.to_owned()),
        }
    }
}

/// The usage of an answer, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read, including cached ones.
    pub prompt: u64,
    /// Tokens that were written.
    pub completion: u64,
}

impl Usage {
    /// Returns this with at most so many tokens, whatever the provider says.
    pub(crate) fn at_most(self, prompt: usize, completion: usize) -> Self {
        Self {
            prompt: self.prompt.min(prompt as u64),
            completion: self.completion.min(completion as u64),
        }
    }
}
