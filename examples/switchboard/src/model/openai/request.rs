//! [`request_body`]: a conversation in OpenAI's format.

use std::borrow::Cow;

use serde::Serialize;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::provider::Provider;
use crate::model::request::is_reasoning;
use crate::model::{ChatRequest, ModelError};

/// Returns the JSON of a request for a streamed answer.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(
    config: &ModelConfig,
    request: &ChatRequest<'_>,
) -> Result<Vec<u8>, ModelError> {
    let model = request.model.unwrap_or(&config.model);
    let reasons = config.provider == Provider::OpenAi && is_reasoning(model);
    let most = Some(config.max_tokens);
    let body = Body {
        model,
        messages: request.messages.iter().map(|it| as_sent(it)).collect(),
        tools: request.tools,
        max_tokens: most.filter(|_| !reasons),
        max_completion_tokens: most.filter(|_| reasons),
        temperature: config.temperature.filter(|_| !reasons),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
    };
    serde_json::to_vec(&body).map_err(ModelError::bad)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Cow<'a, ChatMessage>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDefinition],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Returns the message to send: a call without arguments gets an empty object, because some servers
/// parse the text.
fn as_sent(message: &ChatMessage) -> Cow<'_, ChatMessage> {
    let blank = |text: &str| text.trim().is_empty();
    if !message.tool_calls.iter().any(|call| blank(&call.arguments)) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for call in &mut message.tool_calls {
        if blank(&call.arguments) {
            "{}".clone_into(&mut call.arguments);
        }
    }
    Cow::Owned(message)
}
