//! One chat: context, budget, model, tools, and storing the turn.

use std::collections::HashSet;
use std::sync::Arc;

use exoclaw_proto::budget::estimate;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, Method, StreamEvent, ToolResult, ToolUse, Usage};
use exoclaw_proto::net::{ChatError, Gone};
use exoclaw_proto::session::SessionKey;
use futures_util::StreamExt;
use rpc_core::Json;
use snek_proto::llm::chat::{ChatMessage, ToolCall};
use tokio::task::JoinSet;

use super::charge::Charge;
use super::records::{Held, Records};
use super::{Engine, NOT_STORED, Reply, internal};
use crate::gateway::memory::{Context, Mark, Turn};
use crate::gateway::store::Commit;
use crate::gateway::tool::ToolOutput;
use crate::gateway::usage::Ending;
use crate::model::{Assembler, ChatModel, ChatRequest, Delta, Finish, ModelError, Notice};

/// The error if a model calls tools without end.
const TOO_MANY_ROUNDS: &str = "tool-use loop exceeded max iterations";

/// The mark of a question whose answer has not ended.
const ENDED: &str = "the gateway ended before the answer was complete";

/// Most bytes of tool results in one reply: they are kept, and sent with every round.
const MAX_RESULTS: usize = 8 * 1024 * 1024;

/// The reason why a conversation with the model broke off.
enum Broken {
    Gone,
    Model(ModelError),
    TooManyRounds,
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
    /// [`ChatError`], the error for the client.
    ///
    /// # Cancel safety
    /// Dropping the future stops the model and the tools. The tokens used so far are counted, the question
    /// and what was said so far are stored with a [`Mark`], and then the next message has its turn. If the
    /// reply was complete and is being stored, that continues.
    pub async fn chat(&self, chat: &ChatSend, reply: &mut dyn Reply) -> Result<(), ChatError> {
        self.answer(chat, None, reply).await
    }

    /// Answers a chat like [`chat`](Self::chat), whose turn has a [name](Turn::id): it takes the place of the
    /// last one if that has the same. The question is stored before it is answered, in a store of this engine
    /// alone.
    ///
    /// # Errors
    /// As for [`chat`](Self::chat).
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn answer(
        &self,
        chat: &ChatSend,
        id: Option<&str>,
        reply: &mut dyn Reply,
    ) -> Result<(), ChatError> {
        let content = &*chat.content;
        let key = self.session(&chat.session, Method::ChatSend)?;
        let turn = self.enter(&key).await?;

        let model = match &self.model {
            Ok(model) => model,
            Err(problem) => {
                let mark = Mark::failed(problem, false);
                let unanswered = Turn::marked(content, "", self.now(), mark).with_id(id);
                let error = RpcError::provider(problem);
                return Err(self.refuse(&key, turn, Some(unanswered), error).await);
            }
        };
        let messages = self.context(&key, &turn, content, id).await?;
        let bytes = messages.iter().map(size).sum::<usize>();
        let estimate = estimate(bytes.saturating_sub(self.instructions()));
        match self.reserve(&key, &turn, estimate).await {
            Ok(reservation) => {
                let turn = self.note(&key, turn, content, id).await?;
                let mut charge = Charge::new(self, &key, turn, (content, id), reservation);
                let run = self.run(model, messages, &mut charge, &mut *reply);
                let Ended {
                    ending,
                    mark,
                    outcome,
                } = run.await;
                tracing::debug!(session = %key, ?ending, "a chat has ended");
                // The next message waits until the end of this reply has been sent.
                let (is_stored, _turn) = charge.close(ending, mark).await;
                match outcome {
                    Ok(()) if !is_stored => Err(ChatError::Failed(RpcError::new(NOT_STORED))),
                    Ok(()) => Ok(reply.done().await?),
                    outcome => outcome,
                }
            }
            Err(error) => Err(self.refuse(&key, turn, None, error).await),
        }
    }

    /// Runs a tool on its own task, which ends if the future is dropped: a slow tool delays its own
    /// chat only, and no other chat of the connection.
    async fn use_tool(&self, call: &ToolCall) -> ToolOutput {
        let (tools, name) = (Arc::clone(&self.tools), call.name.clone());
        let input = input(call);
        let mut task = JoinSet::new();
        task.spawn(async move { tools.call(&name, input.get()).await });
        match task.join_next().await {
            Some(Ok(output)) => output,
            // The runtime ends.
            _ => ToolOutput::failed("aborted"),
        }
    }

