//! One chat: context, budget, model, tools, and storing the turn.

use std::pin::pin;
use std::sync::Arc;

use exoclaw_proto::budget::estimate;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, Method, StreamEvent, ToolResult, ToolUse, Usage};
use exoclaw_proto::net::{AppError, Gone};
use exoclaw_proto::session::SessionKey;
use futures_util::future::poll_immediate;
use rpc_core::Json;
use serde_json::Value;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::toolloop::{Call, ToolFailure};
use tokio::task::JoinSet;

use super::charge::Charge;
use super::{Engine, Held, NOT_STORED, PageChat, Reply, unreadable};
use crate::assistant::{self, Step, many_rounds};
use crate::gateway::memory::{Context, Mark, Turn};
use crate::gateway::store::Commit;
use crate::gateway::tool::ToolOutput;
use crate::gateway::usage::Ending;
use crate::model::{ChatModel, Delta, Finish, ModelError, Notice};

/// The error if a model calls tools without end.
const TOO_MANY_ROUNDS: &str = "tool-use loop exceeded max iterations";

/// What stands between two paragraphs.
const PARAGRAPH: &str = "\n\n";

/// Most bytes of tool results in one reply: they are kept, and sent with every round.
const MAX_RESULTS: usize = 8 * 1024 * 1024;

/// The reason why a conversation with the model broke off.
enum Broken {
    Gone,
    Model(ModelError),
    /// The tools were stopped, and why.
    TooManyRounds(String),
}

impl From<Gone> for Broken {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<ModelError> for Broken {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl Engine {
    /// Answers a chat. On `Ok` the reply is complete, except for a `done` that [`Reply::done`] does not send, and is stored; if it
    /// could not be stored, the error is [`NOT_STORED`].
    ///
    /// Holds the session's turn from reading the context until the reply is stored and `done` is sent, so
    /// the second of two messages always knows the first, and nothing of its reply comes before that.
    ///
    /// # Errors
    /// [`AppError`], the error for the client.
    ///
    /// # Cancel safety
    /// Dropping the future stops the model and the tools. The tokens used so far are counted, the question
    /// and what was said so far are stored with a [`Mark`], and then the next message has its turn. If the
    /// reply was complete and is being stored, that continues. Nothing of a reply is sent and no tool is called before
    /// the question is stored, in case the process ends: with an estimate of its tokens, or with its answer if the
    /// model does not keep it waiting.
    pub async fn chat(&self, chat: &ChatSend, reply: &mut dyn Reply) -> Result<(), AppError> {
        self.answer(chat, PageChat::default(), reply).await
    }

