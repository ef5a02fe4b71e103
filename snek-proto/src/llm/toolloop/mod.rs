//! [`ToolLoop`]: the steps of a conversation in which a language model calls tools, without IO
//! (Snek specification, section 12).
//!
//! With feature `tokio`, `ToolLoop::run` asks a `ChatModel` and calls `Tools` of yours:
//!
//! ```
//! use serde_json::{Value, json};
//! use snek_proto::error::BotError;
//! use snek_proto::llm::chat::{ChatMessage, Content, ToolCall};
//! use snek_proto::llm::tool::ToolDefinition;
//! use snek_proto::llm::toolloop::{Call, ChatModel, ToolFailure, ToolLoop, ToolLoopConfig, Tools};
//!
//! /// A model that wants the time, then tells it. Yours sends a request.
//! struct Model;
//!
//! impl ChatModel for Model {
//!     type Error = BotError;
//!
//!     async fn answer(
//!         &mut self,
//!         messages: &[ChatMessage],
//!         _tools: &[ToolDefinition],
//!         on_text: &mut (dyn FnMut(&str) + Send),
//!     ) -> Result<ChatMessage, BotError> {
//!         if messages.len() == 1 {
//!             let call = ToolCall::new("call_1", "time", "");
//!             return Ok(ChatMessage::assistant(Content::None).with_tool_calls(vec![call]));
//!         }
//!         for piece in ["It is ", "noon."] {
//!             on_text(piece);
//!         }
//!         Ok(ChatMessage::assistant("It is noon."))
//!     }
//! }
//!
//! struct Clock([ToolDefinition; 1]);
//!
//! impl Tools for Clock {
//!     fn definitions(&self) -> &[ToolDefinition] {
//!         &self.0
//!     }
//!
//!     async fn call(&mut self, call: &Call) -> Result<Value, ToolFailure> {
//!         match call.name.as_str() {
//!             "time" => Ok(json!("12:00")),
//!             other => Err(ToolFailure::Call(format!("there is no tool {other}"))),
//!         }
//!     }
//! }
//!
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BotError> {
//! let mut tools = Clock([ToolDefinition::new("time", "Tells the time.")]);
//! let mut conversation = vec![ChatMessage::user("what time is it?")];
//! let tool_loop = ToolLoop::new(ToolLoopConfig::default());
//! let mut pieces = Vec::new();
//! let show = |piece: &str| pieces.push(piece.to_owned());
//! let answer = tool_loop.run(&mut Model, &mut tools, &mut conversation, show).await?;
//! assert_eq!((answer.as_str(), conversation.len()), ("It is noon.", 4));
//! assert_eq!(pieces, ["It is ", "noon."]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```

mod arguments;
mod config;
mod round;
mod run;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rpc_core::Instant;
use rpc_core::breaker::{CircuitBreaker, Permit};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use config::ToolLoopConfig;
pub use run::{ChatModel, ToolFailure, Tools};

use crate::error::BotError;
use crate::llm::chat::{ChatMessage, Role, ToolCallId, text_of};
use round::Round;

/// The next step for the driver of a [`ToolLoop`]. Exhaustive: a driver has to handle all of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Append [`ToolLoop::take_messages`] to the conversation, ask the model, and hand its message
    /// to [`ToolLoop::on_answer`].
    Ask {
        /// Whether to offer the tools. Without them the model has to answer with a text.
        with_tools: bool,
    },
    /// Run this tool and hand its result to [`ToolLoop::on_result`].
    Run(Call),
    /// The model's final text. The loop is over.
    Done(String),
    /// The loop was stopped: [`BotError::ToolError`]. The conversation can continue after
    /// [`ToolLoop::take_messages`].
    Abort(BotError),
}

/// A tool call to run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The id for [`ToolLoop::on_result`].
    pub id: ToolCallId,
    /// The tool. It may not exist.
    pub name: String,
    /// The parsed arguments.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// Reads the arguments as the type of a tool: that of its definition, if feature `schema` made
    /// it [from a type](super::tool::ToolDefinition).
    ///
    /// ```
    /// use snek_proto::llm::toolloop::{Call, ToolFailure};
    ///
    /// #[derive(serde::Deserialize)] // and `schemars::JsonSchema`, for the definition
    /// struct Roll {
    ///     sides: u32,
    /// }
    ///
    /// fn roll(call: &Call) -> Result<u32, ToolFailure> {
    ///     let Roll { sides } = call.parse()?; // the model learns what is wrong
    ///     Ok(sides / 2)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ToolFailure::Call`]: an argument is missing, or has another type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolFailure> {
        serde_json::from_value(Value::Object(self.arguments.clone()))
            .map_err(|error| ToolFailure::Call(error.to_string()))
    }
}

