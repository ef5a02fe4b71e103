//! Answers as OpenAI's interface sends them, and some that it should not send.

use serde_json::{Value, json};

use snek_proto::llm::chat::ChatMessage;

use super::request_body;
use crate::model::answer::tests::testing::{self, joined};
use crate::model::config::ModelConfig;
use crate::model::extra::{origin, sign};
use crate::model::provider::Provider;
use crate::model::{ChatRequest, Delta, ModelError};

pub(super) fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::read(Provider::OpenAi, answer, size)
}

pub(super) fn text(deltas: &[Delta]) -> String {
    joined(deltas).text().to_owned()
}

pub(super) fn content_event(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

#[test]
fn thoughts_in_content_go_back_as_they_came() {
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    let text = json!({"type": "text", "text": "I look."});
    let contents = [
        thought("I should "),
        thought("look."),
        text.clone(),
        thought("Done."),
    ];
    let chunks = contents.map(|block| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": [block]}}]})
        )
    });
    let stream = chunks.concat() + "data: [DONE]\n\n";
    let (deltas, outcome) = decode(stream.as_bytes(), 64);
    assert_eq!(outcome, Ok(()));
    let mut answer = joined(&deltas).into_message();
    assert_eq!(answer.content.text(), "I look.");
    let config = ModelConfig::new(Provider::OpenAi, "m");
    sign(&mut answer, &origin(&config));
    let question = ChatMessage::user("hi");
    let request = ChatRequest::new(vec![&question, &answer]);
    let body: Value = serde_json::from_slice(&request_body(&config, &request).unwrap()).unwrap();
    let mut first = thought("I should ");
    let more = json!({"type": "text", "text": "look."});
    first["thinking"].as_array_mut().unwrap().push(more);
    assert_eq!(
        body["messages"][1]["content"],
        json!([first, text, thought("Done.")])
    );
}
