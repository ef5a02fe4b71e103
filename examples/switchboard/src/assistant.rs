//! [`Assistant`]: answers a question with a model, tools and the earlier messages.

mod reply;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::StreamExt as _;
use rpc_core::net::entropy;
use serde_json::{Map, Value};
use snek_proto::error::BotError;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::image::{Image, ImageFormat};
use snek_proto::llm::tool::ToolDefinition;
use snek_proto::llm::toolloop::{self, Call, ToolFailure, ToolLoop, ToolLoopConfig};
use tokio::sync::mpsc;

use crate::conversation::{Conversations, fit};
use crate::model::{
    Assembler, ChatModel, ChatRequest, Delta, Finish, ModelError, Notice, Refusal, Usage,
};
use crate::tools::{ToolContext, Tools};

/// The default instructions for the model.
pub const SYSTEM: &str = "You are a bot in a chat channel. Messages begin with the name of who \
    wrote them; your own do not. Answer briefly, and in the language of the question.";
/// The text of an empty answer.
const NOTHING: &str = "I have nothing to say to that";

/// A message to answer.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The channel, whose history is the context of the question.
    pub channel: String,
    /// The author.
    pub nick: String,
    /// The text, image addresses included.
    pub text: String,
    /// The images of the text that could be fetched.
    pub images: Vec<Image>,
}

/// A step on the way to an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The model is asked.
    Asked {
        /// The number of messages.
        messages: usize,
        /// Whether it may use tools.
        with_tools: bool,
    },
    /// The model has answered, with text or calls.
    Answered {
        /// The usage, if the provider reports it.
        usage: Option<Usage>,
    },
    /// A tool is called.
    Called {
        /// The tool.
        tool: &'a str,
        /// The arguments.
        arguments: &'a Map<String, Value>,
    },
    /// A tool has ended.
    Returned {
        /// The tool.
        tool: &'a str,
        /// The result.
        result: &'a Result<Value, ToolFailure>,
    },
}

/// An observer of each [`Step`].
pub type Watcher = Arc<dyn Fn(&Step<'_>) + Send + Sync>;

/// The reason why a question was not answered completely. The author was already told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tool loop was stopped.
    #[error(transparent)]
    Tools(#[from] BotError),
    /// The receiver of the answer was dropped.
    #[error("nobody takes the answer")]
    Unheard,
}

/// Said once in a channel, before the first answer that does not know all that was said.
const FORGOTTEN: &str =
    "(This conversation has grown too long for me: I no longer know its beginning.)";
const REFUSED: &str = "(My model refuses to answer this: please ask in other words.)";
const NOT_SET_UP: &str = "sorry, I am not set up well; please tell who runs me";
const NOT_TAKEN: &str = "sorry, my model does not take this question";
const BROKEN_OFF: &str = "sorry, I lost my thread; please ask again";
const NOT_NOW: &str = "sorry, I cannot think right now; please try again later";
const NO_RESULT: &str = "sorry, my tools did not get me anywhere";

/// Returns whether a message is one of the lines that report a failure. Two bots without a model
/// would answer such lines for ever.
#[must_use]
pub fn is_apology(text: &str) -> bool {
    [NOT_SET_UP, NOT_TAKEN, BROKEN_OFF, NOT_NOW, NO_RESULT].contains(&text.trim())
}

impl AnswerError {
    /// Returns the line for the people in the channel, who cannot fix the failure.
    #[must_use]
    pub const fn apology(&self) -> &'static str {
        match self {
            Self::Model(ModelError::Setup { .. } | ModelError::NoKey { .. }) => NOT_SET_UP,
            Self::Model(ModelError::Refused { refusal, .. }) => match refusal {
                Refusal::Key
                | Refusal::Permission
                | Refusal::Model
                | Refusal::Address
                | Refusal::Quota => NOT_SET_UP,
                Refusal::TooLong | Refusal::TooLarge | Refusal::Request => NOT_TAKEN,
                Refusal::Broken => BROKEN_OFF,
                _ => NOT_NOW,
            },
            Self::Model(ModelError::Cut) => BROKEN_OFF,
            Self::Model(_) | Self::Unheard => NOT_NOW,
            Self::Tools(_) => NO_RESULT,
        }
    }
}

/// An assistant that answers questions, for all channels and handlers.
pub struct Assistant {
    model: Arc<dyn ChatModel>,
    tools: Tools,
    system: ChatMessage,
    format: ImageFormat,
    conversations: Conversations,
    /// Shared by all questions: when tools keep failing, they are not called for a while.
    limits: ToolLoopConfig,
    watcher: Option<Watcher>,
}

