//! Vectors of the specification's constants.

use switchboard_testing::vectors;

use crate::limits;

#[derive(Debug, PartialEq)]
enum Constant {
    Text(String),
    Seconds(f64),
    Number(f64),
}

use Constant::{Number, Seconds, Text};

fn text(text: &str) -> Constant {
    Text(text.to_owned())
}

fn count(count: usize) -> Constant {
    Number(f64::from(u32::try_from(count).unwrap()))
}

fn constant(name: &str) -> Constant {
    match name {
        "WS_HEARTBEAT" => Seconds(limits::WS_HEARTBEAT.as_secs_f64()),
        "DEFAULT_REQUEST_TIMEOUT" => Seconds(limits::DEFAULT_REQUEST_TIMEOUT.as_secs_f64()),
        "HTTP_CONNECT_TIMEOUT" => Seconds(limits::HTTP_CONNECT_TIMEOUT.as_secs_f64()),
        "RECONNECT_MAX_RETRIES" => Number(limits::RECONNECT_MAX_RETRIES.into()),
        "RECONNECT_INITIAL_DELAY" => Seconds(limits::RECONNECT_INITIAL_DELAY.as_secs_f64()),
        "RECONNECT_BACKOFF_FACTOR" => Number(limits::RECONNECT_BACKOFF_FACTOR),
        "MAX_CONCURRENT_OPERATIONS" => count(limits::MAX_CONCURRENT_OPERATIONS),
        "MAX_CONCURRENT_REQUESTS" => count(limits::MAX_CONCURRENT_REQUESTS),
        "MAX_MESSAGE_HISTORY" => count(limits::MAX_MESSAGE_HISTORY),
        "DEFAULT_OPENAI_LIMIT" => count(limits::DEFAULT_OPENAI_LIMIT),
        "CONTEXT_WINDOW_TOKEN_LIMIT" => count(limits::CONTEXT_WINDOW_TOKEN_LIMIT),
        "STREAMING_UPDATE_INTERVAL" => Seconds(limits::STREAMING_UPDATE_INTERVAL.as_secs_f64()),
        "MAX_TOOL_CALL_DEPTH" => count(limits::MAX_TOOL_CALL_DEPTH),
        "MAX_REPEATED_TOOL_CALLS" => count(limits::MAX_REPEATED_TOOL_CALLS),
        "MAX_RETRY_ATTEMPTS" => Number(limits::MAX_RETRY_ATTEMPTS.into()),
        "THINKING_TASK_INTERVAL" => Seconds(limits::THINKING_TASK_INTERVAL.as_secs_f64()),
        "SHUTDOWN_TIMEOUT" => Seconds(limits::SHUTDOWN_TIMEOUT.as_secs_f64()),
        "COLOR_HUE_MIN" => Number(limits::COLOR_HUE_MIN),
        "COLOR_HUE_MAX" => Number(limits::COLOR_HUE_MAX),
        "COLOR_SATURATION_MIN" => Number(limits::COLOR_SATURATION_MIN),
        "COLOR_SATURATION_MAX" => Number(limits::COLOR_SATURATION_MAX),
        "COLOR_LIGHTNESS_MIN" => Number(limits::COLOR_LIGHTNESS_MIN),
        "COLOR_LIGHTNESS_MAX" => Number(limits::COLOR_LIGHTNESS_MAX),
        "MEDIA_HUNT_HEAD_TIMEOUT" => Seconds(limits::MEDIA_HUNT_HEAD_TIMEOUT.as_secs_f64()),
        "MEDIA_HUNT_FETCH_TIMEOUT" => Seconds(limits::MEDIA_HUNT_FETCH_TIMEOUT.as_secs_f64()),
        "SANITIZED_NAMES" => Text(limits::SANITIZED_NAMES.join(" ")),
        other => panic!("no constant {other}"),
    }
}

#[test]
fn constants_match_the_vectors() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    vectors::run(folder, "constants", |vector| {
        let expected = match (
            vector.try_str("text"),
            vector.get("seconds").as_f64(),
            vector.get("number").as_f64(),
        ) {
            (Some(expected), None, None) => text(expected),
            (None, Some(seconds), None) => Seconds(seconds),
            (None, None, Some(number)) => Number(number),
            other => panic!("{other:?}"),
        };
        assert_eq!(constant(vector.name()), expected);
    });
}
