//! [`Shared`]: the state shared by all connections of a server.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::net::telemetry::server_call;
use rpc_core::net::{Cancellation, Canceller, DriverConfig};

use super::agent::Agent;
use super::queue::End;
use super::run::Run;
use crate::auth::Auth;
use crate::error::ChatError;
use crate::event::{Event, RunState};
use crate::frame::{ChatRequest, Status};
use crate::net::SYSTEM;
use crate::server::ServerConfig;
use crate::task::{Load, TaskRegistry};

/// The tasks of all connections.
pub(super) type Tasks = Arc<Mutex<TaskRegistry>>;

pub(super) struct Shared<A> {
    pub(super) agent: Arc<A>,
    pub(super) auth: Auth,
    pub(super) connection: Arc<ServerConfig>,
    pub(super) driver: DriverConfig,
    pub(super) tasks: Tasks,
    pub(super) stream_keep_alive: Duration,
    pub(super) admin_shutdown: bool,
    pub(super) shutdown_timeout: Duration,
    /// The server's own address, as reported by `status`.
    pub(super) address: OnceLock<String>,
    /// Set when the server ends.
    pub(super) stopping: Signal,
    /// Set when a client wants the server to end.
    pub(super) asked_to_stop: Signal,
}

/// A signal and its sender.
pub(super) struct Signal {
    giver: Canceller,
    signal: Cancellation,
}

impl Signal {
    pub(super) fn new() -> Self {
        let (giver, signal) = Cancellation::new();
        Self { giver, signal }
    }

    pub(super) fn give(&self) {
        self.giver.cancel();
    }

    pub(super) fn get(&self) -> Cancellation {
        self.signal.clone()
    }
}

impl<A: Agent> Shared<A> {
    pub(super) fn load(&self) -> Load {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.load()
    }

    /// Returns the agent's status, completed with the server's own numbers.
    pub(super) async fn status(&self) -> Status {
        let status = guarded("status", self.agent.status()).await;
        let mut status = status.unwrap_or_else(|| Status::new("", ""));
        if status.service.is_empty()
            && let Some(address) = self.address.get()
        {
            status.service = address.clone().into();
        }
        let Load {
            total,
            running,
            queued,
        } = self.load();
        status.tasks_total = count(total);
        status.tasks_running = count(running);
        status.rpc_queue_length = count(queued);
        status
    }

    /// Works on a chat to its end.
    pub(super) async fn work(&self, run: Run, request: ChatRequest) -> End {
        let answer = pin!(self.answer(run, request));
        server_call(SYSTEM, "chat.start", answer, |end| {
            // A model that fails is told in a reply.
            end.as_ref().is_ok_and(|reply| reply.error.is_none())
        })
        .await
    }

    async fn answer(&self, run: Run, request: ChatRequest) -> End {
        // Every known server says this first, and nothing else of this kind.
        let _ = run.emit(&Event::Status(RunState::RUNNING)).await;
        match guarded("chat", self.agent.run(run, request)).await {
            Some(Ok(reply)) => Ok(Box::new(reply)),
            Some(Err(error)) => Err(Box::new(error)),
            None => Err(Box::new(ChatError::new("Internal error."))),
        }
    }
}

/// Runs an agent's work; `None` if it panics.
async fn guarded<T>(what: &'static str, work: impl Future<Output = T>) -> Option<T> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    if outcome.is_err() {
        tracing::error!(what, "an agent panicked");
    }
    outcome.ok()
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(super) fn tasks(max: usize) -> Tasks {
    Arc::new(Mutex::new(TaskRegistry::new(max)))
}