/// One loop of tool calls, from a question to the model's final text.
///
/// - The model is asked with tools at most `max_rounds` times, and then once without them. If it
///   still calls tools, the loop stops.
/// - A call of one tool with the same arguments runs at most `max_repeated` times; further ones are
///   refused. Arguments are compared as JSON, so order and spacing do not matter.
/// - A call that gave the same result three times is refused, until another call gives something new:
///   what was tried is tried again after a change, and what changes by itself may be watched.
/// - After `max_consecutive_errors` errors in a row the loop stops, even in the middle of a round.
///   An error is a failed tool, arguments that are not a JSON object, a repeated call, or one that
///   the circuit breaker refused. Each success resets the count.
/// - Every call of the model gets exactly one message as its answer, in the order of the calls.
///   Refused calls, and those still open when the loop stops, get a text that says so.
/// - The [circuit breaker](ToolLoopConfig::breaker) is asked before each run and gets the result. It
///   does not count refusals by the loop.
///
/// Calls run one at a time. A call whose id is empty, or occurred before in the same message, gets
/// a new id, also in the model's message; the rest of the message is unchanged.
///
/// During [`Action::Run`] the loop holds a permit of the circuit breaker. A dropped loop returns it.
#[derive(Debug)]
pub struct ToolLoop {
    config: ToolLoopConfig,
    /// Questions asked with tools and answered.
    rounds: usize,
    errors: usize,
    /// The calls that were run, by their names and their arguments.
    runs: HashMap<(String, Map<String, Value>), Runs>,
    /// Messages of rounds that are over.
    ready: Vec<ChatMessage>,
    state: State,
}

/// The runs of one call.
#[derive(Debug, Default)]
struct Runs {
    count: usize,
    /// A hash of the last result.
    result: u64,
    /// How often it came since something was new.
    same: usize,
}

/// How often a call may give the same result.
const MAX_SAME_RESULTS: usize = 3;

#[derive(Debug)]
enum State {
    /// The model has to be asked.
    Asking,
    /// Its calls are being answered.
    Working(Round),
    /// The driver runs one of them.
    Running(Round, Call, Permit),
    Over(Result<String, BotError>),
}

impl ToolLoop {
    /// Creates a loop whose first action is to ask the model.
    #[must_use]
    pub fn new(config: ToolLoopConfig) -> Self {
        Self {
            config,
            rounds: 0,
            errors: 0,
            runs: HashMap::new(),
            ready: Vec::new(),
            state: State::Asking,
        }
    }

    /// Returns the next step, and the same one until it is done. Answers calls that must not run.
    pub fn next_action(&mut self, now: Instant) -> Action {
        loop {
            match &self.state {
                State::Asking => {
                    let with_tools = self.rounds < self.config.max_rounds;
                    return Action::Ask { with_tools };
                }
                State::Running(_, call, _) => return Action::Run(call.clone()),
                State::Over(Ok(text)) => return Action::Done(text.clone()),
                State::Over(Err(error)) => return Action::Abort(error.clone()),
                State::Working(_) => {}
            }
            if let State::Working(round) = std::mem::replace(&mut self.state, State::Asking) {
                self.work(round, now);
            }
        }
    }

    /// Takes the model's answer to [`Action::Ask`]. Returns whether an answer was expected; if not,
    /// nothing changes.
    pub fn on_answer(&mut self, mut answer: ChatMessage) -> bool {
        if !matches!(self.state, State::Asking) {
            return false;
        }
        answer.role = Role::Assistant;
        let with_tools = self.rounds < self.config.max_rounds;
        self.rounds += usize::from(with_tools);
        if answer.tool_calls.is_empty() {
            let text = answer.content.text().into_owned();
            self.ready.push(answer);
            self.state = State::Over(Ok(text));
            return true;
        }
        let round = Round::new(answer, self.rounds);
        if with_tools {
            self.state = State::Working(round);
        } else {
            let rounds = self.config.max_rounds;
            let message = format!("the model still called tools after {rounds} rounds");
            self.stop(round, String::new(), message);
        }
        true
    }

    /// Takes the result of the call that [`Action::Run`] named. The model gets a string as it is,
    /// any other value as compact JSON, and a failure as `Error: ` and its text. Returns whether
    /// this result was expected; if not, nothing changes.
    pub fn on_result(
        &mut self,
        id: &str,
        result: Result<Value, ToolFailure>,
        now: Instant,
    ) -> bool {
        let Some((round, call, permit)) = self.take_running(id) else {
            return false;
        };
        self.compare(&call, &result);
        let mut breaker = lock(&self.config.breaker);
        match &result {
            Ok(_) => breaker.success(permit, now),
            Err(ToolFailure::Tool(_)) => breaker.failure(permit, now),
            Err(ToolFailure::Call(_)) => breaker.cancel(permit),
        }
        drop(breaker);
        match result {
            Ok(value) => {
                self.errors = 0;
                self.resume(round.answered(text_of(value)));
            }
            Err(failure) => self.fail(round, &call.name, &failure.to_string()),
        }
        true
    }

