//! Answers as the Responses API sends them, and some that it should not send.

use proptest::prelude::*;

use super::*;
use crate::model::answer::testing::{self, joined};
use crate::model::{Delta, Refusal};

/// The events, each with its name.
fn stream(events: &[&str]) -> String {
    let event = |data: &&str| {
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        let name = value["type"].as_str().unwrap().to_owned();
        format!("event: {name}\ndata: {data}\n\n")
    };
    events.iter().map(event).collect()
}

fn decode(answer: &str, size: usize) -> (Vec<Delta>, Result<(), ModelError>) {
    testing::decode::<Events>(answer.as_bytes(), size)
}

fn whole() -> String {
    stream(&[
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"error":null}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.content_part.added","output_index":1,"part":{"type":"output_text","text":""}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"gr\u00fcß "}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"dich 👋"}"#,
        r#"{"type":"response.output_text.done","output_index":1,"text":"grüß dich 👋"}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"dice","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"dice\": \"2"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"d6ß\"}"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"dice\": \"2d6ß\"}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c1","name":"dice","arguments":"{\"dice\": \"2d6ß\"}"}}"#,
        r#"{"type":"response.later_days","delta":"x"}"#,
        r#"{"type":"response.completed","response":{"status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"grüß dich 👋"}]}],"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":5},"output_tokens":5}}}"#,
    ])
}

#[test]
fn an_answer_is_the_same_in_any_chunking() {
    let stream = whole();
    for size in (1..80).chain([stream.len()]) {
        let (deltas, outcome) = decode(&stream, size);
        assert_eq!(outcome, Ok(()), "{size}");
        assert!(deltas.contains(&Delta::Thought("hm".to_owned())));
        let answer = joined(&deltas);
        assert_eq!(answer.text(), "grüß dich 👋");
        assert_eq!(answer.finish(), Some(&Finish::ToolCalls));
        let usage = answer.usage().unwrap();
        assert_eq!((usage.prompt, usage.completion), (7, 5));
        let calls = answer.into_message().tool_calls;
        assert_eq!((&*calls[0].id, &*calls[0].name), ("c1", "dice"));
        assert_eq!(calls[0].arguments, "{\"dice\": \"2d6ß\"}");
    }
}

#[test]
fn every_cut_before_the_last_event_is_noticed() {
    let stream = whole();
    for (end, _) in stream.char_indices().step_by(7) {
        let (_, outcome) = decode(stream.get(..end).unwrap(), usize::MAX);
        if end < stream.len() - 4 {
            assert_eq!(outcome, Err(ModelError::Cut), "{end}");
        }
    }
}

#[test]
fn arguments_that_come_at_once_are_taken_once() {
    for events in [
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"time"}}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"time","arguments":"{\"a\":1}"}}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ][..],
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"time","arguments":"{\"a\":1}"}}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
        &[
            r#"{"type":"response.completed","response":{"output":[{"type":"function_call","call_id":"c","name":"time","arguments":"{\"a\":1}"}]}}"#,
        ],
    ] {
        let (deltas, outcome) = decode(&stream(events), 9);
        assert_eq!(outcome, Ok(()));
        let answer = joined(&deltas);
        assert_eq!(answer.finish(), Some(&Finish::ToolCalls));
        let calls = answer.into_message().tool_calls;
        assert_eq!((calls.len(), &*calls[0].arguments), (1, "{\"a\":1}"));
    }
}

#[test]
fn an_incomplete_answer_says_why_and_a_refusal_is_text() {
    for (reason, expected) in [
        ("max_output_tokens", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("later", Finish::Other("later".to_owned())),
    ] {
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"incomplete_details":{{"reason":"{reason}"}}}}}}"#
        );
        let refusal = r#"{"type":"response.refusal.delta","output_index":0,"delta":"I will not"}"#;
        let (deltas, outcome) = decode(&stream(&[refusal, &end]), 30);
        assert_eq!(outcome, Ok(()));
        let answer = joined(&deltas);
        assert_eq!(
            (answer.text(), answer.finish()),
            ("I will not", Some(&expected))
        );
    }
}

#[test]
fn an_error_keeps_what_was_said_and_the_providers_words() {
    let said = r#"{"type":"response.output_text.delta","delta":"so far"}"#;
    for (error, refusal) in [
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
            Refusal::RateLimit,
        ),
        (
            r#"{"type":"error","code":"context_length_exceeded","message":"slow","param":null}"#,
            Refusal::TooLong,
        ),
        (
            r#"{"type":"error","error":{"type":"server_error","message":"slow"}}"#,
            Refusal::Broken,
        ),
    ] {
        let (deltas, outcome) = decode(&stream(&[said, error]), 11);
        assert_eq!(joined(&deltas).text(), "so far");
        let expected = ModelError::Refused {
            status: None,
            refusal,
            message: "slow".to_owned(),
        };
        assert_eq!(outcome, Err(expected));
    }
}

#[test]
fn an_answer_that_is_not_streamed_is_taken_whole() {
    let body = r#"{"object":"response","status":"completed","error":null,"output":[
        {"type":"reasoning","summary":[]},
        {"type":"message","content":[{"type":"output_text","text":"hi "},{"type":"refusal","refusal":"no"}]}],
        "usage":{"input_tokens":1,"output_tokens":2}}"#;
    let (deltas, outcome) = decode(body, 3);
    assert_eq!((joined(&deltas).text(), outcome), ("hi no", Ok(())));
    let failed =
        r#"{"status":"failed","error":{"code":"server_error","message":"oh"},"output":[]}"#;
    let (_, outcome) = decode(failed, 9);
    assert!(
        matches!(outcome, Err(ModelError::Refused { .. })),
        "{outcome:?}"
    );
    let (_, outcome) = decode("{}", 9);
    assert!(
        matches!(outcome, Err(ModelError::BadAnswer { .. })),
        "{outcome:?}"
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = testing::decode::<Events>(&bytes, size);
    }
}
