//! Answers as OpenAI's interface sends them, and some that it should not send.

use proptest::prelude::*;
use serde_json::{Value, json};

use snek_proto::llm::chat::ChatMessage;

use super::request_body;
use crate::model::answer::testing::{self, joined};
use crate::model::config::ModelConfig;
use crate::model::extra::{origin, sign};
use crate::model::provider::Provider;
use crate::model::{ChatRequest, Delta, Finish, ModelError};

pub(super) fn decode(answer: &[u8], size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::read(Provider::OpenAi, answer, size)
}

pub(super) fn text(deltas: &[Delta]) -> String {
    joined(deltas).text().to_owned()
}

const STREAM: &str = concat!(
    ": keep-alive\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    "\r\n\r\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"gr\u00fcß dich 👋"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"dice","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"dice\": \"2"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"d6ß\"}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}"#,
    "\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn an_answer_is_the_same_in_any_chunking() {
    for size in 1..STREAM.len() {
        let (deltas, outcome) = decode(STREAM.as_bytes(), size);
        assert_eq!(outcome, Ok(()), "{size}");
        let assembler = joined(&deltas);
        assert_eq!(assembler.usage().map(|usage| usage.prompt), Some(7));
        assert_eq!(assembler.finish(), Some(&Finish::ToolCalls));
        let message = assembler.into_message();
        let call = &message.tool_calls[0];
        assert_eq!((&*call.id, &*call.name), ("c1", "dice"));
        assert_eq!(call.arguments, "{\"dice\": \"2d6ß\"}");
        assert_eq!(text(&deltas), "grüß dich 👋");
    }
}

#[test]
fn every_cut_before_the_finish_reason_is_noticed() {
    let finish = STREAM.find("\"tool_calls\"}]}").unwrap();
    for end in 0..finish {
        let (_, outcome) = decode(&STREAM.as_bytes()[..end], usize::MAX);
        assert_eq!(outcome, Err(ModelError::Cut), "{end}");
    }
    for end in finish + "\"tool_calls\"}]}".len()..STREAM.len() {
        let (_, outcome) = decode(&STREAM.as_bytes()[..end], usize::MAX);
        assert_eq!(outcome, Ok(()), "{end}");
    }
}

#[test]
fn an_endless_answer_is_an_error() {
    let max = 1024 * 1024;
    for (endless, error) in [
        ("data: x", ModelError::TooLarge { max }),
        ("data: \n", ModelError::TooLarge { max }),
        ("{\"a\":\"", ModelError::TooLarge { max }),
        (": x\n\n", ModelError::TooLarge { max: 16 * max }),
    ] {
        let endless = endless.repeat(16 * max / endless.len() + 2);
        let (_, outcome) = decode(endless.as_bytes(), 8192);
        assert_eq!(outcome, Err(error));
    }
}

pub(super) fn said(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

proptest! {
    #[test]
    fn deltas_do_not_depend_on_the_cuts(places in prop::collection::vec(0usize..10_000, 0..12), crlf: bool) {
        let stream = if crlf { STREAM.replace("\n\n", "\r\n\r\n").replace("\r\r", "\r") } else { STREAM.to_owned() };
        let stream = stream.as_bytes();
        let (expected, outcome) = decode(STREAM.as_bytes(), usize::MAX);
        prop_assert_eq!(outcome, Ok(()));
        let got = testing::read_chunks(Provider::OpenAi, testing::cut(stream, &places));
        prop_assert_eq!(got, (expected, Ok(())));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = decode(&bytes, size);
    }
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
