//! Tests of reading and writing chat messages.

use super::*;

fn round(message: &ChatMessage) -> ChatMessage {
    let text = serde_json::to_string(message).unwrap();
    let from_value = serde_json::from_value(serde_json::from_str(&text).unwrap()).unwrap();
    let again: ChatMessage = serde_json::from_str(&text).unwrap();
    assert_eq!(again, from_value);
    again
}

#[test]
fn messages_match_the_specification() {
    let call = ToolCall::new("call_abc123", "database_find", r#"{"table": "users"}"#);
    for (message, expected) in [
        (
            ChatMessage::tool("call_abc123", "done"),
            r#"{"role":"tool","tool_call_id":"call_abc123","content":"done"}"#,
        ),
        (
            ChatMessage::assistant("").with_tool_calls(vec![call]),
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_abc123","type":"function","function":{"name":"database_find","arguments":"{\"table\": \"users\"}"}}]}"#,
        ),
        (
            ChatMessage::assistant(Content::None),
            r#"{"role":"assistant","content":null}"#,
        ),
        (
            ChatMessage::user(vec![
                Block::Text("hi".into()),
                Block::ImageUrl("data:,".into()),
            ]),
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:,"}}]}"#,
        ),
        (
            ChatMessage::system("be brief"),
            r#"{"role":"system","content":"be brief"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&message).unwrap(), expected);
        assert_eq!(round(&message), message);
    }
}

#[test]
fn empty_and_missing_content_are_distinct() {
    let content = |text| serde_json::from_str::<ChatMessage>(text).unwrap().content;
    assert_eq!(content(r#"{"content":""}"#), Content::Text(String::new()));
    assert_eq!(content(r#"{"content":null}"#), Content::None);
    assert_eq!(content("{}"), Content::None);
    assert_eq!(content(r#"{"content":[]}"#), Content::Blocks(Vec::new()));
}

#[test]
fn responses_are_read_leniently() {
    let read: ChatMessage = serde_json::from_value(json!({
        "content": null, "refusal": null, "annotations": [], "audio": {},
        "tool_calls": [
            {"id": 7, "index": 0, "type": "function", "function": {"name": "a", "arguments": {"b": 1}}},
            {"function": {"name": "c"}},
            {"id": null, "function": null},
        ],
    }))
    .unwrap();
    assert_eq!(read.role, Role::Assistant);
    assert_eq!(
        read.tool_calls,
        [
            ToolCall::new("7", "a", r#"{"b":1}"#),
            ToolCall::new("", "c", ""),
            ToolCall::default(),
        ]
    );
    let read: ChatMessage =
        serde_json::from_str(r#"{"role":"developer","content":"x","tool_calls":null}"#).unwrap();
    assert_eq!(read, ChatMessage::system("x"));
    let read: ChatMessage =
        serde_json::from_str(r#"{"role":"tool","tool_call_id":7,"content":"x"}"#).unwrap();
    assert_eq!(read, ChatMessage::tool("7", "x"));
}

#[test]
fn unknown_members_are_kept_where_they_were() {
    let sent = json!({
        "role": "assistant", "content": "", "reasoning_content": "so", "details": [{"index": 0}],
        "tool_calls": [{
            "id": "a", "type": "function", "extra_content": {"google": {"thought_signature": "S"}},
            "function": {"name": "t", "arguments": "{}", "fields": {"x": 1}},
        }],
    });
    let mut received = sent.clone();
    received["refusal"] = json!(null);
    received["annotations"] = json!([]);
    received["tool_calls"][0]["index"] = json!(0);
    received["tool_calls"][0]["function"]["note"] = json!("");
    let read: ChatMessage = serde_json::from_value(received).unwrap();
    assert_eq!(serde_json::to_value(round(&read)).unwrap(), sent);
    let members = |extra: &Map<String, Value>| extra.keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&read.extra), ["details", "reasoning_content"]);
    assert_eq!(
        members(&read.tool_calls[0].extra),
        ["extra_content", "function"]
    );
}

#[test]
fn blocks_of_other_kinds_are_kept() {
    let value = json!({"role": "user", "content": [
        {"text": "a", "type": "text"},
        {"type": "input_audio", "input_audio": {"data": ""}},
        {"type": "image_url", "image_url": "http://x/y.png"},
        {"type": "text", "text": "b"},
    ]});
    let read: ChatMessage = serde_json::from_value(value).unwrap();
    assert_eq!(read.content.text(), "ab");
    assert_eq!(round(&read), read);
    let Content::Blocks(blocks) = &read.content else {
        panic!("no blocks")
    };
    assert_eq!(blocks[2], Block::ImageUrl("http://x/y.png".into()));
    assert!(matches!(&blocks[1], Block::Other(value) if value["type"] == "input_audio"));
}

#[test]
fn an_invalid_message_is_refused() {
    for bad in [
        "[]",
        "1",
        r#"["user","hi"]"#,
        r#"{"role":"robot"}"#,
        r#"{"role":1}"#,
        r#"{"content":1}"#,
        r#"{"content":{}}"#,
        r#"{"content":["x"]}"#,
        r#"{"content":[{"type":"image_url"}]}"#,
        r#"{"content":[{"type":"text","text":1}]}"#,
        r#"{"tool_calls":{}}"#,
        r#"{"tool_calls":[["x"]]}"#,
        r#"{"tool_calls":[{"id":[]}]}"#,
        r#"{"role":"user","role":"user"}"#,
    ] {
        assert!(serde_json::from_str::<ChatMessage>(bad).is_err(), "{bad}");
    }
}
