//! [`Turn`]: a question, the rounds of tools, and the answer of a model.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use rpc_core::Instant;
use serde_json::{Map, Value};
use snek_proto::error::BotError;
use snek_proto::llm::chat::{ChatMessage, Content, Role, ToolCall, ToolCallId};
use snek_proto::llm::tool::ToolDefinition;
use snek_proto::llm::toolloop::{Action, Call, ToolFailure, ToolLoop, ToolLoopConfig};

use crate::assistant::conversation::{ConversationLimits, estimate, trim, without_middle};
use crate::model::{
    Assembler, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Notice, Refusal, extra,
    find_tool, is_object, whole,
};

/// How the result of a failed tool begins.
pub const FAILED: &str = "Error: ";

/// Why a call was not made whose arguments are not complete.
pub const CUT_CALL: &str = "the answer was cut at its length limit (max_tokens) in the middle of this call, and nothing \
                            was done: do it in smaller steps";

/// The member of a message that says how many questions before it leave the conversation, with all that came after
/// them.
const LEAVES: &str = "switchboard_leaves";
/// What its author is told of a message that the model refuses.
const LEFT_OUT: &str = " (this message is left out of the conversation from now on)";

/// The tokens that are left of a message of a turn, however long the others are.
const MIN_MESSAGE: usize = 200;
/// After so many answers in a row none of whose calls can be made, the turn ends.
const MAX_REFUSED: usize = 5;

/// Returns the limits of a turn in which a tool may fail, or run again, any number of times.
pub fn many_rounds(max_rounds: usize) -> ToolLoopConfig {
    ToolLoopConfig {
        max_rounds,
        max_repeated: usize::MAX,
        max_consecutive_errors: usize::MAX,
        ..ToolLoopConfig::default()
    }
}

/// What a program does next in a [`Turn`].
#[derive(Debug)]
pub enum Step {
    /// Asks the model: [`Turn::ask`], then [`Turn::on_answer`].
    Ask {
        /// Whether to offer the tools.
        with_tools: bool,
    },
    /// Runs a tool: [`Turn::on_result`].
    Call(Call),
    /// Shows that a call was not made. The model gets the reason.
    Refused {
        /// The id of the call.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// The reason.
        why: String,
    },
    /// Ends: this is the answer.
    Done(String),
    /// Ends: a limit has stopped the tools.
    Stopped(BotError),
}

/// One turn with a model, from the question to the answer, without IO of its own.
///
/// The program brings tools, storage and events; the turn knows what the model gets: the conversation up to
/// its limits, the results of the tools, and why a call was not made. A call whose arguments are not a JSON object
/// is never made. Calls get ids that are unique in the conversation.
#[derive(Debug)]
pub struct Turn {
    limits: ConversationLimits,
    config: ToolLoopConfig,
    rounds: ToolLoop,
    /// The messages before the question, instructions included.
    past: Vec<Arc<ChatMessage>>,
    /// The question and the messages since.
    since: Vec<ChatMessage>,
    /// The number of messages since the question that were taken.
    taken: usize,
    /// The number of calls in the conversation.
    calls: usize,
    /// The ids of the calls that a program has made.
    made: HashSet<ToolCallId>,
    /// The ids of the calls in which an answer was cut.
    cut: HashSet<ToolCallId>,
    refused: VecDeque<Step>,
    /// How many answers in a row had refused calls only.
    refusals: usize,
    /// Whether people know that the model does not get the whole conversation.
    is_shortened: bool,
    finish: Option<Finish>,
}

