//! How answers end: reasons, and errors in their place.

use super::answer_tests::{decode, said, text};
use crate::model::{Finish, ModelError};

#[test]
fn a_failure_as_finish_reason_is_an_error() {
    for reason in [
        "error",
        "network_error",
        "insufficient_system_resource",
        "ABORT",
        "MALFORMED_FUNCTION_CALL",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
        "time_limit",
        "cancelled",
    ] {
        let end = format!(
            r#"{{"choices":[{{"delta":{{"content":"so far"}},"finish_reason":"{reason}"}}]}}"#
        );
        let (deltas, outcome) = decode(format!("data: {end}\n\n").as_bytes(), 9);
        assert_eq!(text(&deltas), "so far");
        assert_eq!(outcome, Err(ModelError::broken(reason.to_owned())));
    }
    for (reason, finish) in [
        ("MAX_TOKENS", Finish::Length),
        ("model_length", Finish::Length),
        ("max-output-tokens", Finish::Length),
        ("TOOL_CALL", Finish::ToolCalls),
        ("SAFETY", Finish::ContentFilter),
        ("PROHIBITED_CONTENT", Finish::ContentFilter),
        ("content_filtered", Finish::ContentFilter),
        ("ERROR_TOXIC", Finish::ContentFilter),
        ("eos", Finish::Other("eos".to_owned())),
    ] {
        assert_eq!(Finish::from(reason), finish);
    }
}

#[test]
fn an_unknown_reason_is_told_unless_it_speaks_of_an_end() {
    for reason in [
        "eos",
        "EOS_TOKEN",
        "completed",
        "end",
        "none",
        "load",
        "stop_token",
    ] {
        assert_eq!(Finish::from(reason).shortfall(), None, "{reason}");
    }
    let told = Finish::from("OTHER").shortfall().unwrap();
    assert_eq!(told, "the model has stopped early (OTHER): ask it to go on");
}

#[test]
fn an_error_of_any_shape_in_a_stream_fails_an_answer_without_a_reason() {
    let error = r#"{"code":"InvalidParameter","message":"no room"}"#;
    let end = r#"{"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}"#;
    for (last, outcome) in [
        ("[DONE]", Err(ModelError::broken("no room".to_owned()))),
        ("", Err(ModelError::broken("no room".to_owned()))),
        // An event of later days is no error.
        (end, Ok(())),
    ] {
        let one = r#"{"choices":[{"delta":{"content":"one "}}]}"#;
        let stream: String = [one, error, last]
            .map(|it| format!("data: {it}\n\n"))
            .concat();
        assert_eq!(decode(stream.as_bytes(), 7).1, outcome, "{last}");
    }
}

#[test]
fn an_error_in_place_of_an_answer_is_read_in_any_shape() {
    for error in [
        r#"{"object":"error","message":"no room","code":400}"#,
        r#"{"code":1113,"message":"no room"}"#,
        r#"{"detail":"no room"}"#,
        r#"data: {"object":"error","message":"no room","type":"BadRequestError"}"#,
    ] {
        let (_, outcome) = decode(error.as_bytes(), 7);
        assert_eq!(
            outcome,
            Err(ModelError::broken("no room".to_owned())),
            "{error}"
        );
    }
}

#[test]
fn an_error_on_a_line_of_its_own_ends_the_answer() {
    for begun in [String::new(), said("a")] {
        let answer = begun + "error: {\"code\":500,\"message\":\"slot unavailable\"}\n\n";
        for answer in [&answer, answer.trim_end()] {
            for size in [1, 99] {
                let (_, outcome) = decode(answer.as_bytes(), size);
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("slot unavailable"), "{error}");
            }
        }
    }
}