    /// Answers a chat of the page like [`chat`](Self::chat). If its turn has a name, a refusal is remembered, too.
    ///
    /// # Errors
    /// As for [`chat`](Self::chat).
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn answer(
        &self,
        chat: &ChatSend,
        PageChat { id, model: wanted }: PageChat<'_>,
        reply: &mut dyn Reply,
    ) -> Result<(), AppError> {
        let content = &*chat.content;
        let key = self.session(&chat.session, Method::ChatSend)?;
        let turn = self.enter(&key).await?;

        // The turn takes the place of its question by this name.
        let own = format!("run-{:016x}", rpc_core::net::entropy());
        let model = match (&self.parts.model, wanted) {
            (Ok(_), Some(name)) if !self.has_model(name).await => Err(format!(
                "the provider lists no model {name:?}: choose another one"
            )),
            (Ok(model), _) => Ok(model),
            (Err(problem), _) => Err(problem.clone()),
        };
        let model = match model {
            Ok(model) => model,
            Err(problem) => {
                let mark = Mark::failed(&problem, false);
                let unanswered = Turn::marked(content, "", self.now(), mark).with_id(id);
                let error = RpcError::provider(&problem);
                return Err(self.refuse(&key, turn, Some(unanswered), error).await);
            }
        };
        let mut messages = self.context(&key, &turn, content, id).await?;
        let question = messages.pop().unwrap_or_else(|| ChatMessage::user(""));
        let past = messages.into_iter().map(Arc::new).collect();
        let rounds = many_rounds(self.parts.agent.max_tool_rounds.max(1));
        let talk = assistant::Turn::new(self.parts.limits, rounds, past, question);
        let bytes = talk.context().into_iter().map(size).sum::<usize>();
        let estimate = estimate(bytes.saturating_sub(self.instructions()));
        match self.reserve(&turn, estimate).await {
            Ok(reservation) => {
                let question = (content, id.unwrap_or(&own));
                let mut charge = Charge::new(self, &key, turn, question, (reservation, estimate));
                charge.model = wanted.map(str::to_owned);
                let mut unsent = Some(Vec::new());
                let run = ChatRun {
                    engine: self,
                    model,
                    name: wanted,
                    charge: &mut charge,
                    reply: &mut *reply,
                    unsent: &mut unsent,
                    room: MAX_RESULTS,
                    is_anew: false,
                    has_shown: false,
                };
                let outcome = run.hold(talk).await;
                let (ending, mark, outcome) = ended(outcome, charge.has_begun());
                tracing::debug!(session = %key, ?ending, "a chat has ended");
                // The next message waits until the end of this reply has been sent.
                let (is_stored, _turn) = charge.close(ending, mark).await;
                for event in unsent.into_iter().flatten() {
                    reply.event(event).await?;
                }
                match outcome {
                    Ok(()) if is_stored => Ok(reply.done().await?),
                    Ok(()) => Err(AppError::Failed(RpcError::new(NOT_STORED))),
                    Err(AppError::Failed(error)) if !is_stored => {
                        Err(AppError::Failed(also_unstored(&error)))
                    }
                    outcome => outcome,
                }
            }
            Err(error) => {
                let mark = Mark::failed(error.message(), false);
                let unanswered = Turn::marked(content, "", self.now(), mark);
                let unanswered = id.map(|_| unanswered.with_id(id));
                Err(self.refuse(&key, turn, unanswered, error).await)
            }
        }
    }

    /// Runs a tool on its own task, which ends if the future is dropped: a slow tool delays its own
    /// chat only, and no other chat of the connection.
    async fn use_tool(&self, call: Call) -> ToolOutput {
        let tools = Arc::clone(&self.parts.tools);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let input = Value::from(call.arguments).to_string();
            tools.call(&call.name, &input).await
        });
        match task.join_next().await {
            Some(Ok(output)) => output,
            // The runtime ends.
            _ => ToolOutput::failed("aborted"),
        }
    }

    /// Refuses a chat. Its session still counts, from its first message on.
    async fn refuse(
        &self,
        key: &SessionKey,
        turn: Held,
        unanswered: Option<Turn>,
        why: RpcError,
    ) -> AppError {
        let has_question = unanswered.is_some();
        let seen = Commit::new(key.as_str(), self.now()).with_turn(unanswered);
        let written = self.write(seen, &Arc::new(turn.into()), None).await;
        AppError::Refused(match written {
            Err(_) if has_question => also_unstored(&why),
            _ => why,
        })
    }

    /// Returns the bytes of the instructions, which no estimate counts.
    fn instructions(&self) -> usize {
        let text = self.parts.agent.system_prompt.as_deref();
        text.filter(|it| !it.trim().is_empty()).map_or(0, str::len)
    }

    /// Returns the messages for the model.
    async fn context(
        &self,
        key: &SessionKey,
        turn: &Held,
        content: &str,
        id: Option<&str>,
    ) -> Result<Vec<ChatMessage>, AppError> {
        let window = self.parts.memory.episodic_window;
        // Those without a word of an answer do not count.
        let most = window.map_or(usize::MAX, |window| window.saturating_mul(2));
        let failed = |error| AppError::Failed(unreadable(error));
        let recalled = self.store.recall(key.as_str(), Some(&turn.open), most);
        let mut turns = recalled.await.map_err(failed)?;
        // It is asked again.
        turns.pop_if(|last| id.is_some() && last.id.as_deref() == id);
        let entities = match self.parts.memory.semantic {
            true => self.store.entities(key.as_str(), Some(&turn.open)).await,
            false => Ok(Vec::new()),
        };
        let entities = entities.map_err(failed)?;
        let soul = self.soul().await;
        let context = Context {
            instructions: self.parts.agent.system_prompt.as_deref(),
            soul: soul.as_deref(),
            entities: &entities,
            turns: &turns,
            window,
        };
        Ok(context.messages(content))
    }