impl Turn {
    /// Creates a turn: the messages before the question, instructions included, and the question. Questions that
    /// [have left](Self::on_error) are left out, and of what only a provider knows the oldest, until the rest fits.
    pub fn new(
        limits: ConversationLimits,
        config: ToolLoopConfig,
        past: Vec<Arc<ChatMessage>>,
        question: ChatMessage,
    ) -> Self {
        let mut past = without_left(past);
        let all: usize = past.iter().map(|it| estimate(it)).sum();
        let mut surplus = (all + estimate(&question)).saturating_sub(limits.tokens);
        for message in &mut past {
            let cost = extra::size(message).div_ceil(3);
            if cost > 0 && surplus > 0 {
                surplus = surplus.saturating_sub(cost);
                extra::clear(Arc::make_mut(message));
            }
        }
        Self {
            limits,
            rounds: ToolLoop::new(config.clone()),
            config,
            calls: past.iter().map(|message| message.tool_calls.len()).sum(),
            past,
            since: vec![question],
            taken: 1,
            made: HashSet::new(),
            cut: HashSet::new(),
            refused: VecDeque::new(),
            refusals: 0,
            is_shortened: false,
            finish: None,
        }
    }

    /// Returns the messages before the question.
    pub fn past(&self) -> &[Arc<ChatMessage>] {
        &self.past
    }

    /// Returns the next step, and the same one until it is done. Names, whole numbers and booleans that the model has
    /// written otherwise are what the tool wants. The model learns which tools there are if it calls another one.
    pub fn next(&mut self, tools: &[ToolDefinition]) -> Step {
        let action = self.rounds.next_action(Instant::now());
        self.absorb();
        if let Some(refused) = self.refused.pop_front() {
            return refused;
        }
        match action {
            Action::Ask { .. } if self.refusals >= MAX_REFUSED => {
                self.rounds.cancel();
                let why = self.since.last().map(|it| it.content.text());
                let why = why.unwrap_or_default();
                let why = why.strip_prefix(FAILED).unwrap_or(&why);
                let message =
                    format!("no call of {MAX_REFUSED} answers could be made, the last: {why}");
                let tool = String::new();
                Step::Stopped(BotError::ToolError { tool, message })
            }
            Action::Ask { with_tools } => Step::Ask { with_tools },
            Action::Run(mut call) => {
                self.made.insert(call.id.clone());
                let Some(tool) = find_tool(tools, &call.name) else {
                    let mut all: Vec<_> = tools.iter().map(ToolDefinition::name).collect();
                    if all.is_empty() {
                        all.push("none");
                    }
                    let Call { id, name, .. } = call;
                    let why = format!("there is no tool {name:?}; there are: {}", all.join(", "));
                    self.on_result(&id, Err(ToolFailure::Call(why.clone())));
                    return Step::Refused { id, name, why };
                };
                tool.name().clone_into(&mut call.name);
                settle(tool, &mut call.arguments);
                Step::Call(call)
            }
            Action::Done(text) => Step::Done(text),
            Action::Abort(error) => Step::Stopped(error),
        }
    }

    /// Moves the messages of finished rounds to the conversation.
    fn absorb(&mut self) {
        let known = self.since.len();
        let mut is_refused = None;
        for mut message in self.rounds.take_messages() {
            if let Some(id) = message.tool_call_id.clone() {
                if self.made.contains(&id) {
                    is_refused = Some(false);
                    self.since.push(message);
                    continue;
                }
                is_refused.get_or_insert(true);
                if self.cut.contains(&id) {
                    message.content = format!("{FAILED}{CUT_CALL}").into();
                }
                let calls = self.since.iter().rev().flat_map(|it| &it.tool_calls);
                let name = calls.into_iter().find(|call| call.id == id);
                let why = message.content.text();
                self.refused.push_back(Step::Refused {
                    id,
                    name: name.map_or_else(String::new, |call| call.name.clone()),
                    why: why.strip_prefix(FAILED).unwrap_or(&why).to_owned(),
                });
            }
            self.since.push(message);
        }
        self.refusals = match is_refused {
            Some(true) => self.refusals + 1,
            Some(false) => 0,
            None => self.refusals,
        };
        if self.since.len() > known {
            self.shorten();
        }
    }

