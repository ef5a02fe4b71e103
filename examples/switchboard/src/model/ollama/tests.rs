//! Answers as Ollama sends them, and some that it should not send.

use proptest::prelude::*;

use snek_proto::llm::tool::ToolDefinition;

use super::*;
use crate::model::answer::testing::{self, joined};
use crate::model::provider::Provider;
use crate::model::{Delta, Finish};

const STREAM: &str = concat!(
    r#"{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
    "\n",
    r#"{"model":"m","message":{"role":"assistant","content":"gr\u00fcß "},"done":false}"#,
    "\r\n\n",
    r#"{"model":"m","message":{"role":"assistant","content":"dich 👋"},"done":false}"#,
    "\n",
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"dice","arguments":{"dice":"2d6ß"}}},{"id":"b","function":{"index":1,"name":"time","arguments":{}}}]},"done":false}"#,
    "\n",
    r#"{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":1,"prompt_eval_count":7,"eval_count":5}"#,
    "\n",
);

fn decode(answer: &str, size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::read(Provider::Ollama, answer.as_bytes(), size)
}

#[test]
fn an_answer_is_the_same_in_any_chunking() {
    for size in 1..STREAM.len() {
        let (deltas, outcome) = decode(STREAM, size);
        assert_eq!(outcome, Ok(()), "{size}");
        assert_eq!(deltas.first(), Some(&Delta::Thought("hm".to_owned())));
        let answer = joined(&deltas);
        assert_eq!(answer.text(), "grüß dich 👋");
        assert_eq!(answer.finish(), Some(&Finish::Stop));
        let usage = answer.usage().unwrap();
        assert_eq!((usage.prompt, usage.completion), (7, 5));
        let calls = answer.into_message().tool_calls;
        assert_eq!(calls.len(), 2);
        assert_eq!(
            (&*calls[0].name, &*calls[0].arguments),
            ("dice", "{\"dice\":\"2d6ß\"}")
        );
        assert_eq!((&*calls[1].id, &*calls[1].arguments), ("b", "{}"));
    }
}

#[test]
fn every_cut_before_the_last_line_is_noticed() {
    for (end, _) in STREAM.char_indices() {
        let (_, outcome) = decode(STREAM.get(..end).unwrap(), usize::MAX);
        let expected = match end < STREAM.len() - 1 {
            true => Err(ModelError::Cut),
            false => Ok(()),
        };
        assert_eq!(outcome, expected, "{end}");
    }
}

#[test]
fn an_endless_line_is_an_error() {
    let max = 1024 * 1024;
    let (_, outcome) = decode(&"x".repeat(2 * max), 8192);
    assert_eq!(outcome, Err(ModelError::TooLarge { max }));
}

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

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = testing::read(Provider::Ollama, &bytes, size);
    }
}
