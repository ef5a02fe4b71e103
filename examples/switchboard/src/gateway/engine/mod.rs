//! [`Engine`]: the processing of chats, from the route to the last token.

mod charge;
mod chat;
mod extension;
mod memory;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use exoclaw_proto::binding::Bindings;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{Method, Plugin, SessionRef, Status, StreamEvent, Usage};
use exoclaw_proto::limits::HELLO_VERSION;
use exoclaw_proto::net::{Gone, SessionTurns, TurnGuard};
use exoclaw_proto::session::SessionKey;
use rpc_core::sync::Mutex;

use super::config::{AgentConfig, MemoryConfig};
use super::memory::Soul;
use super::store::{Commit, GatewayStore, OpenTurn, StoreError, Write, Writing};
use super::tool::Tools;
use super::usage::UsageEntry;
use crate::assistant::conversation::ConversationLimits;
use crate::model::ChatModel;
use crate::model::options::ModelArgs;
pub use extension::{Forgotten, MEMORY_FORGET};
use memory::{Learner, Lesson};

/// Longest channel, account, peer, guild and team, in bytes: they are stored, and clients choose
/// them.
pub const MAX_NAME: usize = 512;

/// How long a session counts as active after its last use, in seconds: a day.
const ACTIVE_FOR: u64 = 86_400;

/// The error after a complete answer whose storing failed, or whose store did not answer. Its usage is counted.
pub const NOT_STORED: &str =
    "the answer is complete, but storing it failed: it may not be remembered";

/// The receiver of a reply's steps.
#[async_trait]
pub trait Reply: Send {
    /// Sends a step, except `error`, which the caller sends, and `done`.
    ///
    /// # Errors
    /// [`Gone`] if the client has left.
    ///
    /// # Cancel safety
    /// Dropping the future may lose the step.
    async fn event(&mut self, event: StreamEvent) -> Result<(), Gone>;

    /// Sends `done`, if it has to precede the next reply of the session. By default, nothing.
    ///
    /// # Errors
    /// [`Gone`] if the client has left.
    ///
    /// # Cancel safety
    /// Dropping the future may lose it.
    async fn done(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// What a chat of the page has beyond one of the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageChat<'a> {
    /// The [name](super::memory::Turn::id) of its turn, which takes the place of the last one if that has the same.
    pub id: Option<&'a str>,
    /// Another model of the provider than the configured one.
    pub model: Option<&'a str>,
}

/// The parts of an [`Engine`].
#[derive(Debug)]
pub struct EngineParts {
    /// `[agent]`.
    pub agent: AgentConfig,
    /// `[memory]`.
    pub memory: MemoryConfig,
    /// Finds the agent of a chat.
    pub router: Bindings,
    /// The model, or the reason why there is none, which is then the answer to every chat.
    pub model: Result<Arc<dyn ChatModel>, String>,
    /// How much of a conversation the model gets.
    pub limits: ConversationLimits,
    /// The names that `plugin.list` answers.
    pub plugins: Vec<String>,
    /// The tools that the model may call.
    pub tools: Arc<Tools>,
    /// Sessions, usage and budgets.
    pub store: Arc<GatewayStore>,
    /// The time, in seconds since 1970.
    pub clock: fn() -> u64,
}

impl EngineParts {
    /// Creates the parts of an engine with a model, the defaults and no limits.
    pub fn new(
        agent: AgentConfig,
        model: Arc<dyn ChatModel>,
        tools: Tools,
        store: Arc<GatewayStore>,
    ) -> Self {
        Self {
            router: Bindings::all_to(&*agent.id),
            plugins: tools.names().map(str::to_owned).collect(),
            agent,
            memory: MemoryConfig::default(),
            model: Ok(model),
            limits: ConversationLimits::default().with_sent(usize::MAX),
            tools: Arc::new(tools),
            store,
            clock: unix_seconds,
        }
    }
}

/// Returns the system's time, in seconds since 1970.
pub fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The turn of a session. Dropping it begins the next one.
#[derive(Debug)]
struct Held {
    /// Dropped first: on this node, the next one begins when the others know that this has ended.
    open: OpenTurn,
    _local: TurnGuard,
}

/// A turn for those who write in it, one after the other. It ends with the last of them.
type Shared = Arc<tokio::sync::Mutex<Held>>;

/// The outcome of a write.
type Written = Write<Result<(), StoreError>>;

/// An engine that answers chats: one at a time for each session, any number concurrently.
#[derive(Debug)]
pub struct Engine {
    parts: EngineParts,
    soul: Option<Soul>,
    /// The models that the provider has listed, when it was last asked.
    models: Mutex<Vec<String>>,
    turns: SessionTurns,
    store: Arc<GatewayStore>,
    writing: Writing,
    /// `None` if nothing is learnt of turns.
    learner: Option<Arc<Learner>>,
}

impl Engine {
    /// Creates an engine that continues from the contents of the store.
    pub fn new(parts: EngineParts) -> Self {
        Self {
            soul: parts.agent.soul_path.clone().map(Soul::new),
            models: Mutex::default(),
            turns: SessionTurns::default(),
            store: Arc::clone(&parts.store),
            writing: Writing::default(),
            learner: Learner::new(&parts),
            parts,
        }
    }

