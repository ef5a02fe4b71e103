//! [`Turn`]: one turn with a model, for every program; and [`Assistant`], which answers in chat channels with it.

pub mod conversation;
pub mod pictures;
pub mod replies;
mod reply;
#[cfg(test)]
mod tests;
pub mod tools;
mod turn;

use std::sync::Arc;
use std::time::SystemTime;

use snek_proto::error::BotError;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::image::{Image, ImageFormat};
use snek_proto::llm::toolloop::ToolLoopConfig;
use tokio::sync::mpsc;

use self::conversation::Conversations;
use self::tools::{ToolContext, Tools};
pub use self::turn::{Answer, CUT_CALL, FAILED, Step, Turn, many_rounds};
use crate::model::{ChatModel, Delta, Finish, ModelError, Notice, Refusal};

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

/// The reason why a question was not answered completely. The author has already got the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnswerError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tool loop was stopped.
    #[error(transparent)]
    Tools(#[from] BotError),
    /// The receiver of the answer was dropped.
    #[error("the receiver of the answer is gone")]
    Unheard,
}

/// Said once in a channel, before the first answer that does not know all that was said.
const FORGOTTEN: &str =
    "(This conversation has grown too long for me: I no longer know its beginning.)";
const REFUSED: &str = "(My model refuses to answer this: please ask in other words.)";
const NOT_SET_UP: &str = "sorry, I am not set up well; please tell who runs me";
const NOT_TAKEN: &str = "sorry, my model does not take this question: I leave it out from now on";
const BROKEN_OFF: &str = "sorry, I lost my thread; please ask again";
const NOT_NOW: &str = "sorry, I cannot think right now; please try again later";
const NO_RESULT: &str = "sorry, my tools did not get me anywhere";

/// Returns whether a message is one of the lines that report a failure. Two bots without a model
/// would answer such lines for ever.
pub fn is_apology(text: &str) -> bool {
    [NOT_SET_UP, NOT_TAKEN, BROKEN_OFF, NOT_NOW, NO_RESULT].contains(&text.trim())
}

impl AnswerError {
    /// Returns the line for the people in the channel, who cannot fix the failure.
    pub const fn apology(&self) -> &'static str {
        match self {
            Self::Model(ModelError::Setup { .. } | ModelError::NoKey { .. }) => NOT_SET_UP,
            Self::Model(ModelError::Refused { refusal, .. }) => match refusal {
                Refusal::Key
                | Refusal::Permission
                | Refusal::Model
                | Refusal::Address
                | Refusal::Quota => NOT_SET_UP,
                Refusal::TooLong | Refusal::Request => NOT_TAKEN,
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
    /// The tools.
    pub tools: Tools,
    /// The instructions for the model. Default [`SYSTEM`].
    pub system: String,
    /// The format of images for the model. Default: OpenAI's format.
    pub format: ImageFormat,
    /// The conversations, with their limits.
    pub conversations: Conversations,
    /// Gets what whoever runs the assistant should know: that the model is asked without something. Default: ignored.
    pub on_notice: Box<dyn Fn(&Notice) + Send + Sync>,
    /// Shared by all questions: when tools keep failing, they are not called for a while.
    limits: ToolLoopConfig,
}

impl Assistant {
    /// Creates an assistant with this model, the tools of the examples and the limits of the
    /// specification.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self {
            model,
            tools: Tools::new(),
            system: SYSTEM.to_owned(),
            format: ImageFormat::default(),
            conversations: Conversations::default(),
            on_notice: Box::new(|_| {}),
            limits: ToolLoopConfig::default(),
        }
    }

    /// Remembers a message that needs no answer of the model, and the answer to it.
    pub fn remember(&self, channel: &str, nick: &str, text: &str, answer: Option<&str>) {
        let asked = ChatMessage::user(format!("{nick}: {text}"));
        let answer = answer.map(ChatMessage::assistant);
        let messages = std::iter::once(asked).chain(answer).collect();
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
        let cx = ToolContext {
            past: past.clone(),
            now: SystemTime::now(),
        };
        let past = std::iter::once(Arc::new(ChatMessage::system(&self.system))).chain(past);
        // Images are too large to be remembered; their addresses are.
        let question = self.format.message(&text, &images);
        let limits = self.conversations.limits();
        let mut turn = Turn::new(limits, self.limits.clone(), past.collect(), question);
        let mut speaker = Speaker {
            assistant: self,
            channel: &channel,
            spoken: false,
            pieces,
        };
        let outcome = speaker.answer(&mut turn, &cx).await;
        if let Err(error) = &outcome {
            let _ = speaker.post(error.apology(), true).await;
        }
        match turn.has_left() {
            true => self.conversations.forget(&channel, &text),
            false => drop(self.conversations.add(&channel, turn.take_messages())),
        }
        outcome
    }
}

