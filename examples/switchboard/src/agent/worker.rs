//! [`Worker`]: asks a model, runs its tool calls, and asks the user for approval where needed.

mod approval;
mod growing;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use connectonion_proto::Json;
use connectonion_proto::frame::{EventKind, LlmCall, Mode, ToolCall, UlwAction, UlwTurnsReached};
use connectonion_proto::limits::{ULW_TURNS, ULW_TURNS_USED};
use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Turn};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use snek_proto::llm::chat::{Block, ChatMessage};
use snek_proto::llm::tool::ToolDefinition;
use snek_proto::llm::toolloop::{Call, ToolFailure, ToolLoopConfig};
use tokio::time::timeout_at;

use self::approval::REFUSED;
use self::growing::{Growing, remark};
use crate::assistant::conversation::ConversationLimits;
use crate::assistant::tools::Tools;
use crate::assistant::{self, Answer, Step};
use crate::daemon::Workspace;
use crate::model::{ChatModel, Finish, ModelError};
use crate::text::printable;

/// The default instructions for the model.
pub const SYSTEM: &str = "You are an agent with tools. Use them where they help, answer briefly, \
    and in the language of the question. If you cannot go on without the user, ask with ask_user.";

const STOPPED: &str = "I have not done it, as you wish. What would you like me to do?";

/// An agent: a model with tools.
pub struct Worker {
    model: Arc<dyn ChatModel>,
    /// The name of the model, for observers.
    name: String,
    tools: Tools,
    /// Where the tools write, to show a change before it is made. Default none.
    pub folder: Option<Workspace>,
    /// The instructions for the model. Default [`SYSTEM`].
    pub system: String,
    /// How much of a conversation the model gets.
    pub limits: ConversationLimits,
    /// Shared by all runs: when the tools keep failing, they are not called for a while.
    rounds: ToolLoopConfig,
}

impl Worker {
    /// Creates an agent with this model, named `name`, and these [tools](super::tools::tools).
    pub fn new(model: Arc<dyn ChatModel>, name: impl Into<String>, tools: Tools) -> Self {
        Self {
            model,
            name: name.into(),
            tools,
            folder: None,
            system: SYSTEM.to_owned(),
            limits: ConversationLimits::default().with_sent(usize::MAX),
            rounds: ToolLoopConfig::default(),
        }
    }

    /// Returns the names of the tools.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.definitions().iter().map(ToolDefinition::name)
    }
}

rpc_core::debug_fields!([] Worker, this => { model: this.model, tools: this.tools });

impl Agent for Worker {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        let counted = tokio::select! {
            counted = count_turn(turn) => counted,
            () = turn.interrupted() => Err(Stop::Interrupted),
        };
        let ended = match counted {
            Ok(()) => Work::new(self, turn, &prompt)?.run().await,
            Err(stop) => Err(stop),
        };
        match ended {
            Ok(text) => Ok(Reply::new(text)),
            Err(Stop::Interrupted) => Ok(Reply::interrupted()),
            Err(Stop::Refused) => Ok(Reply::new(STOPPED)),
            Err(Stop::Failed(error)) => Err(error),
            Err(stop @ Stop::Tool(_)) => Err(AppError::failed(stop.to_string())),
        }
    }
}

/// The reason why a run ends early.
enum Stop {
    /// The user interrupted it.
    Interrupted,
    /// The user refused a tool, and wants no other attempt.
    Refused,
    Failed(AppError),
    /// A tool has failed, and the model learns why.
    Tool(ToolFailure),
}

/// The result of a tool, for people.
struct DisplayedResult(Value);

impl fmt::Display for DisplayedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(text),
            value => value.fmt(f),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the user has interrupted it"),
            Self::Refused => f.write_str(REFUSED),
            Self::Failed(_) => f.write_str("it has failed"),
            Self::Tool(failure) => failure.fmt(f),
        }
    }
}

impl<E: Into<AppError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn failed(error: &ModelError) -> AppError {
    tracing::warn!(%error, "the model failed");
    AppError::failed(error.to_string())
}