    /// Shortens the longest messages of this turn until the turn fits: a model that does not get what it has done
    /// does it again.
    fn shorten(&mut self) {
        let instructions = self.past.iter().filter(|it| it.role == Role::System);
        let taken: usize = instructions.map(|it| estimate(it)).sum();
        let room = self.limits.tokens.saturating_sub(taken) / 4 * 3;
        let mut costs: Vec<usize> = self.since.iter().map(estimate).collect();
        let mut used: usize = costs.iter().sum();
        // The cost of each message that can still be shortened.
        let is_long = |it: &ChatMessage| it.role == Role::Tool || !it.tool_calls.is_empty();
        for (cost, message) in costs.iter_mut().zip(&self.since) {
            *cost *= usize::from(is_long(message));
        }
        while used > room {
            let longest = costs.iter_mut().zip(&mut self.since);
            let longest = longest.max_by_key(|(cost, _)| **cost);
            let Some((cost, message)) = longest.filter(|(cost, _)| **cost > MIN_MESSAGE) else {
                return;
            };
            let others = used - *cost;
            let wanted = match others <= room / 2 {
                true => room - others,
                // Others are long, too.
                false => *cost / 2,
            };
            shorten(message, wanted.max(MIN_MESSAGE), *cost);
            let left = estimate(message);
            used = others + left;
            *cost = if left < *cost { left } else { 0 };
        }
    }

    /// Asks the model about a [context](Self::context), by the provider's `name` for it if it is not the configured
    /// one. If that is too long for the model, asks it once more about half of it, which bounds this turn from then on.
    ///
    /// # Errors
    /// As for [`ChatModel::stream`].
    ///
    /// # Cancel safety
    /// As for [`ChatModel::stream`].
    pub async fn ask(
        &self,
        context: Vec<&ChatMessage>,
        model: &dyn ChatModel,
        name: Option<&str>,
        tools: &[ToolDefinition],
    ) -> Result<Answer, ModelError> {
        let all = self.past.len() + self.since.len();
        let mut request = ChatRequest {
            messages: context,
            tools,
            model: name,
        };
        let mut fits = None;
        let mut deltas = model.stream(request.clone()).await?;
        let mut first = deltas.next().await;
        if let Some(Err(error)) = first.as_ref()
            && error.refusal() == Some(Refusal::TooLong)
            && let Some(half) = half(&request.messages)
        {
            tracing::warn!(%error, "asking the model with half of the conversation");
            let cost = half.iter().map(|it| estimate(it)).sum();
            fits = Some(cost);
            request.messages = half;
            deltas = model.stream(request.clone()).await?;
            first = deltas.next().await;
        }
        let left_out = all - request.messages.len();
        let question = self.since.first().map_or(0, estimate);
        let (tokens, max) = (question, self.limits.tokens);
        let notice = match tokens > max {
            true => Some(Notice::TooLong { tokens, max }),
            false => (left_out > 0).then_some(Notice::Shortened { left_out }),
        };
        Ok(Answer {
            deltas: stream::iter(first).chain(deltas).boxed(),
            notice,
            whole: Assembler::default(),
            origin: model.origin(),
            is_shortened: self.is_shortened,
            fits,
        })
    }

    /// Returns the messages that the model is sent: the newest that fit into the limits.
    pub fn context(&self) -> Vec<&ChatMessage> {
        let past = self.past.iter().map(AsRef::as_ref);
        trim(&past.chain(&self.since).collect::<Vec<_>>(), self.limits)
    }

    /// Takes the whole answer of the model. Returns its calls, with their ids.
    pub fn on_answer(&mut self, answer: Answer) -> Vec<ToolCall> {
        self.is_shortened = answer.is_shortened;
        self.finish = answer.whole.finish().cloned();
        if let Some(tokens) = answer.fits {
            self.limits = self.limits.with_tokens(tokens);
        }
        let mut message = answer.whole.into_message();
        for call in &mut message.tool_calls {
            self.calls += 1;
            let id = format!("call_{}", self.calls);
            extra::rename(call, id.into());
        }
        extra::sign(&mut message, &answer.origin);
        if self.finish == Some(Finish::ContentFilter) {
            // They are withheld with the rest.
            message.tool_calls.clear();
        }
        if self.finish == Some(Finish::Length) {
            let calls = message.tool_calls.iter();
            let cut = calls.filter(|call| !is_object(&call.arguments));
            self.cut.extend(cut.map(|call| call.id.clone()));
        }
        let calls = message.tool_calls.clone();
        self.rounds.on_answer(message);
        calls
    }