rpc_core::debug_fields!([] Assistant, this => { model: this.model, format: this.format });

/// Says an answer in a channel.
struct Speaker<'a> {
    assistant: &'a Assistant,
    channel: &'a str,
    spoken: bool,
    pieces: &'a mpsc::Sender<String>,
}

impl Speaker<'_> {
    async fn answer(&mut self, turn: &mut Turn, cx: &ToolContext) -> Result<(), AnswerError> {
        self.forget().await?;
        let tools = &self.assistant.tools;
        loop {
            match turn.next(tools.definitions()) {
                Step::Ask { with_tools } => self.ask(turn, with_tools).await?,
                Step::Call(call) => {
                    let result = tools.run(&call.name, &call.arguments, cx);
                    // The arguments may hold what people said.
                    let (tool, ok) = (&call.name, result.is_ok());
                    tracing::info!(%tool, arguments = call.arguments.len(), ok, "tool call");
                    turn.on_result(&call.id, result);
                }
                Step::Refused { name, why, .. } => {
                    tracing::info!(tool = %name, %why, "no tool call");
                }
                Step::Done(text) => {
                    let is_empty = text.trim().is_empty();
                    // A cut answer is marked at its end.
                    let finish = turn.finish().filter(|it| **it != Finish::Length);
                    return match finish.and_then(Finish::shortfall) {
                        Some(_) if finish == Some(&Finish::ContentFilter) => {
                            self.post(REFUSED, true).await
                        }
                        Some(shortfall) => self.post(&format!("({shortfall})"), true).await,
                        None if is_empty => self.post(NOTHING, true).await,
                        None => Ok(()),
                    };
                }
                Step::Stopped(error) => return Err(error.into()),
            }
        }
    }

    /// Asks the model, and passes on the text as it arrives.
    async fn ask(&mut self, turn: &mut Turn, with_tools: bool) -> Result<(), AnswerError> {
        let assistant = self.assistant;
        let tools = if with_tools {
            assistant.tools.definitions()
        } else {
            &[]
        };
        let asked = turn
            .ask(turn.context(), &*assistant.model, None, tools)
            .await;
        let mut answer = asked.map_err(|error| turn.on_error(error, false))?;
        let mut first = true;
        while let Some(delta) = answer.next().await {
            match delta.map_err(|error| turn.on_error(error, false))? {
                Delta::Text(text) => {
                    self.post(&text, std::mem::take(&mut first)).await?;
                }
                Delta::Notice(Notice::Shortened { .. }) => {
                    assistant.conversations.outgrow(self.channel);
                    self.forget().await?;
                }
                Delta::Notice(
                    notice @ (Notice::Lost { .. } | Notice::TooLong { .. } | Notice::Thoughts),
                ) => {
                    first = true;
                    self.post(&format!("({notice})"), true).await?;
                }
                Delta::Notice(notice @ Notice::LeftOut { .. }) => (assistant.on_notice)(&notice),
                _ => {}
            }
        }
        tracing::debug!(usage = ?answer.whole.usage(), with_tools, "the model has answered");
        if matches!(answer.whole.finish(), Some(Finish::Length | Finish::Paused)) {
            self.post(" […]", false).await?;
        }
        turn.on_answer(answer);
        Ok(())
    }

    /// Says once in a channel that its beginning is forgotten.
    async fn forget(&mut self) -> Result<(), AnswerError> {
        let conversations = &self.assistant.conversations;
        match conversations.has_news_of_outgrowth(self.channel) {
            true => self.post(FORGOTTEN, true).await,
            false => Ok(()),
        }
    }

    /// Passes on text; with `anew`, as another paragraph.
    async fn post(&mut self, text: &str, anew: bool) -> Result<(), AnswerError> {
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
