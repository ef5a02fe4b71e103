//! [`Worker`]: a coding agent, which is a language model with tools for one folder.

mod calls;
pub(super) mod history;
mod memory;
mod model_name;
mod place;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use acolyte_proto::error::{AppError, code};
use acolyte_proto::event::{Event, Notice, Usage};
use acolyte_proto::frame::{ChatRequest, Reply, ReplyUsage};
use acolyte_proto::id::SessionId;
use acolyte_proto::limits::{MAX_TOOL_CALLS, MODEL_IDLE_TIMEOUT};
use async_trait::async_trait;
use rpc_core::store::{MemoryStore, Store};
use serde_json::{Map, Value};
use snek_proto::llm::chat::{ChatMessage, Role};

use self::memory::Memory;
use super::ask_first::{self, ASK_FIRST, AWAITING_INPUT, Decisions, Step};
use super::tool_error::detail;
use super::workspace::Known;
use super::{Code, ToolError, Toolbox, Workspace};
use crate::assistant::conversation::ConversationLimits;
use crate::assistant::{self, Answer, Turn, many_rounds};
use crate::model::http::RequestPolicy;
use crate::model::{ChatModel, Delta, Finish, ModelError};

/// The default instructions for the model.
pub const SYSTEM: &str = "You are a coding agent that works in one folder, the workspace, with tools. \
    Look before you change anything, make small changes, and check them by running what the project \
    has for that. For work of several steps keep a checklist. Names of files are as seen from the \
    workspace; nothing outside of it can be reached. When you are done, say briefly what you did, in \
    the language of the question.";

/// Returns the policy of a coding agent's requests: a model that is silent for 120 s is given up.
pub fn policy() -> RequestPolicy {
    RequestPolicy::default().with_silence(MODEL_IDLE_TIMEOUT)
}

/// The message that takes the last change back.
pub const UNDO: &str = "/undo";

/// The observer of a chat.
#[async_trait]
pub trait Watch: Send + Sync {
    /// Sends an event. Waits while there is no room.
    async fn emit(&self, event: Event);

    /// Waits until the chat is aborted.
    async fn aborted(&self);

    /// Returns whether the chat is aborted.
    fn is_aborted(&self) -> bool;
}

/// A coding agent.
pub struct Worker {
    model: Arc<dyn ChatModel>,
    /// The name of the model.
    pub name: String,
    workspace: Workspace,
    toolbox: Toolbox,
    /// The instructions for the model. Default [`SYSTEM`].
    pub system: String,
    /// The provider of the model, for the status. Default none.
    pub provider: &'static str,
    /// How much of a conversation the model gets.
    pub limits: ConversationLimits,
    memory: Memory,
    decisions: Decisions,
}

impl Worker {
    /// Creates an agent with this model, named `name`.
    pub fn new(
        model: Arc<dyn ChatModel>,
        name: impl Into<String>,
        workspace: Workspace,
        toolbox: Toolbox,
    ) -> Self {
        Self {
            model,
            name: name.into(),
            workspace,
            toolbox,
            system: SYSTEM.to_owned(),
            provider: "",
            limits: ConversationLimits::default().with_sent(usize::MAX),
            memory: Memory::new(Arc::new(MemoryStore::new())),
            decisions: Decisions::default(),
        }
    }

