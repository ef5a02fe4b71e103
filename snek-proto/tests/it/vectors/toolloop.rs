//! Vectors of conversations with tools.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::breaker::{BreakerConfig, CircuitBreaker, State};
use serde_json::{Value, json};
use snek_proto::error::BotError;
use snek_proto::llm::chat::{ChatMessage, Role, ToolCall};
use snek_proto::llm::toolloop::{Action, ToolFailure, ToolLoop, ToolLoopConfig};

use super::{Vector, run};

#[test]
fn tool_loops_match_the_vectors() {
    run("toolloop", |vector| {
        let mut player = Player::new(vector);
        player.play(vector.get("steps"), "");
    });
}

struct Player<'v> {
    vector: &'v Vector,
    config: ToolLoopConfig,
    tools: ToolLoop,
    begin: Instant,
    now: Instant,
}

impl<'v> Player<'v> {
    fn new(vector: &'v Vector) -> Self {
        let number = |group: &str, name: &str| {
            let value = vector.get(group).get(name)?.as_u64()?;
            Some(u32::try_from(value).unwrap())
        };
        let mut config = ToolLoopConfig::default();
        let limit = |name| number("config", name).map(|limit| limit as usize);
        config.max_rounds = limit("rounds").unwrap_or(config.max_rounds);
        config.max_repeated = limit("repeated").unwrap_or(config.max_repeated);
        config.max_consecutive_errors = limit("errors").unwrap_or(config.max_consecutive_errors);
        let mut breaker = BreakerConfig::default();
        if let Some(failures) = number("breaker_config", "failures") {
            breaker.failure_threshold = failures;
        }
        if let Some(trials) = number("breaker_config", "trials") {
            breaker.half_open_max_calls = trials;
        }
        config.breaker = Arc::new(Mutex::new(CircuitBreaker::new(breaker)));
        let now = Instant::now();
        Self {
            vector,
            tools: ToolLoop::new(config.clone()),
            config,
            begin: now,
            now,
        }
    }

    fn next(&mut self) -> Action {
        let action = self.tools.next_action(self.now);
        let again = self.tools.next_action(self.now);
        assert_eq!(action, again, "an action is stable");
        action
    }

    fn play(&mut self, steps: &Value, count: &str) {
        for step in steps.as_array().unwrap() {
            if let Some(times) = step.get("times") {
                for n in 0..times.as_u64().unwrap() {
                    self.play(&step["steps"], &n.to_string());
                }
            } else {
                let text = step.to_string().replace("<n>", count);
                self.step(&serde_json::from_str(&text).unwrap());
            }
        }
    }

