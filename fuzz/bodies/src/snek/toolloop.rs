//! Loops of tools, which need no connection.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::breaker::{BreakerConfig, CircuitBreaker};
use serde_json::{Value, json};
use snek_proto::error::BotError;
use snek_proto::llm::chat::{ChatMessage, Role, ToolCall};
use snek_proto::llm::toolloop::{Action, ToolFailure, ToolLoop, ToolLoopConfig};

use crate::script::Script;

const IDS: [&str; 5] = ["", "a", "b", "c", "call_1_1"];
const NAMES: [&str; 3] = ["x", "y", ""];
const ARGUMENTS: [&str; 8] = [
    "",
    "{}",
    r#"{"a":1,"b":[2]}"#,
    r#"{ "b":[2], "a":1}"#,
    r#"{"a":2}"#,
    "[]",
    "{",
    "null",
];

/// Whatever a model answers and tools give, a loop ends within its limits, and every call has
/// exactly one answer.
///
/// The input is four loops, one after the other. An answer is one byte, whose remainder by 8 is the
/// number of calls, and three bytes per call: id, tool, arguments, each a place in a list (arguments of
/// 255: a length and the text). The result of a call is one byte: its remainder by 8 is its kind, the
/// rest how many seconds pass. What is missing counts as 0.
pub fn toolloop(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let limits = BreakerConfig {
        failure_threshold: 3,
        half_open_max_calls: 1,
        ..BreakerConfig::default()
    };
    let config = ToolLoopConfig {
        max_rounds: 4,
        max_repeated: 2,
        breaker: Arc::new(Mutex::new(CircuitBreaker::new(limits))),
        ..ToolLoopConfig::default()
    };
    // Loops one after the other share a breaker.
    for _ in 0..4 {
        let tools = ToolLoop::new(config.clone());
        assert_answered(&one_loop(&mut script, tools, &mut now));
        now += limits.recovery_timeout;
        let breaker = config.breaker.lock().expect("no loop has panicked");
        assert!(breaker.admits(now), "a permit was not handed back");
    }
}

/// Returns the conversation.
fn one_loop(script: &mut Script<'_>, mut tools: ToolLoop, now: &mut Instant) -> Vec<ChatMessage> {
    let mut conversation = Vec::new();
    let (mut with, mut without, mut errors) = (0, 0, 0);
    let mut runs: HashMap<(String, String), usize> = HashMap::new();
    for _ in 0..10_000 {
        let action = tools.next_action(*now);
        let again = tools.next_action(*now);
        assert!(again == action, "an action must be stable");
        match action {
            Action::Ask { with_tools } => {
                conversation.extend(tools.take_messages());
                assert_answered(&conversation);
                *(if with_tools { &mut with } else { &mut without }) += 1;
                assert!(with <= 4 && without <= 1, "too many rounds");
                assert!(tools.on_answer(answer(script)), "an answer is awaited");
            }
            Action::Run(call) => {
                let members: Vec<_> = call.arguments.iter().collect();
                let made = runs.entry((call.name, json!(members).to_string()));
                let made = made.or_default();
                *made += 1;
                assert!(*made <= 2, "the same call was run too often");
                let (id, step) = (&call.id, script.byte_or_zero());
                *now += Duration::from_secs(u64::from(step >> 3));
                let ok = match step % 8 {
                    0 | 1 => tools.on_result(id, Ok(json!({"a": [null]})), *now),
                    2 => tools.on_result(id, Ok(json!("Error: no")), *now),
                    3..=5 => tools.on_result(id, Err(ToolFailure::Tool("failed".into())), *now),
                    6 => tools.on_result(id, Err(ToolFailure::Call("no such tool".into())), *now),
                    _ => {
                        tools.cancel();
                        true
                    }
                };
                assert!(ok, "a result is awaited");
                errors = if step % 8 < 3 { 0 } else { errors + 1 };
                assert!(errors <= 3, "too many errors in a row");
                let again = tools.on_result(id, Ok(Value::Null), *now);
                assert!(!again, "a second result was taken");
            }
            Action::Done(_) | Action::Abort(BotError::ToolError { .. }) => {
                conversation.extend(tools.take_messages());
                let late = tools.on_answer(ChatMessage::assistant("late"));
                assert!(!late, "over is over");
                return conversation;
            }
            Action::Abort(other) => panic!("a loop ends with a tool's error, not {other}"),
        }
    }
    panic!("the loop does not end");
}

fn answer(script: &mut Script<'_>) -> ChatMessage {
    let count = usize::from(script.byte_or_zero() % 8);
    let call = |script: &mut Script<'_>| {
        let (id, name) = (script.pick_text(&IDS), script.pick_text(&NAMES));
        let arguments = match script.byte_or_zero() {
            255 => script.text(),
            at => ARGUMENTS[usize::from(at) % ARGUMENTS.len()],
        };
        ToolCall::new(id, name, arguments)
    };
    let calls = (0..count).map(|_| call(script)).collect();
    ChatMessage::assistant("").with_tool_calls(calls)
}

/// Every message with calls is followed by one answer per call, in order, and ids are distinct.
fn assert_answered(conversation: &[ChatMessage]) {
    let mut open = Vec::new().into_iter();
    for message in conversation {
        if message.role == Role::Tool {
            assert_eq!(message.tool_call_id, open.next(), "an answer out of order");
            continue;
        }
        assert!(open.next().is_none(), "a call without an answer");
        let ids: Vec<_> = message.tool_calls.iter().map(|call| &call.id).collect();
        let distinct: HashSet<_> = ids.iter().filter(|id| !id.is_empty()).collect();
        assert_eq!(distinct.len(), ids.len(), "ids must be distinct");
        open = ids.into_iter().cloned().collect::<Vec<_>>().into_iter();
    }
    assert!(open.next().is_none(), "a call without an answer");
}
