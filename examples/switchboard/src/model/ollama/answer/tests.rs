//! Answers as Ollama sends them, and some that it should not send.

use proptest::prelude::*;

use super::*;
use crate::model::answer::testing::{self, joined};
use crate::model::{Delta, Refusal};

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
    testing::decode::<Lines>(answer.as_bytes(), size)
}

#[test]
fn an_answer_is_the_same_in_any_chunking() {
    for size in 1..STREAM.len() {
        let (deltas, outcome) = decode(STREAM, size);
        assert_eq!(outcome, Ok(()), "{size}");
        assert_eq!(deltas.first(), Some(&Delta::Thought("hm".to_owned())));
        let answer = joined(&deltas);
        assert_eq!(answer.text(), "grüß dich 👋");
        assert_eq!(answer.finish(), Some(&Finish::ToolCalls));
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
fn an_error_in_the_middle_keeps_what_was_said() {
    let said = r#"{"message":{"content":"so far"},"done":false}"#;
    let stream =
        format!("{said}\n{{\"error\":\"an error was encountered while running the model\"}}\n");
    let (deltas, outcome) = decode(&stream, 5);
    assert_eq!(joined(&deltas).text(), "so far");
    let expected = ModelError::Refused {
        status: None,
        refusal: Refusal::Broken,
        message: "an error was encountered while running the model".to_owned(),
    };
    assert_eq!(outcome, Err(expected));
}

#[test]
fn thoughts_in_the_text_and_the_length_limit_are_understood() {
    let stream = concat!(
        "{\"message\":{\"content\":\"<think>hm</thi\"}}\n",
        "{\"message\":{\"content\":\"nk>yes\"}}\n",
        "{\"message\":{},\"done\":true,\"done_reason\":\"length\"}\n",
    );
    let (deltas, outcome) = decode(stream, 20);
    assert_eq!(outcome, Ok(()));
    let answer = joined(&deltas);
    assert_eq!(
        (answer.text(), answer.finish()),
        ("yes", Some(&Finish::Length))
    );
}

#[test]
fn a_line_that_cannot_be_read_is_left_out_and_an_endless_one_is_an_error() {
    let end = "{\"done\":true}\n";
    let said = "{\"message\":{\"content\":\"hi\"}}\n";
    for bad in ["garbage\n", "{\"message\":7}\n", "[]\n"] {
        let (deltas, outcome) = decode(&format!("{bad}{said}{bad}{end}"), 3);
        assert_eq!((joined(&deltas).text(), outcome), ("hi", Ok(())));
        let (_, outcome) = decode(&format!("{bad}{end}"), 3);
        assert!(
            matches!(outcome, Err(ModelError::BadAnswer { .. })),
            "{outcome:?}"
        );
    }
    let max = 1024 * 1024;
    let (_, outcome) = decode(&"x".repeat(2 * max), 8192);
    assert_eq!(outcome, Err(ModelError::EventTooLarge { max }));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
        let _ = testing::decode::<Lines>(&bytes, size);
    }
}
