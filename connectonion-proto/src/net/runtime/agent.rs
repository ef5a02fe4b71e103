//! [`Agent`]: what a host is about.

use async_trait::async_trait;
use rpc_core::Str;

use super::turn::Turn;
use crate::hub::{AskError, EmitError, NewInput, SavedFile};
use crate::session::{RunOver, RuntimeInput};

/// What a host is about: it answers prompts.
///
/// A run is one call of [`run`](Self::run). Runs of different sessions go on side by side, each on a
/// task of its own; a session has one at a time. Work that blocks belongs on a task for that. A
/// panic is an error of the agent, and ends its run only.
///
/// ```
/// use async_trait::async_trait;
/// use connectonion_proto::net::{Agent, AgentError, Prompt, Reply, Turn};
///
/// struct Echo;
///
/// #[async_trait]
/// impl Agent for Echo {
///     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AgentError> {
///         Ok(Reply::new(format!("echo: {}", prompt.text)))
///     }
/// }
/// ```
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Answers a prompt. What happens on the way is told through the turn, which also has the
    /// conversation so far, with this prompt as its last message.
    ///
    /// What the user says meanwhile comes with [`Turn::next_inputs`]: ask for it at the start of
    /// every step. Whatever is still unread when this returns is the prompt of another call, whose
    /// reply is that of the run; so an agent that never asks loses nothing.
    ///
    /// # Errors
    /// The client is told the error's text, and may go on with the session. Inputs that were not
    /// read start another run.
    ///
    /// # Cancel safety
    /// The future is dropped if the run is given up: nobody, neither agent nor client, gave a sign
    /// of life for an hour, or the host ends.
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AgentError>;
}

/// What a user says to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The text; with files, a reminder where they are stands at its end.
    pub text: Str,
    /// Pictures, as data URLs.
    pub images: Vec<Str>,
    /// Files that came along, and where they are now.
    pub files: Vec<SavedFile>,
}

impl Prompt {
    /// A text.
    pub fn new(text: impl Into<Str>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl From<RuntimeInput> for Prompt {
    fn from(input: RuntimeInput) -> Self {
        Self {
            text: input.prompt,
            images: input.images,
            files: Vec::new(),
        }
    }
}

impl From<NewInput> for Prompt {
    fn from(input: NewInput) -> Self {
        Self {
            text: input.prompt,
            images: input.images,
            files: input.files,
        }
    }
}

/// What an agent answers: the `result` of OUTPUT.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The text. If the agent has not [said](Turn::push_message) it as the last message of the
    /// conversation, the host adds it there.
    pub text: Str,
}

impl Reply {
    /// A text.
    pub fn new(text: impl Into<Str>) -> Self {
        Self { text: text.into() }
    }

    /// What known agents answer when they were interrupted.
    #[must_use]
    pub const fn interrupted() -> Self {
        Self {
            text: Str::from_static("What would you like me to do?"),
        }
    }
}

/// Why an agent has no answer. The text is what the client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It has failed.
    #[error("{message}")]
    Failed {
        /// What the client is told.
        message: String,
    },
    /// The run was over before.
    #[error(transparent)]
    Over(#[from] RunOver),
}

impl From<EmitError> for AgentError {
    fn from(error: EmitError) -> Self {
        match error {
            EmitError::Over(over) => over.into(),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<AskError> for AgentError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Over(over) => over.into(),
            error => Self::new(error.to_string()),
        }
    }
}

impl AgentError {
    /// It has failed; this is what the client is told.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }
}
