//! Conversations as Ollama wants them.

use snek_proto::llm::tool::ToolDefinition;

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