    /// Keeps sessions there. Default: as long as this value lives.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>) -> Self {
        self.memory = Memory::new(store);
        self
    }

    /// Carries out a chat.
    ///
    /// # Errors
    /// [`AppError`]: the chat names another folder, or the model failed. The effects of tools
    /// remain, so repeat a chat only if doing it twice is safe.
    ///
    /// # Cancel safety
    /// Dropping the future stops the chat: no other tool is called, and a command is killed. An
    /// abort by `watch` does the same.
    pub async fn chat(&self, request: &ChatRequest, watch: &dyn Watch) -> Result<Reply, AppError> {
        let named = request.model.trim();
        let model = self.model_of(named)?;
        let session = request.session_id.as_ref();
        let known = session.map_or_else(Arc::default, |id| self.decisions.known(id));
        let here = self.here(known)?;
        if request.message.trim() == UNDO {
            let done = self.undo(session, &here).await;
            return Ok(Reply::new(done, named.to_owned()));
        }
        let workspace = match request.workspace.as_deref() {
            Some(path) => here.within(path).map_err(|why| refused(&why))?,
            None => here.clone(),
        };
        let pending = session.map(|id| self.decisions.take(id, request));
        let pending = pending.transpose().map_err(|question| is_open(&question))?;
        let asks = ask_first::is_wanted(request);
        // Without the skill nothing waits for an answer any more.
        let mut pending = pending.flatten().filter(|_| asks);
        if let (Some(waiting), Some(id)) = (&mut pending, session)
            && let ask_first::Answer::More =
                ask_first::Answer::parse(&request.message, &waiting.step)
        {
            waiting.asked = waiting.step.pages.turn();
            let reply = question(waiting.asked.clone(), named);
            pending.map(|waiting| self.decisions.keep(id, waiting));
            return Ok(reply);
        }
        let mut chat = Chat {
            worker: self,
            toolbox: self.toolbox.of_session(session.map(SessionId::as_str)),
            model,
            turn: self.turn(request, &here, &workspace).await,
            workspace,
            watch,
            allowed: None,
            refused: None,
            called: Vec::new(),
            asked: 0,
            usage: Usage::default(),
            session,
            asks,
            repositories: None,
        };
        for skill in &request.active_skills {
            watch.emit(Event::SkillActivated(skill.clone())).await;
        }
        let mut task = request.message.to_string();
        if let Some(pending) = pending {
            task = chat.resume(pending, &request.message, &here)?;
        }
        let ended = chat.work().await;
        chat.name_repositories().await;
        if chat.turn.has_left() {
            self.memory.refuse(&task);
        }
        let mut ended = ended?;
        if let Some(answer) = chat.turn.take_messages().pop() {
            self.memory.keep_given(chat.session, answer);
        }
        let step = ended.step.take();
        let mut reply = match step {
            Some(_) => question(ended.output, named),
            None => Reply::new(ended.output, named.to_owned()),
        };
        reply.output_streamed = Some(ended.is_streamed);
        reply.error = ended.error.map(Into::into);
        let called = chat.called.iter().map(|name| name.as_str().into());
        reply.tool_calls = called.collect();
        reply.model_calls = Some(chat.asked);
        reply.active_skills.clone_from(&request.active_skills);
        let (read, written) = (chat.usage.input_tokens, chat.usage.output_tokens);
        reply.usage = Some(ReplyUsage::new(read, written));
        if let Some(step) = step {
            chat.wait(task, step)?;
        } else if reply.error.is_none() {
            let mut request = request.clone();
            request.message = task.into();
            self.memory.keep(&request, &reply).await;
        }
        Ok(reply)
    }

    /// Returns the workspace as it is now.
    fn here(&self, known: Arc<Known>) -> Result<Workspace, AppError> {
        let here = self.workspace.now().map_err(|error| {
            let path = self.workspace.path().display().to_string();
            refused(&ToolError::io(&format!("the workspace {path}"), &error))
        })?;
        Ok(here.with_known(known))
    }

    /// Takes back the last change of a session, or of any, that nobody has touched since, and says so.
    async fn undo(&self, session: Option<&SessionId>, here: &Workspace) -> String {
        let mut why_not = "nothing to undo: no file was changed".to_owned();
        for change in self.memory.changes(session).await.iter().rev() {
            match here.undo(change) {
                Ok(undone) => {
                    self.memory.undone(change).await;
                    let (added, removed) = (undone.diff.added, undone.diff.removed);
                    let verb = if change.is_new() {
                        "removed"
                    } else {
                        "put back"
                    };
                    return format!("{verb} {} (+{added} -{removed})", change.path);
                }
                Err(why) if why.code == Code::Stale => {
                    let path = &change.path;
                    why_not = format!("nothing was undone: somebody else has changed {path} since");
                }
                Err(why) => why_not = format!("nothing was undone: {why}"),
            }
        }
        why_not
    }

    /// Returns the provider's name of the model that a chat names. It can be any model of this
    /// agent's provider, and no other.
    fn model_of<'a>(&self, named: &'a str) -> Result<&'a str, AppError> {
        if named.is_empty() {
            let error = AppError::failed("no model is named");
            return Err(AppError {
                code: Some(code::MODEL_NOT_CONFIGURED.into()),
                ..error
            });
        }
        if named == self.name {
            return Ok(named);
        }
        match model_name::provider(named, self.provider) {
            (provider, model) if provider == self.provider && !model.is_empty() => Ok(model),
            _ => {
                let message = format!(
                    "no provider is configured for model {named:?}; this server has {:?}",
                    self.name
                );
                let code = code::MODEL_PROVIDER_UNAVAILABLE;
                Err(coded(message, code, "unknown", "server"))
            }
        }
    }

    /// Returns a turn that knows the request's history.
    async fn turn(&self, request: &ChatRequest, here: &Workspace, place: &Workspace) -> Turn {
        let mut system = self.instructions(request).await;
        system.push_str(&place::words(here, place, &self.toolbox));
        let system = ChatMessage::system(system);
        let mut past = history::messages(request);
        past.retain(|it| it.role != Role::User || !self.memory.is_refused(&it.content.text()));
        self.memory
            .give_back(request.session_id.as_ref(), &mut past);
        let past = std::iter::once(system).chain(past);
        let past = past.map(Arc::new).collect();
        let question = ChatMessage::user(&*request.message);
        Turn::new(self.limits, many_rounds(usize::MAX), past, question)
    }

    /// Returns the instructions for the model.
    async fn instructions(&self, request: &ChatRequest) -> String {
        let mut text = self.system.clone();
        // That one is enforced.
        let skills = request.active_skills.iter();
        for skill in skills.filter(|skill| skill.name != ASK_FIRST) {
            text.push_str("\n\nSkill ");
            text.push_str(&skill.name);
            text.push_str(":\n");
            text.push_str(&skill.instructions);
        }
        for hint in &request.suggestions {
            text.push_str("\n\nHint: ");
            text.push_str(hint);
        }
        if let Some(before) = self.memory.recall(request).await {
            text.push_str("\n\n");
            text.push_str(&before);
        }
        text
    }
}