    /// Ends the turn after an error of the model; `has_begun` says whether people have seen a part of its answer. A
    /// question leaves the conversation if it has no answer, and with all that came after it if it is refused as such:
    /// it would be refused again. Then the error says so.
    pub fn on_error(&mut self, mut error: ModelError, has_begun: bool) -> ModelError {
        let mut leaves = !has_begun && self.since.iter().all(|it| it.role == Role::User);
        if let ModelError::Refused {
            status,
            refusal,
            message,
        } = &mut error
            && let (Refusal::TooLong, _) | (Refusal::Request, Some(400 | 413 | 422)) =
                (*refusal, *status)
        {
            leaves = true;
            message.push_str(LEFT_OUT);
        }
        if leaves {
            let questions = self.since.iter().filter(|it| it.role == Role::User);
            let questions = questions.count();
            self.cancel();
            drop(self.rounds.take_messages());
            let mut mark = ChatMessage::assistant(Content::None);
            mark.extra.insert(LEAVES.to_owned(), questions.into());
            (self.since, self.taken) = (vec![mark], 0);
        }
        error
    }

    /// Returns whether the question has left the conversation.
    pub fn has_left(&self) -> bool {
        self.since.iter().any(|it| it.extra.contains_key(LEAVES))
    }

    /// Takes the result of a call.
    pub fn on_result(&mut self, id: &str, result: Result<Value, ToolFailure>) {
        self.rounds.on_result(id, result, Instant::now());
    }

    /// Adds what the user has said meanwhile, or goes on with it after an answer.
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = ChatMessage>) {
        self.since.extend(messages);
        self.taken = self.since.len();
        if let Action::Done(_) = self.rounds.next_action(Instant::now()) {
            self.rounds = ToolLoop::new(self.config.clone());
        }
    }

    /// Takes the messages that belong to the conversation since the last time.
    pub fn take_messages(&mut self) -> Vec<ChatMessage> {
        self.absorb();
        let new = self.since.get(self.taken..).unwrap_or_default().to_vec();
        self.taken = self.since.len();
        new
    }

    /// Ends the turn: calls that were not made have a result that says so.
    pub fn cancel(&mut self) {
        self.rounds.cancel();
    }

    /// Returns why the last answer of the model has ended, if it has said so.
    pub const fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }
}

/// Leaves out the questions that have left, those that were asked together with them, and the marks.
fn without_left(messages: Vec<Arc<ChatMessage>>) -> Vec<Arc<ChatMessage>> {
    let mut out: Vec<Arc<ChatMessage>> = Vec::new();
    for message in messages {
        let Some(questions) = message.extra.get(LEAVES).and_then(Value::as_u64) else {
            out.push(message);
            continue;
        };
        let is_question = |it: &Arc<ChatMessage>| it.role == Role::User;
        for _ in 0..questions {
            let place = out.iter().rposition(is_question);
            out.truncate(place.unwrap_or(out.len()));
        }
        while out.pop_if(|it| is_question(it)).is_some() {}
    }
    out
}

/// Shortens a result, or the texts that calls have as arguments, from a cost to about another one.
fn shorten(message: &mut ChatMessage, wanted: usize, cost: usize) {
    let cut = |text: &str| {
        let most = text.chars().count() * wanted / (cost + 1);
        without_middle(text, most).into_owned()
    };
    if message.role == Role::Tool {
        message.content = cut(&message.content.text()).into();
        return;
    }
    for call in &mut message.tool_calls {
        match serde_json::from_str(&call.arguments) {
            Ok(Value::Object(mut arguments)) => {
                arguments.values_mut().for_each(|it| change_texts(it, &cut));
                call.arguments = Value::Object(arguments).to_string();
            }
            // It was not made.
            _ => "{}".clone_into(&mut call.arguments),
        }
    }
}