    async fn soul(&self) -> Option<Arc<str>> {
        let soul = self.soul.as_ref()?.load().await;
        if let Some(warning) = soul.warning {
            tracing::warn!("{warning}");
        }
        soul.text
    }
}

/// How a run is remembered, and what the client learns.
fn ended(run: Result<(), Broken>, has_begun: bool) -> (Ending, Option<Mark>, Result<(), AppError>) {
    match run {
        Ok(()) => (Ending::Done, None, Ok(())),
        Err(Broken::Gone) => (Ending::Cancelled, Some(Mark::Stopped), Err(Gone.into())),
        Err(Broken::Model(error)) => {
            let mark = Mark::of(&error, has_begun);
            let error = AppError::Failed(RpcError::provider(&error.to_string()));
            (Ending::ProviderError, Some(mark), Err(error))
        }
        Err(Broken::TooManyRounds(why)) => {
            let mark = Mark::failed(&why, has_begun);
            let error = AppError::Failed(RpcError::new(why));
            (Ending::TooManyRounds, Some(mark), Err(error))
        }
    }
}

/// Adds to the error of a chat that its question may be forgotten, too.
fn also_unstored(error: &RpcError) -> RpcError {
    RpcError::new(format!(
        "{error}; storing the question failed, too: it may not be remembered"
    ))
}

/// Returns the bytes of a message, for an estimate.
fn size(message: &ChatMessage) -> usize {
    let calls = message.tool_calls.iter();
    let calls: usize = calls
        .map(|call| call.name.len() + call.arguments.len())
        .sum();
    message.content.text().len() + calls
}

/// A conversation with a model, from the question to the last round of tools.
struct ChatRun<'t, 'e> {
    engine: &'e Engine,
    model: &'t Arc<dyn ChatModel>,
    /// The provider's name of another model than the configured one.
    name: Option<&'t str>,
    charge: &'t mut Charge<'e>,
    reply: &'t mut dyn Reply,
    /// What is not sent while the question is not stored; `None` from then on.
    unsent: &'t mut Option<Vec<StreamEvent>>,
    /// The bytes left for tool results.
    room: usize,
    /// What comes next is another paragraph: it follows tools or a notice.
    is_anew: bool,
    /// Whether anything has been shown.
    has_shown: bool,
}