rpc_core::debug_fields!([] Worker, this => {
    model: this.model,
    workspace: this.workspace.path(),
    toolbox: this.toolbox,
});

/// Creates the reply that asks.
fn question(text: String, model: &str) -> Reply {
    let mut reply = Reply::new(text, model.to_owned());
    reply.output_streamed = Some(false);
    reply.state = Some(AWAITING_INPUT.into());
    reply
}

/// Creates the error for a chat of a session that waits for the answer to a question.
fn is_open(question: &str) -> AppError {
    let question = question.split("\n\n```").next().unwrap_or_default();
    AppError {
        code: Some("E_QUESTION_OPEN".into()),
        ..AppError::failed(format!(
            "nothing was done: this session waits for an answer to another question ({question}); answer it where \
             it was asked, or with 'no' in a chat that begins anew, or use another session"
        ))
    }
}

/// Creates the error for an invalid workspace.
fn refused(why: &ToolError) -> AppError {
    AppError {
        code: Some(why.code.as_str().into()),
        detail: Some(Box::new(why.code.detail("server"))),
        ..AppError::failed(why.message.clone().into_owned())
    }
}

/// Creates an error with details that is not a tool's.
fn coded(
    message: String,
    code: &'static str,
    kind: &'static str,
    source: &'static str,
) -> AppError {
    let category = if kind == "timeout" { kind } else { "other" };
    let detail = detail(code, kind, category, source);
    AppError {
        code: Some(code.into()),
        detail: Some(Box::new(detail)),
        ..AppError::failed(message)
    }
}

/// Creates the error for a failed model.
fn failed(error: &ModelError) -> AppError {
    tracing::warn!(%error, "the model failed");
    let (code, kind) = match error {
        ModelError::Setup { .. } | ModelError::NoKey { .. } => {
            (code::MODEL_PROVIDER_UNAVAILABLE, "unknown")
        }
        ModelError::TimedOut { .. } => (code::TIMEOUT, "timeout"),
        _ => (code::UNKNOWN, "unknown"),
    };
    coded(error.to_string(), code, kind, "generate")
}

fn aborted() -> AppError {
    AppError {
        code: Some(code::ABORTED.into()),
        ..AppError::failed("aborted")
    }
}

/// A running chat.
struct Chat<'a> {
    worker: &'a Worker,
    /// The tools, with the commands of this session.
    toolbox: Toolbox,
    /// The provider's name of the requested model.
    model: &'a str,
    workspace: Workspace,
    watch: &'a dyn Watch,
    turn: Turn,
    /// The user has allowed this step.
    allowed: Option<Step>,
    /// Why the next call is not made.
    refused: Option<ToolError>,
    /// The names of the called tools.
    called: Vec<String>,
    /// The number of questions to the model.
    asked: u64,
    /// The usage so far.
    usage: Usage,
    session: Option<&'a SessionId>,
    /// It asks before it edits a file or runs a command.
    asks: bool,
    /// Git's folders before its first command.
    repositories: Option<Vec<PathBuf>>,
}