fn change_texts(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|it| change_texts(it, change)),
        Value::Object(members) => members.values_mut().for_each(|it| change_texts(it, change)),
        _ => {}
    }
}

/// Half of a conversation, by its tokens; `None` if nothing can be left out.
fn half<'a>(messages: &[&'a ChatMessage]) -> Option<Vec<&'a ChatMessage>> {
    let tokens: usize = messages.iter().map(|it| estimate(it)).sum();
    let limits = ConversationLimits::default().with_sent(usize::MAX);
    let half = trim(messages, limits.with_tokens(tokens / 2));
    (half.len() < messages.len()).then_some(half)
}

/// An answer of the model that grows.
pub struct Answer {
    deltas: Deltas,
    notice: Option<Notice>,
    /// What has come of it.
    pub whole: Assembler,
    /// Whose answer this is.
    origin: String,
    is_shortened: bool,
    /// The tokens that the model takes, if it has refused more.
    fits: Option<usize>,
}

rpc_core::debug_fields!([] Answer, this => { whole: this.whole });

impl Answer {
    /// Returns the next piece. That the conversation is cut is reported once in a turn.
    ///
    /// # Errors
    /// [`ModelError`]: the answer ends here.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            let delta = match self.notice.take() {
                Some(notice) => Delta::Notice(notice),
                None => match self.deltas.next().await? {
                    Ok(delta) => delta,
                    Err(error) => return Some(Err(error)),
                },
            };
            if let Err(error) = self.whole.push(&delta) {
                return Some(Err(error));
            }
            let is_shortened = matches!(
                delta,
                Delta::Notice(Notice::Shortened { .. } | Notice::TooLong { .. })
            );
            if !is_shortened || !std::mem::replace(&mut self.is_shortened, true) {
                return Some(Ok(delta));
            }
        }
    }
}

/// Makes whole numbers (`2.0`, `"2"`) and booleans (`"true"`) what the tool wants. What is not clear stays as it is.
fn settle(tool: &ToolDefinition, arguments: &mut Map<String, Value>) {
    let schema = tool.to_value();
    let properties = &schema["function"]["parameters"]["properties"];
    for (name, value) in arguments {
        let kind = &properties[name]["type"];
        let written = match &*value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        let read = serde_json::from_str(&written).ok();
        let meant = match kind.as_str() {
            Some("integer") => read.as_ref().and_then(whole),
            Some("number") => read.filter(Value::is_number),
            Some("boolean") => read.filter(Value::is_boolean),
            _ => None,
        };
        if let Some(meant) = meant {
            *value = meant;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snek_proto::llm::tool::{Param, ParamType};

    use super::*;

    #[test]
    fn converts_unambiguous_numbers_and_booleans() {
        let tool = ToolDefinition::new("t", "")
            .param(Param::new("i", ParamType::Integer))
            .param(Param::new("b", ParamType::Boolean))
            .param(Param::new("s", ParamType::String));
        for (given, meant) in [
            (
                json!({"i": 2.0, "b": "true", "s": "2"}),
                json!({"i": 2, "b": true, "s": "2"}),
            ),
            (
                json!({"i": "-3", "b": "false"}),
                json!({"i": -3, "b": false}),
            ),
            (json!({"i": " 4.0 "}), json!({"i": 4})),
            (json!({"i": 1.5, "b": "yes"}), json!({"i": 1.5, "b": "yes"})),
            (json!({"i": "two", "b": 1}), json!({"i": "two", "b": 1})),
            (json!({"i": null, "x": "2"}), json!({"i": null, "x": "2"})),
            (json!({"i": 1e300}), json!({"i": 1e300})),
        ] {
            let mut arguments = given.as_object().unwrap().clone();
            settle(&tool, &mut arguments);
            assert_eq!(Value::from(arguments), meant);
        }
    }
}
