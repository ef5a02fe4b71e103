//! Conversations as Anthropic wants them.

use snek_proto::llm::chat::ToolCall;
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use super::*;
use crate::model::provider::Provider;
use crate::model::request::NOTHING;

fn config() -> ModelConfig {
    ModelConfig::new(Provider::Anthropic, "m").with_max_tokens(99)
}

fn body(messages: &[ChatMessage], tools: &[ToolDefinition]) -> Value {
    let request = ChatRequest::new(messages.iter().collect()).with_tools(tools);
    let body = request_body(&config(), &request).unwrap();
    let mut body = serde_json::from_slice(&body).unwrap();
    unmark(&mut body);
    body
}

/// Removes the marks of the cache, and what they need.
fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(unmark);
            for name in ["system", "content"] {
                if let Some(Value::Array(parts)) = members.get(name)
                    && let [part] = parts.as_slice()
                    && part["type"] == "text"
                {
                    let text = part["text"].clone();
                    members.insert(name.to_owned(), text);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn marks_at_most_four_places_for_the_cache() {
    let call = ToolCall::new("a", "time", "{}");
    let conversation = [
        ChatMessage::system("be kind"),
        ChatMessage::user("hi"),
        ChatMessage::assistant("hello"),
        ChatMessage::user("late?"),
        ChatMessage::assistant("").with_tool_calls(vec![call]),
        ChatMessage::tool("a", "12:00"),
    ];
    let tools = [
        ToolDefinition::new("dice", ""),
        ToolDefinition::new("time", ""),
    ];
    let request = ChatRequest::new(conversation.iter().collect()).with_tools(&tools);
    let body = request_body(&config(), &request).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&body)
            .matches("cache_control")
            .count(),
        4
    );
    let body: Value = serde_json::from_slice(&body).unwrap();
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(body["tools"][0].get("cache_control"), None);
    assert_eq!(body["tools"][1]["cache_control"], mark);
    let system = json!([{"type": "text", "text": "be kind", "cache_control": mark}]);
    assert_eq!(body["system"], system);
    let messages = &body["messages"];
    assert_eq!(messages[0]["content"], json!([text("hi")]));
    let late = json!([{"type": "text", "text": "late?", "cache_control": mark}]);
    assert_eq!(messages[2]["content"], late);
    let result = json!([{
        "type": "tool_result", "tool_use_id": "a", "content": "12:00", "cache_control": mark,
    }]);
    assert_eq!(messages[4]["content"], result);
}