    fn step(&mut self, step: &Value) {
        let name = self.vector.name();
        let at = format!("{name}: {step}");
        let text = |member: &str| step[member].as_str();
        let (member, value) = [
            "ask",
            "run",
            "done",
            "abort",
            "messages",
            "answers_start",
            "drop",
            "stray",
            "stray_answer",
            "at",
            "breaker",
            "admits",
            "cancel",
            "running",
            "state",
            "again",
        ]
        .into_iter()
        .find_map(|member| Some((member, step.get(member)?)))
        .unwrap_or_else(|| panic!("{at}"));
        match member {
            "ask" => {
                let with_tools = value.as_bool().unwrap();
                assert_eq!(self.next(), Action::Ask { with_tools }, "{at}");
                assert!(self.tools.on_answer(answer(step)), "{at}");
            }
            "run" => {
                let Action::Run(call) = self.next() else {
                    panic!("{at}")
                };
                assert_eq!(
                    json!([call.name, call.id]),
                    json!([value, step["id"]]),
                    "{at}"
                );
                if let Some(arguments) = step.get("arguments") {
                    assert_eq!(&Value::Object(call.arguments), arguments, "{at}");
                }
                let result = match (text("refuse"), text("err")) {
                    (Some(why), _) => Err(ToolFailure::Call(why.to_owned())),
                    (None, Some(error)) => Err(ToolFailure::Tool(error.to_owned())),
                    (None, None) => Ok(step["ok"].clone()),
                };
                let taken = self.tools.on_result(&call.id, result, self.now);
                assert!(taken, "{at}");
            }
            "done" => assert_eq!(
                self.next(),
                Action::Done(text("done").unwrap().into()),
                "{at}"
            ),
            "abort" => {
                let Action::Abort(BotError::ToolError { tool, message }) = self.next() else {
                    panic!("{at}")
                };
                assert_eq!(&json!(tool), value, "{at}");
                assert!(message.contains(text("why").unwrap()), "{at}: {message}");
            }
            "messages" => {
                let taken = self.tools.take_messages();
                let shown: Vec<_> = taken.iter().map(shown).collect();
                assert_eq!(&json!(shown), value, "{at}");
            }
            "answers_start" => {
                let taken = self.tools.take_messages();
                let texts = taken.iter().filter(|message| message.role == Role::Tool);
                let texts: Vec<_> = texts.map(|message| message.content.text()).collect();
                let starts = value.as_array().unwrap();
                assert_eq!(texts.len(), starts.len(), "{at}: {texts:?}");
                for (text, start) in texts.iter().zip(starts) {
                    assert!(text.starts_with(start.as_str().unwrap()), "{at}: {text}");
                }
            }
            "drop" => {
                // Messages of a round are ready once the round is known to be over.
                self.next();
                let taken = self.tools.take_messages();
                if let Some(last) = step.get("last") {
                    assert_eq!(&shown(taken.last().unwrap()), last, "{at}");
                }
            }
            "stray" => {
                let id = value.as_str().unwrap();
                let before = self.next();
                assert!(!self.tools.on_result(id, Ok(Value::Null), self.now));
                assert_eq!(self.next(), before, "{at}");
            }
            "stray_answer" => {
                let before = self.next();
                assert!(!self.tools.on_answer(ChatMessage::assistant("stray")));
                assert_eq!(self.next(), before, "{at}");
            }
            "at" => self.now = self.begin + Duration::from_secs_f64(value.as_f64().unwrap()),
            "breaker" => {
                let state = match self.config.breaker.lock().unwrap().state() {
                    State::Closed => "closed",
                    State::Open => "open",
                    State::HalfOpen => "half-open",
                };
                assert_eq!(&json!(state), value, "{at}");
            }
            "admits" => {
                let admits = self.config.breaker.lock().unwrap().admits(self.now);
                assert_eq!(&json!(admits), value, "{at}");
            }
            "cancel" => self.tools.cancel(),
            "running" => match self.next() {
                Action::Run(call) => assert_eq!(&json!(call.name), value, "{at}"),
                other => panic!("{at}: {other:?}"),
            },
            "state" => assert!(matches!(self.next(), Action::Ask { .. }), "{at}"),
            _ => self.tools = ToolLoop::new(self.config.clone()),
        }
    }
}

/// The model's message of a step.
fn answer(step: &Value) -> ChatMessage {
    if let Some(message) = step.get("answer") {
        return serde_json::from_value(message.clone()).unwrap();
    }
    if let Some(text) = step.get("say") {
        return ChatMessage::assistant(text.as_str().unwrap());
    }
    let calls = step["calls"].as_array().unwrap().iter();
    let text = |call: &Value, at: usize| call[at].as_str().unwrap().to_owned();
    let calls = calls.map(|call| ToolCall::new(text(call, 0), text(call, 1), text(call, 2)));
    ChatMessage::assistant("").with_tool_calls(calls.collect())
}

/// A message as the vectors write it.
fn shown(message: &ChatMessage) -> Value {
    let id = &message.tool_call_id;
    match message.role {
        Role::Tool => json!(["tool", id, message.content]),
        role => {
            let ids: Vec<_> = message.tool_calls.iter().map(|call| &call.id).collect();
            assert!(id.is_none());
            json!([role, message.content, ids])
        }
    }
}
