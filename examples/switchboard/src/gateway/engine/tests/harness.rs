//! The scripted model, the tools, the store and the listener of these tests.

use std::collections::VecDeque;
use std::sync::{Arc, Barrier, Mutex};

use async_trait::async_trait;
use exoclaw_proto::budget::Budgets;
use exoclaw_proto::frame::{ChatSend, SessionRef, StreamEvent};
use exoclaw_proto::net::{AppError, Gone};
use futures_util::StreamExt as _;
use rpc_core::store::MemoryStore;
use snek_proto::llm::chat::Role;
use snek_proto::llm::tool::ToolDefinition;
use tokio::sync::{Semaphore, mpsc};

use crate::gateway::config::AgentConfig;
use crate::gateway::engine::{Engine, EngineParts, PageChat, Reply};
use crate::gateway::store::{GatewayStore, GatewayStoreConfig};
use crate::gateway::tool::{Tool, ToolOutput, Tools, builtin};
use crate::gateway::usage::UsageEntry;
use crate::model::{CallPiece, ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError, Usage};

/// Noon of some day, in UTC.
pub(super) const NOON: u64 = 1_800_014_400;

/// One step of an answer.
pub(super) enum Step {
    Give(Delta),
    Break(ModelError),
    /// Tells that it was reached, and waits to be let through.
    Gate,
    Panic,
}

/// What the model does when it is asked.
pub(super) enum Script {
    Answer(Vec<Step>),
    Refuse(ModelError),
    Hang,
}

pub(super) fn say(text: &str) -> Step {
    Step::Give(Delta::Text(text.to_owned()))
}

pub(super) fn bill(prompt: u64, completion: u64) -> Step {
    Step::Give(Delta::Usage(Usage { prompt, completion }))
}

pub(super) fn call(index: usize, id: &str, name: &str, arguments: &str) -> Step {
    Step::Give(Delta::ToolCall(CallPiece {
        index: Some(index),
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        arguments: arguments.to_owned(),
        ..CallPiece::default()
    }))
}

pub(super) fn stop() -> Step {
    Step::Give(Delta::Finish(Finish::Stop))
}

/// A whole answer for 10 and 5 tokens.
pub(super) fn answer(text: &str) -> Script {
    Script::Answer(vec![say(text), bill(10, 5), stop()])
}

pub(super) fn unreachable() -> ModelError {
    ModelError::Unreachable {
        message: "connection refused".to_owned(),
    }
}

/// What a model was asked, as `role: text`.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) messages: Vec<String>,
    pub(super) tools: Vec<String>,
}

pub(super) struct Model {
    scripts: Mutex<VecDeque<Script>>,
    asked: Mutex<Vec<Asked>>,
    gate: Arc<Semaphore>,
    told: mpsc::UnboundedSender<&'static str>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

impl Model {
    pub(super) fn new(
        scripts: impl IntoIterator<Item = Script>,
        told: mpsc::UnboundedSender<&'static str>,
    ) -> Arc<Self> {
        Arc::new(Self {
            scripts: Mutex::new(scripts.into_iter().collect()),
            asked: Mutex::default(),
            gate: Arc::new(Semaphore::new(0)),
            told,
        })
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn open_gate(&self) {
        self.gate.add_permits(1);
    }
}

/// Tells that it was dropped.
struct DropSignal(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// Lets who waits for the model store the question first.
async fn wait() {
    tokio::task::yield_now().await;
}

#[async_trait]
impl ChatModel for Model {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let messages = request.messages.iter().map(|message| {
            let role = match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
                _ => "other",
            };
            format!("{role}: {}", message.content.text())
        });
        self.asked.lock().unwrap().push(Asked {
            messages: messages.collect(),
            tools: request
                .tools
                .iter()
                .map(|it| it.name().to_owned())
                .collect(),
        });
        let script = self.scripts.lock().unwrap().pop_front();
        let steps = match script.expect("a script for every call") {
            Script::Answer(steps) => steps,
            Script::Refuse(error) => return Err(error),
            Script::Hang => {
                wait().await;
                let _ = self.told.send("asked");
                std::future::pending().await
            }
        };
        let (gate, told) = (Arc::clone(&self.gate), self.told.clone());
        let guard = Arc::new(DropSignal(self.told.clone(), "model stopped"));
        let steps = futures_util::stream::iter(steps).then(move |step| {
            let (gate, told, guard) = (Arc::clone(&gate), told.clone(), Arc::clone(&guard));
            async move {
                let _guard = guard;
                match step {
                    Step::Give(delta) => Some(Ok(delta)),
                    Step::Break(error) => Some(Err(error)),
                    Step::Gate => {
                        wait().await;
                        let _ = told.send("gate");
                        gate.acquire().await.unwrap().forget();
                        None
                    }
                    Step::Panic => panic!("the model panics"),
                }
            }
        });
        Ok(steps.filter_map(std::future::ready).boxed())
    }
}

/// A tool that does what its name says.
struct TestTool {
    definition: ToolDefinition,
    told: mpsc::UnboundedSender<&'static str>,
    barrier: Arc<Barrier>,
}

#[async_trait]
impl Tool for TestTool {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, input: &str) -> ToolOutput {
        match self.name() {
            "fail" => ToolOutput::failed("no luck"),
            "panic" => panic!("the tool panics"),
            "hang" => {
                let _told = DropSignal(self.told.clone(), "tool stopped");
                let _ = self.told.send("tool runs");
                std::future::pending().await
            }
            "block" => {
                let _ = self.told.send("tool runs");
                self.barrier.wait();
                ToolOutput::new("at last")
            }
            _ => ToolOutput::new(input),
        }
    }
}