fn messages(messages: &[ChatMessage]) -> Value {
    body(messages, &[])["messages"].take()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn a_request_has_the_form_of_the_interface() {
    let got = body(&[ChatMessage::user("hi")], &[]);
    let expected = json!({
        "model": "m", "max_tokens": 99, "stream": true,
        "messages": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(got, expected);
}

#[test]
fn instructions_are_separate_and_in_order() {
    let got = body(
        &[
            ChatMessage::system("be kind"),
            ChatMessage::user("hi"),
            ChatMessage::system(" "),
            ChatMessage::system("Known facts:\n- none"),
        ],
        &[],
    );
    assert_eq!(got["system"], "be kind\n\nKnown facts:\n- none");
    assert_eq!(got["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[test]
fn calls_keep_the_text_before_them_and_results_share_a_message() {
    let calls = vec![
        ToolCall::new("a", "time", " {\"zone\": \"UTC\", \"a\": 1.50} "),
        ToolCall::new("b", "dice", "not json"),
        ToolCall::new("c", "dice", "[1]"),
        ToolCall::new("d", "dice", ""),
    ];
    let conversation = [
        ChatMessage::user("late?"),
        ChatMessage::assistant("let me see").with_tool_calls(calls),
        ChatMessage::tool("a", "12:00"),
        ChatMessage::tool("b", "Error: no dice"),
        ChatMessage::tool("c", ""),
        ChatMessage::tool("d", "6"),
        ChatMessage::user("well?"),
    ];
    let got = body(&conversation, &[ToolDefinition::new("time", "")]);
    let expected = json!([
        {"role": "user", "content": "late?"},
        {"role": "assistant", "content": [
            text("let me see"),
            {"type": "tool_use", "id": "a", "name": "time", "input": {"zone": "UTC", "a": 1.5}},
            {"type": "tool_use", "id": "b", "name": "dice", "input": {}},
            {"type": "tool_use", "id": "c", "name": "dice", "input": {}},
            {"type": "tool_use", "id": "d", "name": "dice", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "12:00"},
            {"type": "tool_result", "tool_use_id": "b", "content": "Error: no dice", "is_error": true},
            {"type": "tool_result", "tool_use_id": "c", "content": ""},
            {"type": "tool_result", "tool_use_id": "d", "content": "6"},
            text("well?"),
        ]},
    ]);
    assert_eq!(got["messages"], expected);
    assert_eq!(got.get("tool_choice"), None);
}

#[test]
fn sides_take_turns_and_the_user_begins() {
    let got = messages(&[
        ChatMessage::assistant("welcome"),
        ChatMessage::user("a"),
        ChatMessage::user("b"),
        ChatMessage::assistant(""),
        ChatMessage::user("c"),
        ChatMessage::assistant("d"),
        ChatMessage::assistant("e"),
        ChatMessage::user(" "),
    ]);
    let expected = json!([
        {"role": "user", "content": NOTHING},
        {"role": "assistant", "content": "welcome"},
        {"role": "user", "content": "a\n\nb\n\nc"},
        {"role": "assistant", "content": "d\n\ne"},
        {"role": "user", "content": NOTHING},
    ]);
    assert_eq!(got, expected);
    let nothing = json!([{"role": "user", "content": NOTHING}]);
    assert_eq!(messages(&[]), nothing);
}

#[test]
fn images_are_sent_in_its_own_shape() {
    let other = json!({"type": "document", "x": 1});
    let got = messages(&[ChatMessage::user(vec![
        Block::Text("see".to_owned()),
        Block::ImageUrl("data:image/png;base64,AAAA".to_owned()),
        Block::ImageUrl("https://h/a.png".to_owned()),
        Block::Other(other.clone()),
    ])]);
    let expected = json!([{"role": "user", "content": [
        text("see"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        other,
    ]}]);
    assert_eq!(got, expected);
}

#[test]
fn tools_are_offered_with_their_parameters_in_order() {
    let tool = ToolDefinition::new("dice", "throws dice")
        .param(Param::new("sides", ParamType::Integer))
        .param(Param::new("count", ParamType::Integer));
    let request = ChatRequest::default();
    let tools = [tool, ToolDefinition::new("time", "")];
    let body = request_body(&config(), &request.with_tools(&tools)).unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let sides = body.find("\"sides\":").unwrap();
    assert!(sides < body.find("\"count\":").unwrap(), "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["tools"][0]["name"], "dice");
    assert_eq!(body["tools"][0]["description"], "throws dice");
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    assert_eq!(
        body["tools"][0]["input_schema"]["properties"]["sides"]["type"],
        "integer"
    );
    assert_eq!(body["tools"][1].get("description"), None);
}

#[test]
fn a_conversation_with_calls_has_tools_even_if_none_may_be_called() {
    let call = |name: &str| vec![ToolCall::new("a", name, "{}")];
    let got = body(
        &[
            ChatMessage::user("late?"),
            ChatMessage::assistant("").with_tool_calls(call("time")),
            ChatMessage::tool("a", "12:00"),
            ChatMessage::assistant("").with_tool_calls(call("time")),
            ChatMessage::tool("a", "12:00"),
        ],
        &[],
    );
    let any = json!({"type": "object", "properties": {}, "required": []});
    let tools = json!([{"name": "time", "input_schema": any}]);
    assert_eq!(got["tools"], tools);
    assert_eq!(got["tool_choice"], json!({"type": "none"}));
}
