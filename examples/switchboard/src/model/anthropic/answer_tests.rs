//! Answers as Anthropic sends them, and some that it should not send.

use super::*;
use crate::model::answer::tests::testing::{self, joined};
use crate::model::provider::Provider;

#[test]
fn blocks_that_only_the_provider_knows_go_back_in_their_places() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ha"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ha"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"t","input":{},"caller":{"x":1}}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"D"}}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"t","input":{"a":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let (deltas, outcome) = testing::read(Provider::Anthropic, stream.as_bytes(), 50);
    assert_eq!(outcome, Ok(()));
    let config = ModelConfig::new(Provider::Anthropic, "m");
    let mut answer = joined(&deltas).into_message();
    let results = ["toolu_1", "toolu_2"].map(|id| ChatMessage::tool(id, "1"));
    for (origin, is_own) in [(origin(&config), true), ("another".to_owned(), false)] {
        crate::model::extra::sign(&mut answer, &origin);
        let conversation = [
            vec![ChatMessage::user("hi"), answer.clone()],
            results.to_vec(),
        ]
        .concat();
        let request = ChatRequest::new(conversation.iter().collect());
        let body = request_body(&config, &request).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let content = &body["messages"][1]["content"];
        let mut second = json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}});
        if is_own {
            second["caller"] = json!({ "x": 1 });
        }
        let expected = [
            is_own.then(|| json!({"type": "thinking", "thinking": "haha", "signature": "S"})),
            Some(text("I look.")),
            Some(second),
            is_own.then(|| json!({"type": "redacted_thinking", "data": "D"})),
            Some(json!({"type": "tool_use", "id": "toolu_2", "name": "t", "input": {"a": 1}})),
        ];
        assert_eq!(*content, expected.into_iter().flatten().collect::<Value>());
    }
}