/// Counts a turn. In the mode `ulw`, which asks nothing else, each answer is a turn; asks the user
/// when the allowed turns are used up.
async fn count_turn(turn: &Turn) -> Result<(), Stop> {
    let is_ulw = turn.mode() == Some(Mode::Ulw);
    let Some(max) = turn.ulw_turns().filter(|_| is_ulw) else {
        return Ok(());
    };
    let used = turn.member(ULW_TURNS_USED);
    let used = used.and_then(|used| used.get().parse::<u64>().ok());
    let used = used.unwrap_or_default();
    if used >= max {
        let reached = UlwTurnsReached::new(used, max);
        let word = turn.ulw_turns_reached(reached).await?;
        if word.action != UlwAction::Continue {
            let mode = match word.mode {
                None | Some(Mode::Other(_)) => Mode::Safe,
                Some(known) => known,
            };
            turn.set_mode(mode)?;
            return Ok(());
        }
        let more = max.saturating_add(word.turns.unwrap_or(1));
        turn.set_member(ULW_TURNS, &more)?;
    }
    turn.set_member(ULW_TURNS_USED, &used.saturating_add(1))?;
    Ok(())
}

/// One run.
struct Work<'a> {
    worker: &'a Worker,
    turn: &'a Turn,
    talk: assistant::Turn,
    iteration: u64,
    /// The id for the event with the text of the last answer.
    answer_id: String,
}

impl<'a> Work<'a> {
    fn new(worker: &'a Worker, turn: &'a Turn, prompt: &Prompt) -> Result<Self, AppError> {
        // Messages of other programs that a model cannot read are left out.
        let read = |value| serde_json::from_value(value).ok();
        let messages = turn.messages::<Value>()?.into_iter();
        let mut messages: Vec<ChatMessage> = messages.filter_map(read).collect();
        // The prompt is the last of them.
        messages.pop();
        let past = std::iter::once(ChatMessage::system(&worker.system)).chain(messages);
        let past = past.map(Arc::new).collect();
        let rounds = worker.rounds.clone();
        Ok(Self {
            worker,
            turn,
            talk: assistant::Turn::new(worker.limits, rounds, past, message(prompt)),
            iteration: 0,
            answer_id: String::new(),
        })
    }

    async fn run(mut self) -> Result<String, Stop> {
        let ended = self.work().await;
        // However it ended, a call in the conversation has its result there.
        self.talk.cancel();
        self.remember()?;
        ended
    }

    async fn work(&mut self) -> Result<String, Stop> {
        loop {
            let step = self.talk.next(self.worker.tools.definitions());
            self.remember()?;
            match step {
                Step::Ask { with_tools } => self.ask(with_tools).await?,
                Step::Call(call) => self.call(&call).await?,
                Step::Refused { name, why, .. } => {
                    let why = format!("{} was not called: {why}", printable(&name));
                    self.emit(remark(why))?;
                }
                Step::Done(text) => {
                    let shortfall = self.talk.finish().and_then(Finish::shortfall);
                    if let Some(shortfall) = shortfall {
                        // No run may take all the memory.
                        self.emit_text(&text)?;
                        return Err(AppError::failed(shortfall).into());
                    }
                    // What was said meanwhile is answered, too.
                    if self.turn.input_waits().now_or_never().is_none() {
                        return Ok(text);
                    }
                    self.emit_text(&text)?;
                    self.talk.add_messages([]);
                }
                Step::Stopped(error) => return Err(AppError::failed(error.to_string()).into()),
            }
        }
    }

    fn emit(&self, event: EventKind) -> Result<(), Stop> {
        self.turn.emit(event)?;
        Ok(())
    }

    /// Shows the text of the model's answer as a whole, in place of its parts.
    fn emit_text(&self, text: &str) -> Result<(), Stop> {
        if !text.trim().is_empty() {
            let event = EventKind::Assistant(text.into());
            self.turn.emit_as(&self.answer_id, event)?;
        }
        Ok(())
    }

    /// Adds the messages of the rounds to the conversation.
    fn remember(&mut self) -> Result<(), Stop> {
        for message in self.talk.take_messages() {
            self.turn.push_message(&message)?;
        }
        Ok(())
    }

