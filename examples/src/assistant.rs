//! [`Assistant`]: answers a question with a model, tools and the earlier messages.

mod reply;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use futures_util::StreamExt as _;
use rpc_core::breaker::CircuitBreaker;
use rpc_core::net::entropy;
use serde_json::{Map, Value};
use snek_proto::error::BotError;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::image::{Image, ImageFormat};
use snek_proto::llm::toolloop::{Action, ToolLoop, ToolLoopConfig};
use tokio::sync::mpsc;

use crate::conversation::{Conversations, fit};
use crate::model::{
    Assembler, ChatModel, ChatRequest, Delta, Finish, ModelError, Notice, Refusal, Usage,
};
use crate::tools::{ToolContext, ToolFailure, Tools};

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
    /// Shared by all tools: when they keep failing, they are not called for a while.
    breaker: Mutex<CircuitBreaker>,
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
            breaker: Mutex::default(),
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
        let mut past = self
            .conversations
            .add(&channel, vec![ChatMessage::user(text.clone())]);
        // Images are too large to be remembered; their addresses are.
        let mut turn = Turn {
            channel: channel.clone(),
            messages: vec![self.format.message(&text, &images)],
            spoken: false,
            pieces,
        };
        let outcome = match self.forget(&mut turn).await {
            Ok(()) => self.work(&mut past, &mut turn).await,
            gone => gone,
        };
        if let Err(error) = &outcome {
            let _ = turn.say(error.apology(), true).await;
        }
        turn.messages.remove(0);
        self.conversations.add(&channel, turn.messages);
        outcome
    }

    async fn work(
        &self,
        past: &mut Vec<Arc<ChatMessage>>,
        turn: &mut Turn<'_>,
    ) -> Result<(), AnswerError> {
        let cx = ToolContext {
            past: std::mem::take(past),
            now: SystemTime::now(),
            entropy: entropy(),
        };
        let mut running = Running {
            tools: ToolLoop::new(ToolLoopConfig::default()),
            breaker: &self.breaker,
        };
        loop {
            let action = running.next_action();
            turn.messages.extend(running.tools.take_messages());
            match action {
                Action::Ask { with_tools } => {
                    let answer = self.ask(&cx.past, turn, with_tools).await?;
                    running.tools.on_answer(answer);
                }
                Action::Run(call) => {
                    let (tool, arguments) = (call.name.as_str(), &call.arguments);
                    self.tell(&Step::Called { tool, arguments });
                    let result = self.tools.run(tool, arguments, &cx);
                    let step = Step::Returned {
                        tool,
                        result: &result,
                    };
                    self.tell(&step);
                    running.returned(&call.id, result);
                }
                Action::Done(text) => {
                    if text.trim().is_empty() {
                        turn.say(NOTHING, true).await?;
                    }
                    return Ok(());
                }
                Action::Abort(error) => return Err(error.into()),
            }
        }
    }

    /// Asks the model once, and passes on its text as it arrives.
    async fn ask(
        &self,
        past: &[Arc<ChatMessage>],
        turn: &mut Turn<'_>,
        with_tools: bool,
    ) -> Result<ChatMessage, AnswerError> {
        let limits = self.conversations.limits();
        let messages = fit(&self.system, past, &turn.messages, limits);
        let tools = if with_tools {
            self.tools.definitions()
        } else {
            &[]
        };
        self.tell(&Step::Asked {
            messages: messages.len(),
            with_tools,
        });
        let request = ChatRequest::new(messages).with_tools(tools);
        let mut deltas = self.model.stream(request).await?;
        let mut answer = Assembler::default();
        while let Some(delta) = deltas.next().await {
            let delta = delta?;
            let first = answer.text().is_empty();
            answer.push(&delta)?;
            match delta {
                Delta::Text(text) => turn.say(&text, first).await?,
                Delta::Notice(Notice::Shortened { .. }) => {
                    self.conversations.outgrow(&turn.channel);
                    self.forget(turn).await?;
                }
                _ => {}
            }
        }
        match answer.finish() {
            Some(Finish::Length) => turn.say(" […]", false).await?,
            Some(Finish::ContentFilter) => {
                answer.push(&Delta::Text(REFUSED.to_owned()))?;
                turn.say(REFUSED, true).await?;
            }
            _ => {}
        }
        let usage = answer.usage();
        self.tell(&Step::Answered { usage });
        Ok(answer.into_message())
    }

    /// Says once in a channel that its beginning is forgotten.
    async fn forget(&self, turn: &mut Turn<'_>) -> Result<(), AnswerError> {
        match self.conversations.has_news_of_outgrowth(&turn.channel) {
            true => turn.say(FORGOTTEN, true).await,
            false => Ok(()),
        }
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

/// A question and the messages after it.
struct Turn<'a> {
    channel: String,
    messages: Vec<ChatMessage>,
    spoken: bool,
    pieces: &'a mpsc::Sender<String>,
}

impl Turn<'_> {
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

/// A tool loop that always returns its permit.
struct Running<'a> {
    tools: ToolLoop,
    breaker: &'a Mutex<CircuitBreaker>,
}

impl<'a> Running<'a> {
    fn breaker(&self) -> MutexGuard<'a, CircuitBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_action(&mut self) -> Action {
        let mut breaker = self.breaker();
        self.tools.next_action(&mut breaker, Instant::now())
    }

    fn returned(&mut self, id: &str, result: Result<Value, ToolFailure>) {
        let mut breaker = self.breaker();
        let now = Instant::now();
        match result {
            Ok(value) => self.tools.on_result(id, Ok(value), &mut breaker, now),
            Err(ToolFailure::Tool(why)) => self.tools.on_result(id, Err(why), &mut breaker, now),
            Err(ToolFailure::Call(why)) => self.tools.on_refused(id, &why, &mut breaker),
        };
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut breaker = self.breaker();
        self.tools.cancel(&mut breaker);
    }
}
