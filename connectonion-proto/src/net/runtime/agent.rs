//! [`Agent`]: the application of a host.

use std::future::Future;

use futures_util::future::BoxFuture;
use rpc_core::{Refused, Str};

use super::turn::Turn;
use crate::session::{Prompt, RunError};

/// The application of a host: it answers prompts. Implement it as `async fn`.
///
/// A run is one call of [`run`](Self::run). Runs of different sessions are concurrent, each on a
/// task of its own; a session has one at a time. Move blocking work to a blocking task. A panic is
/// an error of the agent, and ends its run only.
///
/// ```
/// use connectonion_proto::net::{Agent, AgentError, Prompt, Reply, Turn};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AgentError> {
///         Ok(Reply::new(format!("echo: {}", prompt.text)))
///     }
/// }
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Answers a prompt. Events are sent through the turn, which also has the conversation so far,
    /// with this prompt as its last message.
    ///
    /// [`Turn::next_inputs`] returns what the user says meanwhile: call it at the start of every
    /// step. Inputs that are still unread when this returns become the prompt of another call,
    /// whose reply ends the run; so an agent that never reads them loses nothing.
    ///
    /// # Errors
    /// The client gets the error's text, and may continue with the session. Unread inputs start
    /// another run.
    ///
    /// # Cancel safety
    /// The future is dropped if the run is given up: agent and client gave no sign of life for an
    /// hour, or the host ends.
    fn run(
        &self,
        turn: &Turn,
        prompt: Prompt,
    ) -> impl Future<Output = Result<Reply, AgentError>> + Send;
}

/// An [`Agent`] as an object.
pub(super) trait AnyAgent: Send + Sync {
    fn answer<'a>(
        &'a self,
        turn: &'a Turn,
        prompt: Prompt,
    ) -> BoxFuture<'a, Result<Reply, AgentError>>;
}

impl<A: Agent> AnyAgent for A {
    fn answer<'a>(
        &'a self,
        turn: &'a Turn,
        prompt: Prompt,
    ) -> BoxFuture<'a, Result<Reply, AgentError>> {
        Box::pin(self.run(turn, prompt))
    }
}

/// An agent's answer: the `result` of OUTPUT.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The text. The host adds it to the conversation, unless the agent has already
    /// [added](Turn::push_message) it as the last message.
    pub text: Str,
}

impl Reply {
    /// Creates a reply from a text.
    pub fn new(text: impl Into<Str>) -> Self {
        Self { text: text.into() }
    }

    /// Returns the reply of known agents that were interrupted.
    #[must_use]
    pub const fn interrupted() -> Self {
        Self {
            text: Str::from_static("What would you like me to do?"),
        }
    }
}

/// Why an agent has no answer. The text is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent failed.
    #[error("{message}")]
    Failed {
        /// The message for the client.
        message: String,
    },
    /// The run was already over.
    #[error("the run is over")]
    Over,
}

impl From<RunError> for AgentError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Over => Self::Over,
            error => Self::new(error.to_string()),
        }
    }
}

/// What an agent sends is JSON and not too large, or the run fails with the reason.
impl From<Refused> for AgentError {
    fn from(refused: Refused) -> Self {
        Self::new(refused.to_string())
    }
}

impl AgentError {
    /// Creates a failure with this message for the client.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }
}