    /// Stops the loop: answers open calls, returns the permit to the circuit breaker, and makes
    /// [`Action::Abort`] the next action. Has no effect on a loop that is over.
    pub fn cancel(&mut self) {
        let message = || "cancelled".to_owned();
        match std::mem::replace(&mut self.state, State::Asking) {
            State::Asking => self.state = State::Over(Err(tool_error(String::new(), message()))),
            State::Working(round) => self.stop(round, String::new(), message()),
            State::Running(round, call, permit) => {
                lock(&self.config.breaker).cancel(permit);
                self.stop(round, call.name, message());
            }
            over @ State::Over(_) => self.state = over,
        }
    }

    /// Takes the messages that belong to the conversation: the model's message, then one message
    /// per call in order. Those of a round are available when it is over, so a conversation never
    /// contains a call without its answer.
    #[must_use]
    pub fn take_messages(&mut self) -> Vec<ChatMessage> {
        std::mem::take(&mut self.ready)
    }

    /// Answers the next call of the round, or hands it to the driver.
    fn work(&mut self, round: Round, now: Instant) {
        let Some(call) = round.next_call() else {
            return self.resume(round);
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        let arguments = match arguments::parse(&call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => return self.fail(round, &name, &why),
        };
        let key = (name, arguments.clone());
        let runs = self.runs.entry(key.clone()).or_default();
        let (count, same) = (runs.count, runs.same);
        if count >= self.config.max_repeated {
            let why = format!("refused: the same call was already made {count} times");
            return self.fail(round, &key.0, &why);
        }
        if same >= MAX_SAME_RESULTS {
            let why = format!(
                "refused: the same call gave the same result {same} times; do something else, or \
                 answer with what you have"
            );
            return self.fail(round, &key.0, &why);
        }
        let permit = lock(&self.config.breaker).try_acquire(now);
        match permit {
            Ok(permit) => {
                let name = key.0.clone();
                runs.count += 1;
                let call = Call {
                    id,
                    name,
                    arguments,
                };
                self.state = State::Running(round, call, permit);
            }
            Err(open) => {
                let retry_after = open.retry_after.unwrap_or_default();
                let error = BotError::CircuitBreakerOpenError { retry_after };
                self.fail(round, &key.0, &error.to_string());
            }
        }
    }

    /// Notes a result. If it is new, calls that gave the same ones may be made again.
    fn compare(&mut self, call: &Call, result: &Result<Value, ToolFailure>) {
        let key = (call.name.clone(), call.arguments.clone());
        let result = format!("{result:?}");
        let result = BuildHasherDefault::<DefaultHasher>::default().hash_one(result);
        let is_known = |runs: &Runs| runs.count > 1 && runs.result == result;
        if !self.runs.get(&key).is_some_and(is_known) {
            self.runs.values_mut().for_each(|runs| runs.same = 0);
        }
        let runs = self.runs.entry(key).or_default();
        runs.result = result;
        runs.same += 1;
    }

    fn take_running(&mut self, id: &str) -> Option<(Round, Call, Permit)> {
        match std::mem::replace(&mut self.state, State::Asking) {
            State::Running(round, call, permit) if call.id == id => Some((round, call, permit)),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Answers the current call with an error, which may stop the loop.
    fn fail(&mut self, round: Round, tool: &str, why: &str) {
        self.errors += 1;
        let round = round.answered(format!("Error: {why}"));
        if self.errors >= self.config.max_consecutive_errors.max(1) {
            let message = format!("{} errors in a row, the last: {why}", self.errors);
            self.stop(round, tool.to_owned(), message);
        } else {
            self.resume(round);
        }
    }

    fn resume(&mut self, round: Round) {
        if round.next_call().is_some() {
            self.state = State::Working(round);
        } else {
            self.ready.extend(round.finish(""));
            self.state = State::Asking;
        }
    }

    fn stop(&mut self, round: Round, tool: String, message: String) {
        self.ready
            .extend(round.finish("Error: not run, the tool calls were stopped"));
        self.state = State::Over(Err(tool_error(tool, message)));
    }
}

impl Drop for ToolLoop {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn lock(breaker: &Mutex<CircuitBreaker>) -> MutexGuard<'_, CircuitBreaker> {
    breaker.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tool_error(tool: String, message: String) -> BotError {
    BotError::ToolError { tool, message }
}