impl ChatRun<'_, '_> {
    /// Waits for the model. Before it has to, the question is stored.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Gone> {
        let mut work = pin!(work);
        if let Some(done) = poll_immediate(&mut work).await {
            return Ok(done);
        }
        self.store_question().await?;
        Ok(work.await)
    }

    /// Stores the question unless it is, and sends what was said meanwhile.
    async fn store_question(&mut self) -> Result<(), Gone> {
        if self.unsent.is_some() {
            self.charge.note().await;
        }
        for event in self.unsent.take().into_iter().flatten() {
            self.reply.event(event).await?;
        }
        Ok(())
    }

    async fn send(&mut self, event: StreamEvent) -> Result<(), Gone> {
        match self.unsent {
            Some(unsent) => unsent.push(event),
            None => self.reply.event(event).await?,
        }
        Ok(())
    }

    async fn hold(mut self, mut turn: assistant::Turn) -> Result<(), Broken> {
        loop {
            match turn.next(self.engine.parts.tools.definitions()) {
                Step::Ask { with_tools: true } => self.ask(&mut turn).await?,
                Step::Call(call) => {
                    let id = call.id.clone();
                    self.store_question().await?;
                    let mut output = self.engine.use_tool(call).await;
                    match self.room.checked_sub(output.content.len()) {
                        Some(room) => self.room = room,
                        None => output = ToolOutput::failed("too much output for one reply"),
                    }
                    self.result(&id, &output).await?;
                    let result = match output.is_error {
                        false => Ok(output.content.into()),
                        true => Err(ToolFailure::Call(output.content)),
                    };
                    turn.on_result(&id, result);
                }
                Step::Refused { id, why, .. } => {
                    self.result(&id, &ToolOutput::failed(&why)).await?;
                }
                Step::Done(_) => {
                    let answer = turn.take_messages().pop();
                    self.charge.extra = answer.map(|it| it.extra).unwrap_or_default();
                    return Ok(());
                }
                Step::Ask { with_tools: false } => {
                    return Err(Broken::TooManyRounds(TOO_MANY_ROUNDS.to_owned()));
                }
                Step::Stopped(error) => return Err(Broken::TooManyRounds(error.to_string())),
            }
        }
    }

    /// Asks the model once and passes on its answer.
    async fn ask(&mut self, turn: &mut assistant::Turn) -> Result<(), Broken> {
        let context = turn.context();
        self.charge
            .call_started(context.iter().copied().map(size).sum());
        let tools = self.engine.parts.tools.definitions();
        let before = self.charge.length();
        let asked = turn.ask(context, &**self.model, self.name, tools);
        let asked = self.wait(asked).await?;
        let mut answer = asked.map_err(|error| self.failed(turn.on_error(error, true)))?;
        while let Some(delta) = self.wait(answer.next()).await? {
            match delta.map_err(|error| self.failed(turn.on_error(error, true)))? {
                Delta::Text(text) => self.emit_text(&text).await?,
                Delta::ToolCall(piece) => self.charge.streamed(piece.arguments.len()),
                Delta::Usage(usage) => {
                    let usage = Usage::new(usage.prompt, usage.completion);
                    self.charge.reported(usage);
                }
                Delta::Thought(text) => self.charge.streamed(text.len()),
                // The log has it.
                Delta::Notice(Notice::Retry { .. }) | Delta::Finish(_) | Delta::Extra(..) => {}
                Delta::Notice(notice) => {
                    if notice == Notice::Thoughts {
                        self.charge.take_back(before);
                    }
                    self.note(&notice.to_string()).await?;
                }
            }
        }
        if let Some(shortfall) = answer.whole.finish().and_then(Finish::shortfall) {
            self.note(&shortfall).await?;
        }
        self.is_anew = true;
        let usage = self.charge.call_ended();
        for call in turn.on_answer(answer) {
            // The model learns that others do not count.
            let input = Json::new(&call.arguments).unwrap_or(Json::EMPTY_OBJECT);
            let tool = ToolUse::new(&*call.id, &*call.name, input);
            self.send(StreamEvent::ToolUse(tool)).await?;
        }
        self.send(StreamEvent::Usage(usage)).await?;
        Ok(())
    }

    /// Passes on text of the model.
    async fn emit_text(&mut self, text: &str) -> Result<(), Gone> {
        let text = match self.is_anew {
            true => text.trim_start(),
            false => text,
        };
        if text.is_empty() {
            return Ok(());
        }
        if self.is_anew && self.charge.has_begun() {
            self.charge.add_text(PARAGRAPH);
        }
        self.charge.add_text(text);
        self.show(text).await
    }

    /// Shows what clients have no other place for. It is not remembered.
    async fn note(&mut self, notice: &str) -> Result<(), Gone> {
        self.is_anew = true;
        self.show(&format!("*{notice}*")).await?;
        self.is_anew = true;
        Ok(())
    }

    async fn show(&mut self, text: &str) -> Result<(), Gone> {
        if std::mem::take(&mut self.is_anew) && self.has_shown {
            self.send(StreamEvent::Text(PARAGRAPH.into())).await?;
        }
        self.has_shown = true;
        self.send(StreamEvent::Text(text.into())).await
    }

    /// Who took too long or broke off may have worked, and charges for it.
    fn failed(&mut self, error: ModelError) -> Broken {
        if error.is_free() {
            self.charge.call_refused();
        }
        error.into()
    }

    async fn result(&mut self, id: &str, output: &ToolOutput) -> Result<(), Gone> {
        let result = ToolResult::new(id, &*output.content, output.is_error);
        self.send(StreamEvent::ToolResult(result)).await
    }
}