/// An engine and what it stands on.
pub(super) struct Harness {
    pub(super) engine: Engine,
    pub(super) model: Arc<Model>,
    pub(super) store: MemoryStore,
    /// The tool `block` waits here.
    pub(super) barrier: Arc<Barrier>,
    pub(super) heard: mpsc::UnboundedReceiver<&'static str>,
}

impl Harness {
    pub(super) async fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::with(scripts, |_| ()).await
    }

    pub(super) async fn with(
        scripts: impl IntoIterator<Item = Script>,
        change: impl FnOnce(&mut EngineParts),
    ) -> Self {
        Self::over(&MemoryStore::new(), Budgets::default(), scripts, change).await
    }

    pub(super) async fn limited(
        budgets: Budgets,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        Self::over(&MemoryStore::new(), budgets, scripts, |_| ()).await
    }

    /// An engine over a store that may have been used before.
    pub(super) async fn over(
        store: &MemoryStore,
        budgets: Budgets,
        scripts: impl IntoIterator<Item = Script>,
        change: impl FnOnce(&mut EngineParts),
    ) -> Self {
        Self::build(store, budgets, || NOON, scripts, change).await
    }

    pub(super) async fn build(
        store: &MemoryStore,
        budgets: Budgets,
        clock: fn() -> u64,
        scripts: impl IntoIterator<Item = Script>,
        change: impl FnOnce(&mut EngineParts),
    ) -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        let model = Model::new(scripts, told.clone());
        let barrier = Arc::new(Barrier::new(2));
        let mut tools = Tools::new();
        tools.add(builtin("echo", "echo").unwrap()).unwrap();
        for name in ["fail", "panic", "hang", "block"] {
            let definition = ToolDefinition::new(name, "Odd.");
            let odd = TestTool {
                definition,
                told: told.clone(),
                barrier: Arc::clone(&barrier),
            };
            tools.add(Arc::new(odd)).unwrap();
        }
        let config = GatewayStoreConfig::default().with_budgets(budgets);
        let opened = GatewayStore::open(Arc::new(store.clone()), config, clock).await;
        let asked = Arc::clone(&model) as Arc<dyn ChatModel>;
        let mut parts = EngineParts::new(AgentConfig::default(), asked, tools, opened.unwrap());
        parts.clock = clock;
        // It would be one more call for each turn.
        parts.memory.semantic = false;
        change(&mut parts);
        Self {
            engine: Engine::new(parts),
            model,
            store: store.clone(),
            barrier,
            heard,
        }
    }

    /// What a chat comes to: its steps, and its outcome.
    pub(super) async fn chat(&self, chat: &ChatSend) -> (Vec<String>, Result<(), AppError>) {
        let mut heard = Heard::default();
        let outcome = self.engine.chat(chat, &mut heard).await;
        (heard.steps, outcome)
    }

    /// Waits until all turns so far are learnt of.
    pub(super) async fn learnt(&self) {
        self.engine.learner.as_ref().unwrap().finished().await;
    }

    /// The error of a chat that was refused before anything was streamed.
    pub(super) async fn refused(&self, chat: &ChatSend) -> String {
        match self.chat(chat).await {
            (steps, Err(AppError::Refused(error))) if steps.is_empty() => {
                error.message().to_owned()
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Waits until a model or a tool has come to this point.
    pub(super) async fn reached(&mut self, point: &str) {
        assert_eq!(self.heard.recv().await, Some(point));
    }

    /// Lets a chat go until a point is reached, and then its client leave.
    pub(super) async fn leave_at(&mut self, chat: &ChatSend, point: &str) -> Vec<String> {
        let mut heard = Heard::default();
        tokio::select! {
            outcome = self.engine.chat(chat, &mut heard) => panic!("it ended: {outcome:?}"),
            reached = self.heard.recv() => assert_eq!(reached, Some(point)),
        }
        heard.steps
    }

    /// Ends the engine. The log of usage, oldest first.
    pub(super) async fn log(&self) -> Vec<UsageEntry> {
        self.engine.close().await;
        let mut log = self.engine.usage(100).await.unwrap();
        log.reverse();
        log
    }

    /// The sessions that are known.
    pub(super) async fn sessions(&self) -> Vec<String> {
        let sessions = self.engine.store.sessions(100).await.unwrap().into_iter();
        let mut sessions: Vec<_> = sessions.map(|it| it.session).collect();
        sessions.sort_unstable();
        sessions
    }

    /// The turns of a session, oldest first, as the history tells them: question, answer and mark.
    pub(super) async fn turns(&self, account: &str) -> Vec<[String; 3]> {
        turns(&self.engine, account).await
    }

    /// The tokens that count against the budget of the day.
    pub(super) async fn used(&self) -> u64 {
        self.engine.writing.finished().await;
        self.engine.store.used(None).await.unwrap().1
    }
}

/// Writes down the steps of a reply, and leaves after some if told to.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) steps: Vec<String>,
    pub(super) leaves_after: Option<usize>,
}

impl Heard {
    fn hear(&mut self, step: String) -> Result<(), Gone> {
        if self.leaves_after == Some(self.steps.len()) {
            return Err(Gone);
        }
        self.steps.push(step);
        Ok(())
    }
}

#[async_trait]
impl Reply for Heard {
    async fn event(&mut self, event: StreamEvent) -> Result<(), Gone> {
        self.hear(match event {
            StreamEvent::Text(text) => format!("text {text}"),
            StreamEvent::ToolUse(it) => {
                format!("tool_use {} {} {}", it.id, it.name, it.input.get())
            }
            StreamEvent::Usage(it) => format!("usage {} {}", it.input_tokens, it.output_tokens),
            StreamEvent::ToolResult(it) => {
                let how = if it.is_error { "failed" } else { "ok" };
                format!("tool_result {} {how} {}", it.tool_use_id, it.content)
            }
            other => panic!("the engine has no business with {other:?}"),
        })
    }
}

/// The turns of a session, oldest first, as the history tells them: question, answer and mark.
pub(super) async fn turns(engine: &Engine, account: &str) -> Vec<[String; 3]> {
    let session = SessionRef::new("ws", account);
    let turns = engine.history(&session, Some(1000)).await.unwrap();
    let turns = turns.into_iter().map(|turn| {
        let mark = turn.mark.unwrap_or_default();
        [turn.user, turn.assistant, mark].map(|text| text.to_string())
    });
    turns.collect()
}

pub(super) fn from(account: &str, content: &str) -> ChatSend {
    ChatSend::new("ws", account, content)
}

/// The chat of a page whose turn has this name.
pub(super) fn named(id: &str) -> PageChat<'_> {
    PageChat {
        id: Some(id),
        model: None,
    }
}

/// The error of a chat that failed on its way.
pub(super) fn failure(outcome: Result<(), AppError>) -> String {
    match outcome {
        Err(AppError::Failed(error)) => error.message().to_owned(),
        other => panic!("it did not fail: {other:?}"),
    }
}