    /// Stores a question, and that the gateway has ended if nothing takes its place.
    async fn note(
        &self,
        key: &SessionKey,
        turn: Held,
        content: &str,
        id: Option<&str>,
    ) -> Result<Held, ChatError> {
        if id.is_none() || !matches!(&*self.store, Records::Own(_)) {
            return Ok(turn);
        }
        let at = self.now();
        let asked = Turn::marked(content, "", at, Mark::Failed(ENDED.to_owned())).with_id(id);
        let commit = Commit::new(key.as_str(), at).with_turn(Some(asked));
        // Whether it is stored matters only if the gateway ends; the log has it.
        let written = self.write(commit, Some(turn), None).await;
        let (_, turn) = written.unwrap_or((Ok(()), None));
        turn.ok_or_else(|| ChatError::Failed(RpcError::new(ENDED)))
    }

    /// Refuses a chat. Its session still counts, from its first message on.
    async fn refuse(
        &self,
        key: &SessionKey,
        turn: Held,
        unanswered: Option<Turn>,
        why: RpcError,
    ) -> ChatError {
        let seen = Commit::new(key.as_str(), self.now()).with_turn(unanswered);
        let _ = self.write(seen, Some(turn), None).await;
        ChatError::Refused(why)
    }

    /// Returns the bytes of the instructions, which no estimate counts.
    fn instructions(&self) -> usize {
        let text = self.agent.system_prompt.as_deref().unwrap_or_default();
        if text.trim().is_empty() {
            0
        } else {
            text.len()
        }
    }

    /// Returns the messages for the model.
    async fn context(
        &self,
        key: &SessionKey,
        turn: &Held,
        content: &str,
        id: Option<&str>,
    ) -> Result<Vec<ChatMessage>, ChatError> {
        let window = self.memory.episodic_window;
        // Those without a word of an answer do not count.
        let most = window.saturating_mul(2);
        let recalled = self.store.recall(key.as_str(), Some(turn), most);
        let mut turns = recalled.await.map_err(|error| internal(&error))?;
        // It is asked again.
        turns.pop_if(|last| id.is_some() && last.id.as_deref() == id);
        let soul = self.soul().await;
        let context = Context {
            instructions: self.agent.system_prompt.as_deref(),
            soul: soul.as_deref(),
            turns: &turns,
            window: Some(window),
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

    async fn run<'e>(
        &'e self,
        model: &Arc<dyn ChatModel>,
        messages: Vec<ChatMessage>,
        charge: &mut Charge<'e>,
        reply: &mut dyn Reply,
    ) -> Ended {
        let run = ChatRun {
            engine: self,
            model,
            charge: &mut *charge,
            reply,
            named: 0,
            room: MAX_RESULTS,
            failed: Vec::new(),
            is_shortened: false,
        };
        let outcome = run.hold(messages).await;
        let has_begun = charge.has_begun();
        let (ending, mark, outcome) = match outcome {
            Ok(()) => (Ending::Done, None, Ok(())),
            Err(Broken::Gone) => (Ending::Cancelled, Some(Mark::Stopped), Err(Gone.into())),
            Err(Broken::Model(error)) => {
                let mark = Mark::of(&error, has_begun);
                let error = ChatError::Failed(RpcError::provider(&error.to_string()));
                (Ending::ProviderError, Some(mark), Err(error))
            }
            Err(Broken::TooManyRounds) => {
                let mark = Mark::failed(TOO_MANY_ROUNDS, has_begun);
                let error = ChatError::Failed(RpcError::new(TOO_MANY_ROUNDS));
                (Ending::TooManyRounds, Some(mark), Err(error))
            }
        };
        Ended {
            ending,
            mark,
            outcome,
        }
    }
}

/// What became of a run.
struct Ended {
    ending: Ending,
    mark: Option<Mark>,
    outcome: Result<(), ChatError>,
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
    charge: &'t mut Charge<'e>,
    reply: &'t mut dyn Reply,
    /// The number of calls that got an id here.
    named: usize,
    /// The bytes left for tool results.
    room: usize,
    /// The positions of failed tools' results in the conversation.
    failed: Vec<usize>,
    /// Whether the client knows that the model does not get the whole conversation.
    is_shortened: bool,
}

impl ChatRun<'_, '_> {
    async fn hold(mut self, mut messages: Vec<ChatMessage>) -> Result<(), Broken> {
        for _ in 0..self.engine.agent.max_tool_rounds.max(1) {
            let answer = self.ask(&messages).await?;
            if answer.tool_calls.is_empty() {
                return Ok(());
            }
            let calls = answer.tool_calls.clone();
            messages.push(answer);
            for call in calls {
                let output = self.use_tool(&call).await?;
                if output.is_error {
                    self.failed.push(messages.len());
                }
                messages.push(ChatMessage::tool(call.id, output.content));
            }
        }
        Err(Broken::TooManyRounds)
    }

