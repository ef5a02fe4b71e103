//! [`request_body`]: a conversation in Ollama's format.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall};
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::request::object;
use crate::model::{ChatRequest, ModelError};

/// Returns the JSON of a request for a streamed answer.
///
/// Names the size of the context: Ollama's own is small, and it forgets what does not fit without a
/// word. Images must be `data:` URLs; an address of one stays in the text.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(
    config: &ModelConfig,
    request: &ChatRequest<'_>,
) -> Result<Vec<u8>, ModelError> {
    let calls = request.messages.iter().flat_map(|it| &it.tool_calls);
    let calls: Vec<&ToolCall> = calls.collect();
    let messages = request.messages.iter();
    serde_json::to_vec(&Body {
        model: request.model.unwrap_or(&config.model),
        messages: messages.map(|it| message(it, &calls)).collect(),
        tools: request.tools,
        options: Options {
            num_ctx: config
                .context_tokens
                .saturating_add(usize::try_from(config.max_tokens).unwrap_or(usize::MAX)),
            num_predict: config.max_tokens,
            temperature: config.temperature,
        },
        stream: true,
    })
    .map_err(ModelError::bad)
}

fn message<'a>(message: &'a ChatMessage, calls: &[&'a ToolCall]) -> Message<'a> {
    let mut content = message.content.text();
    let mut images = Vec::new();
    if let Content::Blocks(blocks) = &message.content {
        for block in blocks {
            let Block::ImageUrl(url) = block else {
                continue;
            };
            match url.split_once(";base64,") {
                Some((_, data)) => images.push(data),
                None => {
                    content.to_mut().push('\n');
                    content.to_mut().push_str(url);
                }
            }
        }
    }
    // A result names its tool. The ids of calls may be used again, so the last one counts.
    let of = message.tool_call_id.as_deref();
    let called = of.and_then(|id| calls.iter().rev().find(|call| call.id == id));
    let made = message.tool_calls.iter().map(|call| Call {
        function: Function {
            name: &call.name,
            arguments: object(&call.arguments),
        },
    });
    Message {
        role: match message.role {
            Role::System => "system",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            _ => "user",
        },
        content,
        images,
        tool_calls: made.collect(),
        tool_name: called.map(|call| call.name.as_str()),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDefinition],
    options: Options,
    stream: bool,
}

#[derive(Serialize)]
struct Options {
    num_ctx: usize,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::provider::Provider;

    fn body(config: &ModelConfig, messages: &[ChatMessage], tools: &[ToolDefinition]) -> Value {
        let request = ChatRequest::new(messages.iter().collect()).with_tools(tools);
        serde_json::from_slice(&request_body(config, &request).unwrap()).unwrap()
    }

    #[test]
    fn a_conversation_with_tools_and_an_image_is_what_ollama_reads() {
        let config = ModelConfig::new(Provider::Ollama, "llama3.2")
            .with_max_tokens(100)
            .with_context_tokens(2000)
            .with_temperature(Some(0.0));
        let calls = vec![
            ToolCall::new("a", "time", "{\"zone\":\"UTC\"}"),
            ToolCall::new("b", "dice", "no json"),
        ];
        let picture = vec![
            Block::Text("what is this?".to_owned()),
            Block::ImageUrl("data:image/png;base64,AA==".to_owned()),
            Block::ImageUrl("https://h/cat.png".to_owned()),
        ];
        let conversation = [
            ChatMessage::system("be kind"),
            ChatMessage::user(picture),
            ChatMessage::assistant("").with_tool_calls(calls),
            ChatMessage::tool("a", "12:00"),
            ChatMessage::tool("b", "6"),
        ];
        let tools = [ToolDefinition::new("time", "the time")];
        let got = body(&config, &conversation, &tools);
        let expected = json!({
            "model": "llama3.2", "stream": true,
            "options": {"num_ctx": 2100, "num_predict": 100, "temperature": 0.0},
            "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": "what is this?\nhttps://h/cat.png", "images": ["AA=="]},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"function": {"name": "time", "arguments": {"zone": "UTC"}}},
                    {"function": {"name": "dice", "arguments": {}}},
                ]},
                {"role": "tool", "content": "12:00", "tool_name": "time"},
                {"role": "tool", "content": "6", "tool_name": "dice"},
            ],
            "tools": [tools[0].to_value()],
        });
        assert_eq!(got, expected);
    }
}