    /// Returns the answer to `status`: the version of this program, and the numbers of its plugins
    /// and of the sessions used within the last day.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self) -> Status {
        let since = self.now().saturating_sub(ACTIVE_FOR);
        let counted = self.store.session_count(since).await;
        let sessions = counted.unwrap_or_else(|error| {
            tracing::error!(%error, "the sessions cannot be counted");
            0
        });
        let plugins = self.parts.plugins.len() as u64;
        Status::new(HELLO_VERSION, plugins, sessions)
    }

    /// Returns whether chats are served: `false` while this gateway counts as gone in its cluster.
    pub fn is_ready(&self) -> bool {
        self.store.is_ready()
    }

    /// Waits until this gateway cannot come back into its cluster by itself.
    pub(crate) async fn failed(&self) -> rpc_core::store::StoreError {
        self.store.failed().await
    }

    /// Returns the answer to `plugin.list`, in the order of the configuration.
    pub fn plugins(&self) -> Vec<Plugin> {
        let names = self.parts.plugins.iter().cloned();
        names.map(Plugin::new).collect()
    }

    /// Returns the name of the configured model.
    pub fn model(&self) -> &str {
        self.parts.agent.model.model_name()
    }

    /// Asks the provider for the names of its models; one that lists none has those it listed before.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn models(&self) -> Vec<String> {
        if let Ok(model) = &self.parts.model {
            let listed = model.models().await;
            if !listed.is_empty() {
                *self.models.lock() = listed;
            }
        }
        self.models.lock().clone()
    }

    /// Returns whether chats may ask this model: it is the configured one, or the provider lists it.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn has_model(&self, name: &str) -> bool {
        let is_it = |known: &String| known == name;
        name == self.model()
            || self.models.lock().iter().any(is_it)
            || self.models().await.iter().any(is_it)
    }

    /// Returns the usage of the last replies, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.store.usage(max).await
    }

    /// Finishes pending writes, and asks for nothing more to remember. Nothing is stored after it.
    ///
    /// # Cancel safety
    /// The writes continue if the future is dropped.
    pub async fn close(&self) {
        self.writing.finished().await;
        if let Some(learner) = &self.learner {
            learner.close().await;
        }
        self.store.close().await;
    }

    /// Begins a turn of a session, after the earlier ones.
    async fn enter(&self, key: &SessionKey) -> Result<Held, RpcError> {
        let local = self.turns.enter(key).await?;
        let entered = self.store.enter(key.as_str(), self.now()).await;
        Ok(Held {
            open: entered.map_err(|error| unavailable(&error))?,
            _local: local,
        })
    }

    /// Stores a commit, even if the caller is dropped, behind what was started before in this turn. Once it is stored,
    /// the model is asked about the lesson, which nobody waits for.
    fn write(&self, commit: Commit, turn: &Shared, lesson: Option<Lesson>) -> Written {
        let store = Arc::clone(&self.store);
        let learner = self.learner.clone();
        let (free, turn) = (Arc::clone(turn).try_lock_owned(), Arc::clone(turn));
        self.writing.start(async move {
            let mut turn = match free {
                Ok(turn) => turn,
                Err(_) => turn.lock_owned().await,
            };
            let outcome = store.commit(commit, Some(&mut turn.open)).await;
            if let Err(error) = &outcome {
                tracing::error!(%error, "a chat was not written down");
            } else if let (Some(learner), Some(lesson)) = (learner, lesson) {
                learner.start(lesson);
            }
            outcome
        })
    }

    /// Returns the session of a chat.
    fn session(&self, chat: &SessionRef, method: Method) -> Result<SessionKey, RpcError> {
        let given = [
            ("channel", Some(&chat.channel)),
            ("account", Some(&chat.account)),
            ("peer", chat.peer.as_ref()),
            ("guild", chat.guild.as_ref()),
            ("team", chat.team.as_ref()),
        ];
        for (name, value) in given {
            if value.is_some_and(|value| value.len() > MAX_NAME) {
                let why = format!("{name} is longer than {MAX_NAME} bytes");
                return Err(RpcError::invalid_params(method.name(), &why));
            }
        }
        self.parts.router.session(chat)
    }

    fn now(&self) -> u64 {
        (self.parts.clock)()
    }
}

/// Returns an entry of the usage log for a run of this model.
fn entry(model: &ModelArgs, key: &SessionKey, at: u64, usage: Usage) -> UsageEntry {
    UsageEntry {
        provider: model.provider().as_str().to_owned(),
        model: model.model_name().to_owned(),
        ..UsageEntry::new(at, key.as_str(), key.agent())
            .with_tokens(usage.input_tokens, usage.output_tokens)
    }
}

/// Logs an error of the store, and returns one that says what to do.
fn unavailable(error: &StoreError) -> RpcError {
    tracing::error!(%error, "the store has failed");
    RpcError::new("storage unavailable: try again later")
}

/// Logs an error, and returns one without details for the client.
#[allow(
    clippy::needless_pass_by_value,
    reason = "it is a function for `map_err`"
)]
fn unreadable(error: StoreError) -> RpcError {
    tracing::error!(%error, "a session cannot be read or changed");
    RpcError::new("internal error")
}