    /// Asks the model once and passes on its answer.
    async fn ask(&mut self, messages: &[ChatMessage]) -> Result<ChatMessage, Broken> {
        let request = ChatRequest::new(messages.iter().collect())
            .with_tools(self.engine.tools.definitions())
            .with_failed(&self.failed);
        self.charge.call_started(messages.iter().map(size).sum());
        let mut deltas = match self.model.stream(request).await {
            Ok(deltas) => deltas,
            Err(error) => {
                return Err(self.failed(error));
            }
        };
        let mut answer = Assembler::default();
        while let Some(delta) = deltas.next().await {
            let delta = delta.map_err(|error| self.failed(error))?;
            answer.push(&delta)?;
            match delta {
                Delta::Text(text) => {
                    self.charge.said(&text);
                    self.reply.text(&text).await?;
                }
                Delta::ToolCall(piece) => self.charge.streamed(piece.arguments.len()),
                Delta::Usage(usage) => {
                    let usage = Usage::new(usage.prompt, usage.completion);
                    self.charge.reported(usage);
                }
                Delta::Thought(text) => self.charge.streamed(text.len()),
                Delta::Notice(Notice::Shortened { .. }) if self.is_shortened => {}
                // Clients have no other place for it. It is not remembered.
                Delta::Notice(notice @ Notice::Shortened { .. }) => {
                    self.is_shortened = true;
                    self.reply.text(&format!("*{notice}*\n\n")).await?;
                }
                // The log has it.
                Delta::Notice(Notice::Retry { .. }) | Delta::Finish(_) => {}
            }
        }
        if let Some(shortfall) = answer.finish().and_then(Finish::shortfall) {
            self.reply.text(&format!("\n\n*{shortfall}*")).await?;
        }
        let usage = self.charge.call_ended();
        let mut message = answer.into_message();
        self.name_calls(&mut message.tool_calls);
        for call in &message.tool_calls {
            let tool = ToolUse::new(&*call.id, &*call.name, input(call));
            self.reply.event(StreamEvent::ToolUse(tool)).await?;
        }
        self.reply.event(StreamEvent::Usage(usage)).await?;
        Ok(message)
    }

    /// Who took too long or broke off may have worked, and charges for it.
    fn failed(&mut self, error: ModelError) -> Broken {
        if error.is_free() {
            self.charge.call_refused();
        }
        error.into()
    }

    /// Gives an id to calls that have none, or that of an earlier call in the same answer. Any
    /// other id stays: a model may repeat one from answer to answer.
    fn name_calls(&mut self, calls: &mut [ToolCall]) {
        let mut taken: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
        let mut seen = HashSet::new();
        for call in calls {
            if !call.id.is_empty() && seen.insert(call.id.clone()) {
                continue;
            }
            while call.id.is_empty() || !taken.insert(call.id.clone()) {
                self.named += 1;
                call.id = format!("call_{}", self.named);
            }
        }
    }

    /// Runs a tool. The model gets its failure too.
    async fn use_tool(&mut self, call: &ToolCall) -> Result<ToolOutput, Broken> {
        let mut output = self.engine.use_tool(call).await;
        match self.room.checked_sub(output.content.len()) {
            Some(room) => self.room = room,
            None => output = ToolOutput::failed("too much output for one reply"),
        }
        let result = ToolResult::new(&*call.id, &*output.content, output.is_error);
        self.reply.event(StreamEvent::ToolResult(result)).await?;
        Ok(output)
    }
}

/// Returns the input of a tool: the arguments if they are JSON, otherwise an empty object.
fn input(call: &ToolCall) -> Json {
    Json::new(&call.arguments).unwrap_or(Json::EMPTY_OBJECT)
}
