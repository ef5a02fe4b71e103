//! [`Agent`]: the application of a host.

use std::future::Future;

use rpc_core::Str;

use super::turn::Turn;
use crate::hub::{AppError, Prompt};

/// The application of a host: it answers prompts. Implement it as `async fn`.
///
/// A run is one call of [`run`](Self::run). Runs of different sessions are concurrent, each on a
/// task of its own; a session has one at a time. Move blocking work to a blocking task. A panic is
/// an error of the agent, and ends its run only.
///
/// ```
/// use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Turn};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
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
    ) -> impl Future<Output = Result<Reply, AppError>> + Send;
}

rpc_core::dynamic! {
    /// Any [`Agent`]: for a program that chooses one when it starts.
    ///
    /// ```
    /// use connectonion_proto::net::{AppError, DynAgent, Prompt, Reply, agent_fn};
    ///
    /// let is_demo = true;
    /// let agent = match is_demo {
    ///     true => DynAgent::new(agent_fn(|_, prompt| async move { Ok(Reply::new(prompt.text)) })),
    ///     false => DynAgent::new(agent_fn(|turn, _| async move {
    ///         Err(AppError::failed(format!("no model for {}", turn.session_id())))
    ///     })),
    /// };
    /// # drop(agent);
    /// ```
    pub struct DynAgent(any_agent): Agent {
        async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError>;
    }
}

/// An [`Agent`] that is a closure.
struct AgentFn<F>(F);

/// Creates an agent from a closure that returns a future.
pub fn agent_fn<F, W>(work: F) -> impl Agent
where
    F: Fn(Turn, Prompt) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Reply, AppError>> + Send + 'static,
{
    AgentFn(work)
}

impl<F, W> Agent for AgentFn<F>
where
    F: Fn(Turn, Prompt) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Reply, AppError>> + Send + 'static,
{
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        (self.0)(turn.clone(), prompt).await
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
