//! The task of a [`HostRuntime`]: runs agents, stores sessions, and handles deadlines.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use rpc_core::net::catch_panic;
use rpc_core::net::telemetry::server_call;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::HostRuntime;
use super::agent::Agent;
use super::turn::Turn;
use crate::hub::{AgentError, HubEvent, Job, Prompt, RunId};
use crate::net::SYSTEM;
use crate::storage::{Record, StorageError};

/// The number of storage jobs done at once.
const BATCH: usize = 64;

/// The jobs of some sessions, which are stored in their order, a batch at a time. The hub bounds them.
#[derive(Default)]
struct Lane {
    waiting: Vec<Job>,
    is_busy: bool,
}

/// The lane of a batch that was carried out, and its jobs with their outcomes.
type Stored = (usize, Vec<(Result<Option<Record>, StorageError>, Job)>);

/// The error for a client whose agent panicked.
const PANICKED: &str = "the agent panicked";

pub(super) async fn run(runtime: HostRuntime) -> Infallible {
    let (runtime, hub) = (&runtime, runtime.hub());
    let _running = hub.running();
    recover(runtime).await;
    // Tasks of their own, so that an agent that computes blocks neither time nor clients. They go
    // when this future goes.
    let mut running = JoinSet::new();
    let mut agents: HashMap<RunId, (AbortHandle, Arc<Notify>)> = HashMap::new();
    let mut storing: JoinSet<Stored> = JoinSet::new();
    let mut lanes: Vec<Lane> = Vec::new();
    lanes.resize_with(runtime.shared.lanes, Lane::default);
    loop {
        while let Some(event) = hub.peek(|state| state.hub.poll_event()) {
            match event {
                HubEvent::Start {
                    run,
                    session_id,
                    owner,
                    prompt,
                } => {
                    let told = Arc::<Notify>::default();
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
                    let sum: usize = job.session_id().bytes().map(usize::from).sum();
                    let lane = sum % lanes.len().max(1);
                    if let Some(lane) = lanes.get_mut(lane) {
                        lane.waiting.push(job);
                    }
                }
                HubEvent::Told(run) => {
                    if let Some((_, told)) = agents.get(&run) {
                        told.notify_waiters();
                    }
                }
            }
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            if !lane.is_busy && !lane.waiting.is_empty() {
                lane.is_busy = true;
                let count = lane.waiting.len().min(BATCH);
                let batch = lane.waiting.drain(..count).collect();
                storing.spawn(store(runtime.clone(), number, batch));
            }
        }
        tokio::select! {
            () = hub.changed() => {}
            Some(Ok((number, done))) = storing.join_next() => {
                hub.with(|state, now| {
                    for (outcome, job) in done {
                        state.hub.done(job, outcome, now);
                    }
                });
                if let Some(lane) = lanes.get_mut(number) {
                    lane.is_busy = false;
                }
            }
            Some(ended) = running.join_next() => {
                if let Ok(run) = ended {
                    agents.remove(&run);
                }
            }
        }
    }
}

/// Carries out a batch of jobs. Those of a storage that panics, which has said so, stay undone.
async fn store(runtime: HostRuntime, lane: usize, jobs: Vec<Job>) -> Stored {
    let (storage, now) = (Arc::clone(&runtime.shared.storage), runtime.unix_now());
    let done = match &runtime.shared.peers {
        Some(peers) => {
            let carrying_out = async {
                let mut done = Vec::with_capacity(jobs.len());
                for job in jobs {
                    done.push((peers.carry_out(&job, now).await, job));
                }
                done
            };
            catch_panic("the storage", carrying_out).await
        }
        None => {
            let outcome = move |job: Job| (job.carry_out(&*storage, now), job);
            let storing = move || jobs.into_iter().map(outcome).collect();
            tokio::task::spawn_blocking(storing).await.ok()
        }
    };
    (lane, done.unwrap_or_default())
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
            let unread = runtime.hub().with(|state, now| match answer {
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
