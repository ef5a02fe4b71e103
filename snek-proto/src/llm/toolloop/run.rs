//! [`ChatModel`] and [`Tools`], and [`ToolLoop::run`], which drives a loop with them.

use std::future::Future;

use serde_json::Value;

use super::Call;
#[cfg(feature = "tokio")]
use super::{Action, ToolLoop};
use crate::llm::chat::ChatMessage;
use crate::llm::tool::ToolDefinition;

/// A language model: implement it as `async fn`.
pub trait ChatModel: Send {
    /// Why there is no answer.
    type Error: Send;

    /// Asks the model once: its whole answer to these messages, the oldest first. A model that streams
    /// calls `on_text` with each piece of the answer's text as it comes; one that does not calls it with
    /// the whole.
    ///
    /// # Errors
    /// [`Self::Error`] if there is no answer.
    ///
    /// # Cancel safety
    /// The future is dropped with that of `ToolLoop::run`.
    fn answer(
        &mut self,
        messages: &[ChatMessage],
        tools: &[ToolDefinition],
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<ChatMessage, Self::Error>> + Send;
}

/// The tools that a model may call: implement it as `async fn`.
pub trait Tools: Send {
    /// Returns the definitions to offer to the model.
    fn definitions(&self) -> &[ToolDefinition];

    /// Runs a tool and returns its result for the model.
    ///
    /// # Errors
    /// [`ToolFailure`], which the model gets.
    ///
    /// # Cancel safety
    /// The future is dropped with that of `ToolLoop::run`.
    fn call(&mut self, call: &Call) -> impl Future<Output = Result<Value, ToolFailure>> + Send;
}

/// The reason why a call has no result, for the model. Exhaustive: the tool ran or it did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// The call is wrong: no such tool, or an argument is missing. Nothing was run, so the circuit
    /// breaker does not count it.
    #[error("{0}")]
    Call(String),
    /// The tool failed.
    #[error("{0}")]
    Tool(String),
}

rpc_core::from_failures!(ToolFailure, Self::Tool);

#[cfg(feature = "tokio")]
impl ToolLoop {
    /// Asks the model and calls its tools until it answers with a text, which it returns. `on_text`
    /// gets each piece of its texts as it comes, those before a call of a tool included: pass it on with
    /// [`StreamWriter::push`](crate::bot::StreamWriter::push). The conversation gets the messages of
    /// each round once it is over, and the answer.
    ///
    /// # Errors
    /// The model's error, or [`BotError::ToolError`](crate::error::BotError::ToolError) if a limit
    /// stopped the loop. The conversation can continue.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request or the call. The conversation keeps what it has.
    pub async fn run<M, T>(
        mut self,
        model: &mut M,
        tools: &mut T,
        conversation: &mut Vec<ChatMessage>,
        mut on_text: impl FnMut(&str) + Send,
    ) -> Result<String, M::Error>
    where
        M: ChatModel<Error: From<crate::error::BotError>>,
        T: Tools,
    {
        let now = rpc_core::net::time::now;
        loop {
            let action = self.next_action(now());
            conversation.extend(self.take_messages());
            match action {
                Action::Ask { with_tools } => {
                    let offered = if with_tools { tools.definitions() } else { &[] };
                    let answer = model.answer(conversation, offered, &mut on_text).await?;
                    self.on_answer(answer);
                }
                Action::Run(call) => {
                    let result = tools.call(&call).await;
                    self.on_result(&call.id, result, now());
                }
                Action::Done(text) => return Ok(text),
                Action::Abort(error) => return Err(error.into()),
            }
        }
    }
}
