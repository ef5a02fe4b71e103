//! Tests of the tool loop that vectors do not tell; see `tests/vectors/toolloop.json`.

use std::sync::Arc;

use rpc_core::Instant;
use rpc_core::breaker::{BreakerConfig, CircuitBreaker, State as Circuit};
use serde_json::json;

use super::*;
use crate::llm::chat::{Content, ToolCall};

fn asks(calls: &[(&str, &str)]) -> ChatMessage {
    let calls = calls
        .iter()
        .map(|(id, name)| ToolCall::new(*id, *name, "{}"));
    ChatMessage::assistant(Content::None).with_tool_calls(calls.collect())
}

#[test]
fn a_call_holds_a_permit_until_its_loop_is_dropped() {
    let now = Instant::now();
    let half_open = BreakerConfig {
        failure_threshold: 1,
        half_open_max_calls: 1,
        ..BreakerConfig::default()
    };
    let mut breaker = CircuitBreaker::new(half_open);
    let permit = breaker.try_acquire(now).unwrap();
    breaker.failure(permit, now);
    let later = now + half_open.recovery_timeout;
    let config = ToolLoopConfig {
        breaker: Arc::new(Mutex::new(breaker)),
        ..ToolLoopConfig::default()
    };

    let mut tools = ToolLoop::new(config.clone());
    assert!(tools.on_answer(asks(&[("a", "t")])));
    assert!(matches!(tools.next_action(later), Action::Run(_)));
    assert_eq!(lock(&config.breaker).state(), Circuit::HalfOpen);
    assert!(!lock(&config.breaker).admits(later));
    // Asking again takes no second place.
    assert!(matches!(tools.next_action(later), Action::Run(_)));
    drop(tools);
    assert!(lock(&config.breaker).admits(later));
    assert_eq!(lock(&config.breaker).state(), Circuit::HalfOpen);
}

#[test]
fn an_open_breaker_fails_calls_with_the_specified_error() {
    let now = Instant::now();
    let config = ToolLoopConfig::default();
    for _ in 0..5 {
        let mut breaker = lock(&config.breaker);
        assert_eq!(breaker.state(), Circuit::Closed);
        let permit = breaker.try_acquire(now).unwrap();
        breaker.failure(permit, now);
    }
    let mut tools = ToolLoop::new(config);
    assert!(tools.on_answer(asks(&[("a", "t")])));
    let later = now + std::time::Duration::from_secs(20);
    let action = tools.next_action(later);
    assert_eq!(action, Action::Ask { with_tools: true });
    let error = BotError::CircuitBreakerOpenError {
        retry_after: std::time::Duration::from_secs(40),
    };
    let messages = tools.take_messages();
    assert_eq!(messages[1].content.text(), format!("Error: {error}"));
}

#[test]
fn the_last_result_of_a_round_completes_it() {
    let now = Instant::now();
    let mut tools = ToolLoop::new(ToolLoopConfig::default());
    assert!(tools.on_answer(asks(&[("a", "t"), ("b", "u")])));
    for (id, ready) in [("a", 0), ("b", 3)] {
        assert!(matches!(tools.next_action(now), Action::Run(_)));
        assert!(tools.on_result(id, Ok(json!(null)), now));
        assert_eq!(tools.take_messages().len(), ready);
    }
}

#[test]
fn arguments_are_compared_as_json() {
    let parsed = |text: &str| arguments::parse(text).unwrap();
    assert_eq!(
        parsed(r#"{"b":{"d":[1,{"f":1,"e":2}],"c":null},"a":"x"}"#),
        parsed(r#" { "a": "\u0078", "b": {"c":null, "d":[1, {"e":2,"f":1}]} } "#)
    );
    for (one, other) in [
        (r#"{"a":1}"#, r#"{"a":"1"}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
        (r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#),
        (r#"{"a":null}"#, "{}"),
        (r#"{"a\":1,\"b":1}"#, r#"{"a":1,"b":1}"#),
    ] {
        assert_ne!(parsed(one), parsed(other), "{one} {other}");
    }
}
