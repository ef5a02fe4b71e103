//! [`request_body`]: a conversation in the format of the Responses API.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::request::{instructions, is_reasoning, parameters};
use crate::model::{ChatRequest, ModelError};

/// Returns the JSON of a request for a streamed answer.
///
/// All system messages become `instructions`. The provider stores nothing: the whole conversation
/// is sent each time, without the model's thoughts. Empty text is left out.
///
/// # Errors
/// [`ModelError::BadAnswer`] if a tool's definition cannot be written, which never happens.
pub fn request_body(
    config: &ModelConfig,
    request: &ChatRequest<'_>,
) -> Result<Vec<u8>, ModelError> {
    let model = request.model.unwrap_or(&config.model);
    let tools = request.tools.iter().map(tool).collect::<Result<_, _>>()?;
    let said = request.messages.iter().filter(|it| it.role != Role::System);
    serde_json::to_vec(&Body {
        model,
        instructions: instructions(request),
        input: said.flat_map(|message| items(message)).collect(),
        tools,
        max_output_tokens: config.max_tokens,
        temperature: config.temperature.filter(|_| !is_reasoning(model)),
        store: false,
        stream: true,
    })
    .map_err(ModelError::bad)
}

/// Returns the items of a message: its text, and each of its calls.
fn items(message: &ChatMessage) -> Vec<Item<'_>> {
    if message.role == Role::Tool {
        return vec![Item::FunctionCallOutput {
            call_id: message.tool_call_id.as_deref().unwrap_or_default(),
            output: message.content.text(),
        }];
    }
    let role = match message.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let content = match &message.content {
        Content::Blocks(blocks) if role == "user" => {
            Said::Parts(blocks.iter().filter_map(part).collect())
        }
        content => Said::Text(content.text()),
    };
    let has_content = match &content {
        Said::Text(text) => !text.trim().is_empty() || role == "user",
        Said::Parts(parts) => !parts.is_empty(),
    };
    let said = has_content.then_some(Item::Message { role, content });
    let calls = message.tool_calls.iter().map(|call| Item::FunctionCall {
        call_id: &call.id,
        name: &call.name,
        arguments: match call.arguments.trim() {
            "" => "{}",
            arguments => arguments,
        },
    });
    said.into_iter().chain(calls).collect()
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => (!text.trim().is_empty()).then_some(Part::InputText { text }),
        Block::ImageUrl(image_url) => Some(Part::InputImage { image_url }),
        Block::Other(value) => Some(Part::Other(value)),
        _ => None,
    }
}

fn tool(definition: &ToolDefinition) -> Result<Tool<'_>, ModelError> {
    Ok(Tool {
        kind: "function",
        name: definition.name(),
        description: definition.description(),
        parameters: parameters(definition)?,
        strict: false,
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Said<'a>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        image_url: &'a str,
    },
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Box<RawValue>,
    /// Optional parameters are optional, which the strict mode does not have.
    strict: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snek_proto::llm::chat::ToolCall;
    use snek_proto::llm::tool::{Param, ParamType};

    use super::*;
    use crate::model::provider::Provider;

    fn body(config: &ModelConfig, messages: &[ChatMessage], tools: &[ToolDefinition]) -> Value {
        let request = ChatRequest::new(messages.iter().collect()).with_tools(tools);
        serde_json::from_slice(&request_body(config, &request).unwrap()).unwrap()
    }

    #[test]
    fn a_conversation_with_tools_is_a_list_of_items() {
        let config = ModelConfig::new(Provider::OpenAiResponses, "gpt-4o").with_max_tokens(99);
        let calls = vec![
            ToolCall::new("a", "time", "{\"zone\":\"UTC\"}"),
            ToolCall::new("b", "dice", " "),
        ];
        let image = Block::ImageUrl("data:image/png;base64,AA==".to_owned());
        let conversation = [
            ChatMessage::system("be kind"),
            ChatMessage::user(vec![Block::Text("late?".to_owned()), image]),
            ChatMessage::assistant("").with_tool_calls(calls),
            ChatMessage::tool("a", "12:00"),
            ChatMessage::tool("b", ""),
            ChatMessage::assistant("noon"),
            ChatMessage::system("facts"),
            ChatMessage::user("thanks"),
        ];
        let zone = Param::new("zone", ParamType::String).with_default("UTC");
        let tools = [ToolDefinition::new("time", "the time").param(zone)];
        let got = body(&config.with_temperature(Some(0.5)), &conversation, &tools);
        let expected = json!({
            "model": "gpt-4o", "instructions": "be kind\n\nfacts", "max_output_tokens": 99,
            "temperature": 0.5, "store": false, "stream": true,
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "late?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                ]},
                {"type": "function_call", "call_id": "a", "name": "time", "arguments": "{\"zone\":\"UTC\"}"},
                {"type": "function_call", "call_id": "b", "name": "dice", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "12:00"},
                {"type": "function_call_output", "call_id": "b", "output": ""},
                {"type": "message", "role": "assistant", "content": "noon"},
                {"type": "message", "role": "user", "content": "thanks"},
            ],
            "tools": [{"type": "function", "name": "time", "description": "the time", "strict": false,
                "parameters": tools[0].to_value()["function"]["parameters"]}],
        });
        assert_eq!(got, expected);
    }

    #[test]
    fn a_model_that_reasons_gets_no_temperature() {
        let config = ModelConfig::new(Provider::OpenAiResponses, "o3").with_temperature(Some(0.5));
        let got = body(&config, &[ChatMessage::user("hi")], &[]);
        let expected = json!({
            "model": "o3", "max_output_tokens": 4096, "store": false, "stream": true,
            "input": [{"type": "message", "role": "user", "content": "hi"}],
        });
        assert_eq!(got, expected);
    }
}
