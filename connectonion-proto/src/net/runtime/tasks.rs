//! The task of a [`HostRuntime`]: runs agents, stores sessions, and handles deadlines.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;

use rpc_core::net::catch_panic;
use rpc_core::net::telemetry::server_call;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::{AbortHandle, JoinSet};

use super::HostRuntime;
use super::agent::Agent;
use super::turn::Turn;
use crate::hub::{AgentError, HubEvent, Job, Prompt, RunId};
use crate::net::SYSTEM;
use crate::storage::StorageError;

/// The number of storage jobs done at once.
const BATCH: usize = 64;
/// The error for a client whose agent panicked.
const PANICKED: &str = "the agent panicked";

pub(super) async fn run(runtime: HostRuntime) -> Infallible {
    let runtime = &runtime;
    let _running = runtime.shared.hub.running();
    recover(runtime).await;
    // Tasks of their own, so that an agent that computes blocks neither time nor clients. They go
    // when this future goes.
    let mut running = JoinSet::new();
    let mut agents: HashMap<RunId, (AbortHandle, Arc<Notify>)> = HashMap::new();
    // Jobs of one session are in one lane. The hub bounds them.
    let mut storing = JoinSet::new();
    let lanes = (0..runtime.shared.lanes).map(|_| {
        let (lane, jobs) = mpsc::unbounded_channel();
        storing.spawn(store(runtime.clone(), jobs));
        lane
    });
    let lanes: Vec<_> = lanes.collect();
    loop {
        while let Some(event) = runtime.shared.hub.peek(|state| state.hub.poll_event()) {
            match event {
                HubEvent::Start {
                    run,
                    session_id,
                    owner,
                    prompt,
                } => {
                    let told = Arc::<Notify>::default();
                    let hub = &runtime.shared.hub;
                    let head = |conn| hub.peek(|state| state.heads.get(&conn).cloned());
                    let turn = Turn {
                        runtime: runtime.clone(),
                        run,
                        session_id,
                        owner,
                        head: prompt.conn.and_then(head),
                        told: Arc::clone(&told),
                    };
                    let work = (runtime.shared.start)(turn, prompt);
                    agents.insert(run, (running.spawn(work), told));
                }
                HubEvent::Cancel(run) => {
                    if let Some((agent, _)) = agents.remove(&run) {
                        agent.abort();
                    }
                }
                HubEvent::Store(job) => {
                    let mut hasher = DefaultHasher::new();
                    job.session_id().hash(&mut hasher);
                    let lane = hasher.finish() % lanes.len().max(1) as u64;
                    let lane = lanes.get(usize::try_from(lane).unwrap_or_default());
                    // The lanes end with this future.
                    let _ = lane.map(|lane| lane.send(job));
                }
                HubEvent::Told(run) => {
                    if let Some((_, told)) = agents.get(&run) {
                        told.notify_waiters();
                    }
                }
            }
        }
        tokio::select! {
            () = runtime.shared.hub.changed() => {}
            Some(ended) = running.join_next() => {
                if let Ok(run) = ended {
                    agents.remove(&run);
                }
            }
        }
    }
}

/// Stores the jobs of some sessions in their order, a batch at a time.
async fn store(runtime: HostRuntime, mut jobs: UnboundedReceiver<Job>) {
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let (storage, now) = (Arc::clone(&runtime.shared.storage), runtime.unix_now());
        let jobs = std::mem::take(&mut batch);
        let done = match runtime.shared.peers.clone() {
            Some(peers) => {
                let mut done = Vec::with_capacity(jobs.len());
                for job in jobs {
                    done.push((peers.carry_out(&job, now).await, job));
                }
                done
            }
            None => {
                let storing = tokio::task::spawn_blocking(move || {
                    let outcomes = jobs
                        .into_iter()
                        .map(|job| (job.carry_out(&*storage, now), job));
                    outcomes.collect::<Vec<_>>()
                });
                // A storage that panics has said so.
                storing.await.unwrap_or_default()
            }
        };
        runtime.with(|state, now| {
            for (outcome, job) in done {
                state.hub.done(job, outcome, now);
            }
        });
    }
}

async fn recover(runtime: &HostRuntime) {
    if runtime.shared.peers.is_some() {
        // A session is recovered by its next owner, when it is loaded.
        return;
    }
    let (storage, now) = (Arc::clone(&runtime.shared.storage), runtime.unix_now());
    let recovered = tokio::task::spawn_blocking(move || {
        let recovered = storage.recover(now)?;
        storage.compact(now)?;
        Ok::<_, StorageError>(recovered.len())
    });
    match recovered.await {
        Ok(Ok(0)) => {}
        Ok(Ok(runs)) => tracing::warn!(runs, "runs were interrupted by the end of their host"),
        Ok(Err(error)) => tracing::error!(%error, "the storage was not recovered"),
        Err(_) => tracing::error!("the storage panicked"),
    }
}

/// Runs an agent from its prompt to its end. A panic counts as a failure.
pub(super) async fn work<A: Agent>(agent: Arc<A>, turn: Turn, mut prompt: Prompt) -> RunId {
    let (run, runtime) = (turn.run, turn.runtime.clone());
    let answers = pin!(async {
        loop {
            let answering = async { agent.run(&turn, prompt).await };
            let answer = catch_panic("an agent", answering).await;
            let answer = answer.unwrap_or_else(|| Err(AgentError::new(PANICKED)));
            let unread = runtime.with(|state, now| match answer {
                Ok(reply) => state.hub.finish(run, &reply.text, now),
                Err(AgentError::Over) => Err(AgentError::Over),
                // A run that is over has reported it.
                Err(error) => match state.hub.fail(run, &error.to_string(), now) {
                    Ok(()) | Err(_) => Err(AgentError::Over),
                },
            });
            match unread {
                Ok(prompts) if prompts.is_empty() => break true,
                Ok(prompts) => prompt = joined(&prompts),
                Err(_) => break false,
            }
        }
    });
    server_call(SYSTEM, "INPUT", answers, |has_answered| *has_answered).await;
    run
}

/// Joins several prompts of a user into one.
fn joined(prompts: &[Prompt]) -> Prompt {
    let texts: Vec<&str> = prompts.iter().map(|it| &*it.text).collect();
    let mut whole = Prompt::new(texts.join("\n\n"));
    for prompt in prompts {
        whole.images.extend_from_slice(&prompt.images);
        whole.files.extend_from_slice(&prompt.files);
    }
    whole
}