    /// Asks the model once.
    async fn ask(&mut self, with_tools: bool) -> Result<(), Stop> {
        let inputs = self.turn.next_inputs()?;
        self.talk.add_messages(inputs.iter().map(message));
        self.iteration += 1;
        let (worker, turn, iteration) = (self.worker, self.turn, self.iteration);
        let call = LlmCall::new(worker.name.as_str(), iteration);
        let id = turn.emit(EventKind::LlmCall(call))?;
        let start = Instant::now();
        let mut growing = Growing::new(&id);
        let ended = tokio::select! {
            ended = self.grow(with_tools, &mut growing) => ended,
            () = turn.interrupted() => Err(Stop::Interrupted),
        };
        growing.end_thought();
        self.show(&mut growing)?;
        self.answer_id = growing.answer_id();
        let answer = match ended {
            Ok(answer) => answer,
            Err(stop) => {
                // What was said until now stays.
                self.emit_text(growing.text())?;
                if !growing.text().trim().is_empty() {
                    let partial = ChatMessage::assistant(growing.text());
                    turn.push_message(&partial)?;
                }
                return Err(stop);
            }
        };
        let usage = answer.whole.usage().map(
            |usage| json!({ "input_tokens": usage.prompt, "output_tokens": usage.completion }),
        );
        let calls = self.talk.on_answer(answer).len();
        let wanted = u64::try_from(calls).unwrap_or(u64::MAX);
        let mut result = LlmCall::answer(worker.name.as_str(), iteration, wanted);
        result.duration_ms = Some(millis(start.elapsed()).into());
        result.usage = usage.and_then(|usage| Json::of(&usage).ok());
        turn.emit_as(&id, EventKind::LlmResult(result))?;
        if calls > 0 {
            self.emit_text(growing.text())?;
        }
        Ok(())
    }

    /// Reads an answer of the model, and shows how it grows.
    async fn grow(&mut self, with_tools: bool, growing: &mut Growing) -> Result<Answer, Stop> {
        let Worker { model, tools, .. } = self.worker;
        let offered = if with_tools { tools.definitions() } else { &[] };
        let context = self.talk.context();
        let answer = self.talk.ask(context, &**model, None, offered).await;
        let mut answer = answer.map_err(|error| failed(&self.talk.on_error(error, false)))?;
        loop {
            let delta = match growing.due() {
                Some(due) => timeout_at(due, answer.next()).await,
                None => Ok(answer.next().await),
            };
            let now = tokio::time::Instant::now();
            match delta {
                Ok(Some(delta)) => {
                    let has_begun = !growing.text().trim().is_empty();
                    let delta = delta.map_err(|it| failed(&self.talk.on_error(it, has_begun)))?;
                    growing.push(delta, now);
                }
                Ok(None) => return Ok(answer),
                Err(_) => growing.send(now),
            }
            self.show(growing)?;
        }
    }

    fn show(&self, growing: &mut Growing) -> Result<(), Stop> {
        while let Some((id, event)) = growing.poll() {
            match id {
                Some(id) => self.turn.emit_as(&id, event)?,
                None => self.emit(event)?,
            }
        }
        Ok(())
    }

    /// Runs a tool, and passes its result to the rounds.
    async fn call(&mut self, call: &Call) -> Result<(), Stop> {
        let arguments = Json::of(&call.arguments)?;
        let event = ToolCall::new(call.id.as_str(), call.name.as_str(), arguments.clone());
        let turn = self.turn;
        let work = async {
            let ended = tokio::select! {
                ended = self.permitted(call, &arguments) => ended?,
                () = turn.interrupted() => return Err(Stop::Interrupted),
            };
            ended.map(DisplayedResult).map_err(Stop::Tool)
        };
        let ended = match turn.tool(event, work).await? {
            Ok(DisplayedResult(value)) => Ok(value),
            Err(Stop::Tool(failure)) => Err(failure),
            Err(stop) => return Err(stop),
        };
        self.talk.on_result(&call.id, ended);
        Ok(())
    }
}

/// Converts a prompt to a message for a model.
fn message(prompt: &Prompt) -> ChatMessage {
    if prompt.images.is_empty() {
        return ChatMessage::user(&*prompt.text);
    }
    let images = prompt
        .images
        .iter()
        .map(|url| Block::ImageUrl(url.to_string()));
    let text = Block::Text(prompt.text.to_string());
    ChatMessage::user(std::iter::once(text).chain(images).collect::<Vec<_>>())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