/// The end of a chat.
struct Ended {
    output: String,
    is_streamed: bool,
    error: Option<Cow<'static, str>>,
    /// What the user is asked about.
    step: Option<Step>,
}

impl Chat<'_> {
    async fn work(&mut self) -> Result<Ended, AppError> {
        let worker = self.worker;
        loop {
            match self.turn.next(worker.toolbox.definitions()) {
                assistant::Step::Ask { .. } => {
                    if let Some(ended) = self.ask().await? {
                        return Ok(ended);
                    }
                }
                assistant::Step::Call(call) => {
                    if let Some(step) = self.make(call).await? {
                        let mut ended = ended(step.pages.question(), None);
                        ended.is_streamed = false;
                        ended.step = Some(step);
                        return Ok(ended);
                    }
                }
                assistant::Step::Refused { id, name, why } => self.refuse(&id, &name, why).await,
                assistant::Step::Done(text) => {
                    return Ok(ended(text.trim().to_owned(), self.turn.finish()));
                }
                assistant::Step::Stopped(error) => {
                    return Err(coded(error.to_string(), code::UNKNOWN, "unknown", "server"));
                }
            }
        }
    }

    async fn emit(&self, event: Event) {
        self.watch.emit(event).await;
    }

    /// One question to the model. Its text is sent as it arrives. Returns the end if it wants too much.
    async fn ask(&mut self) -> Result<Option<Ended>, AppError> {
        let answer = tokio::select! {
            biased;
            () = self.watch.aborted() => return Err(aborted()),
            answer = self.listen() => answer,
        };
        let answer = answer.map_err(|error| failed(&self.turn.on_error(error, true)))?;
        let text = answer.whole.text().trim().to_owned();
        let calls = self.turn.on_answer(answer);
        if self.called.len() + calls.len() > MAX_TOOL_CALLS {
            let mut ended = ended(text, None);
            ended.error = Some("the model has called more tools than a chat may".into());
            return Ok(Some(ended));
        }
        if !text.is_empty() && !calls.is_empty() {
            // What comes next begins on a line of its own.
            self.emit(Event::text("\n")).await;
        }
        // A call that needs approval is reported when it is made.
        if !self.asks {
            for call in calls {
                let arguments = serde_json::from_str(&call.arguments).ok();
                let arguments = arguments.filter(Value::is_object);
                let arguments = arguments.unwrap_or_else(|| Value::from(Map::new()));
                self.announce(&call.id, &call.name, arguments).await;
            }
        }
        Ok(None)
    }

    async fn listen(&mut self) -> Result<Answer, ModelError> {
        let Worker { model, toolbox, .. } = self.worker;
        let before = self.usage;
        self.asked += 1;
        let asked = self.turn.ask(
            self.turn.context(),
            &**model,
            Some(self.model),
            toolbox.definitions(),
        );
        let mut answer = asked.await?;
        while let Some(delta) = answer.next().await {
            match delta? {
                Delta::Text(text) => self.emit(Event::text(text)).await,
                Delta::Thought(text) => self.emit(Event::Reasoning(text.into())).await,
                Delta::Notice(notice) => {
                    let notice = Notice::warn(notice.to_string());
                    self.emit(Event::Notice(notice)).await;
                }
                Delta::Usage(cost) => {
                    self.usage = Usage::new(
                        before.input_tokens.saturating_add(cost.prompt),
                        before.output_tokens.saturating_add(cost.completion),
                    );
                    let step = Usage::new(cost.prompt, cost.completion);
                    self.emit(Event::Usage(step)).await;
                }
                _ => {}
            }
        }
        Ok(answer)
    }
}

fn ended(output: String, finish: Option<&Finish>) -> Ended {
    let error = match finish.and_then(Finish::shortfall) {
        None if output.is_empty() => Some("the model has said nothing".into()),
        shortfall => shortfall,
    };
    let is_streamed = !output.is_empty();
    Ended {
        output,
        is_streamed,
        error,
        step: None,
    }
}
