//! [`Script`]: the model of everybody in the story.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use snek_proto::llm::chat::Role;
use switchboard::model::{CallPiece, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError};
use tokio::sync::Barrier;

/// A call of a tool: its name, and its arguments, made of what was said last.
pub(super) type Step = (&'static str, fn(&str) -> Value);

/// A model that does what it is asked for in some steps, each a call of a tool, and then answers.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) steps: &'static [Step],
    /// The answer, made of what the tools have said.
    pub(super) answer: fn(&[String]) -> String,
    /// Where it pauses before the first step, to begin and to end the pause.
    pub(super) pause: Option<Arc<Barrier>>,
}

#[async_trait]
impl ChatModel for Script {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let (asked, results) = heard(&request);
        if let (Some(pause), []) = (&self.pause, results.as_slice()) {
            pause.wait().await;
            pause.wait().await;
        }
        let deltas = match self.steps.get(results.len()) {
            Some((tool, arguments)) => {
                let last = results.last().unwrap_or(&asked);
                calls(tool, results.len(), &arguments(last))
            }
            None => says(&(self.answer)(&results)),
        };
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }
}

/// The last question, and what tools have said since.
fn heard(request: &ChatRequest<'_>) -> (String, Vec<String>) {
    let (mut asked, mut results) = (String::new(), Vec::new());
    for message in &request.messages {
        let text = message.content.text().into_owned();
        match message.role {
            Role::User => (asked, results) = (text, Vec::new()),
            Role::Tool => results.push(text),
            _ => {}
        }
    }
    (asked, results)
}

fn calls(tool: &str, number: usize, arguments: &Value) -> Vec<Delta> {
    let call = CallPiece {
        index: Some(0),
        id: Some(format!("call_{number}")),
        name: Some(tool.to_owned()),
        arguments: arguments.to_string(),
    };
    vec![Delta::ToolCall(call), Delta::Finish(Finish::ToolCalls)]
}

/// A few words at a time, as models speak.
fn says(text: &str) -> Vec<Delta> {
    let words: Vec<_> = text.split_inclusive(' ').collect();
    let pieces = words.chunks(3).map(|words| Delta::Text(words.concat()));
    pieces.chain([Delta::Finish(Finish::Stop)]).collect()
}