impl Assistant {
    /// Creates an assistant with this model, the tools of the examples and the limits of the
    /// specification.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self {
            model,
            tools: Tools::new(),
            system: ChatMessage::system(SYSTEM),
            format: ImageFormat::default(),
            conversations: Conversations::default(),
            limits: ToolLoopConfig::default(),
            watcher: None,
        }
    }

    /// Sets the instructions for the model. Default [`SYSTEM`].
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = ChatMessage::system(system);
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the format of images for the model. Default: OpenAI's format.
    #[must_use]
    pub const fn with_format(mut self, format: ImageFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets the conversations, with their limits.
    #[must_use]
    pub fn with_conversations(mut self, conversations: Conversations) -> Self {
        self.conversations = conversations;
        self
    }

    /// Sets the observer of the steps. Default none.
    #[must_use]
    pub fn with_watcher(mut self, watcher: Watcher) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// Remembers a message that needs no answer of the model, and the answer to it.
    pub fn heard(&self, channel: &str, nick: &str, text: &str, answer: Option<&str>) {
        let said = ChatMessage::user(format!("{nick}: {text}"));
        let answer = answer.map(ChatMessage::assistant);
        let messages = std::iter::once(said).chain(answer).collect();
        self.conversations.add(channel, messages);
    }

    /// Answers a question, piece by piece. A failure is a piece too, one friendly line, so there is
    /// always something to show. Questions of one channel may overlap; the history keeps each
    /// answer together.
    ///
    /// # Errors
    /// [`AnswerError`], for a log. The question can be asked again.
    ///
    /// # Cancel safety
    /// Dropping the future stops the answer; the question stays in the history.
    pub async fn answer(
        &self,
        question: Question,
        pieces: &mpsc::Sender<String>,
    ) -> Result<(), AnswerError> {
        let Question {
            channel,
            nick,
            text,
            images,
        } = question;
        let text = format!("{nick}: {text}");
        let past = self
            .conversations
            .add(&channel, vec![ChatMessage::user(text.clone())]);
        // Images are too large to be remembered; their addresses are.
        let mut messages = vec![self.format.message(&text, &images)];
        let mut turn = Turn {
            assistant: self,
            channel: &channel,
            past: &past,
            spoken: false,
            pieces,
        };
        let outcome = turn.run(&mut messages).await;
        if let Err(error) = &outcome {
            let _ = turn.say(error.apology(), true).await;
        }
        messages.remove(0);
        self.conversations.add(&channel, messages);
        outcome
    }

    fn tell(&self, step: &Step<'_>) {
        if let Some(watcher) = &self.watcher {
            watcher(step);
        }
    }
}

impl fmt::Debug for Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assistant")
            .field("model", &self.model)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// A question that is being answered.
struct Turn<'a> {
    assistant: &'a Assistant,
    channel: &'a str,
    past: &'a [Arc<ChatMessage>],
    spoken: bool,
    pieces: &'a mpsc::Sender<String>,
}

impl Turn<'_> {
    async fn run(&mut self, messages: &mut Vec<ChatMessage>) -> Result<(), AnswerError> {
        self.forget().await?;
        let mut calls = Calls {
            assistant: self.assistant,
            cx: ToolContext {
                past: self.past.to_vec(),
                now: SystemTime::now(),
                entropy: entropy(),
            },
        };
        let tool_loop = ToolLoop::new(self.assistant.limits.clone());
        let text = tool_loop.run(self, &mut calls, messages).await?;
        match text.trim() {
            "" => self.say(NOTHING, true).await,
            _ => Ok(()),
        }
    }

    /// Says once in a channel that its beginning is forgotten.
    async fn forget(&mut self) -> Result<(), AnswerError> {
        let conversations = &self.assistant.conversations;
        match conversations.has_news_of_outgrowth(self.channel) {
            true => self.say(FORGOTTEN, true).await,
            false => Ok(()),
        }
    }

    /// Passes on text; with `anew`, as another paragraph.
    async fn say(&mut self, text: &str, anew: bool) -> Result<(), AnswerError> {
        if text.is_empty() {
            return Ok(());
        }
        let text = match anew && self.spoken {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        };
        self.spoken = true;
        let sent = self.pieces.send(text).await;
        sent.map_err(|_| AnswerError::Unheard)
    }
}

impl toolloop::ChatModel for Turn<'_> {
    type Error = AnswerError;

    /// Passes on the text as it arrives.
    async fn answer(
        &mut self,
        messages: &[ChatMessage],
        tools: &[ToolDefinition],
    ) -> Result<ChatMessage, AnswerError> {
        let assistant = self.assistant;
        let limits = assistant.conversations.limits();
        let messages = fit(&assistant.system, self.past, messages, limits);
        assistant.tell(&Step::Asked {
            messages: messages.len(),
            with_tools: !tools.is_empty(),
        });
        let request = ChatRequest::new(messages).with_tools(tools);
        let mut deltas = assistant.model.stream(request).await?;
        let mut answer = Assembler::default();
        while let Some(delta) = deltas.next().await {
            let delta = delta?;
            let first = answer.text().is_empty();
            answer.push(&delta)?;
            match delta {
                Delta::Text(text) => self.say(&text, first).await?,
                Delta::Notice(Notice::Shortened { .. }) => {
                    assistant.conversations.outgrow(self.channel);
                    self.forget().await?;
                }
                _ => {}
            }
        }
        match answer.finish() {
            Some(Finish::Length) => self.say(" […]", false).await?,
            Some(Finish::ContentFilter) => {
                answer.push(&Delta::Text(REFUSED.to_owned()))?;
                self.say(REFUSED, true).await?;
            }
            _ => {}
        }
        let usage = answer.usage();
        assistant.tell(&Step::Answered { usage });
        Ok(answer.into_message())
    }
}

/// The tool calls of a question.
struct Calls<'a> {
    assistant: &'a Assistant,
    cx: ToolContext,
}

impl toolloop::Tools for Calls<'_> {
    fn definitions(&self) -> &[ToolDefinition] {
        self.assistant.tools.definitions()
    }

    async fn call(&mut self, call: &Call) -> Result<Value, ToolFailure> {
        let (tool, arguments) = (call.name.as_str(), &call.arguments);
        self.assistant.tell(&Step::Called { tool, arguments });
        let result = self.assistant.tools.run(tool, arguments, &self.cx);
        let step = Step::Returned {
            tool,
            result: &result,
        };
        self.assistant.tell(&step);
        result
    }
}
