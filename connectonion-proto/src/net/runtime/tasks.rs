//! The task of a [`HostRuntime`]: runs agents, stores sessions, and handles deadlines.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use rpc_core::net::telemetry::server_call;
use tokio::task::{AbortHandle, JoinSet};

use super::HostRuntime;
use super::turn::{Signals, Turn};
use crate::hub::{AgentError, HubEvent, Job, Prompt, RunId};
use crate::net::SYSTEM;
use crate::storage::{Record, StorageError};

/// The number of storage jobs done at once.
const BATCH: usize = 64;
/// The error for a client whose agent panicked.
const PANICKED: &str = "the agent panicked";

/// A job that the storage has done, and the record that it found.
type Done = (Job, Result<Option<Record>, StorageError>);

pub(super) async fn run(runtime: HostRuntime) -> Infallible {
    let runtime = &runtime;
    let _running = runtime.shared.hub.running();
    recover(runtime).await;
    // Tasks of their own, so that an agent that computes holds up neither time nor clients. They go
    // when this future goes.
    let mut running = JoinSet::new();
    let mut agents: HashMap<RunId, (AbortHandle, Arc<Signals>)> = HashMap::new();
    let mut storing = Lanes::new(runtime.shared.lanes);
    loop {
        while let Some(event) = runtime.shared.hub.peek(|state| state.hub.poll_event()) {
            match event {
                HubEvent::Start {
                    run,
                    session_id,
                    owner,
                    prompt,
                } => {
                    let head = |conn| {
                        runtime
                            .shared
                            .hub
                            .peek(|state| state.heads.get(&conn).cloned())
                    };
                    let signals = Arc::<Signals>::default();
                    let turn = Turn {
                        runtime: runtime.clone(),
                        run,
                        session_id,
                        owner,
                        head: prompt.conn.and_then(head),
                        signals: Arc::clone(&signals),
                    };
                    agents.insert(run, (running.spawn(work(turn, prompt)), signals));
                }
                HubEvent::Cancel(run) => {
                    if let Some((agent, _)) = agents.remove(&run) {
                        agent.abort();
                    }
                }
                HubEvent::Store(job) => storing.push(job),
                HubEvent::Answer(run, ..)
                | HubEvent::Interrupt(run)
                | HubEvent::Interjected(run)
                | HubEvent::Goal(run, _) => {
                    if let Some((_, signals)) = agents.get(&run) {
                        signals.tell(event);
                    }
                }
            }
        }
        storing.start(runtime);
        tokio::select! {
            () = runtime.shared.hub.changed() => {}
            Some(done) = storing.next() => runtime.with(|state, now| {
                for (job, outcome) in done {
                    state.hub.done(job, outcome, now);
                }
            }),
            Some(ended) = running.join_next() => {
                if let Ok(run) = ended {
                    agents.remove(&run);
                }
            }
        }
    }
}

/// The jobs of the storage. Those of one session are in one lane, and each lane does one batch at a
/// time, so that records are stored in their order.
struct Lanes {
    waiting: Vec<VecDeque<Job>>,
    is_busy: Vec<bool>,
    running: JoinSet<(usize, Vec<Done>)>,
}

impl Lanes {
    fn new(lanes: usize) -> Self {
        Self {
            waiting: (0..lanes).map(|_| VecDeque::new()).collect(),
            is_busy: vec![false; lanes],
            running: JoinSet::new(),
        }
    }

    fn push(&mut self, job: Job) {
        let mut hasher = DefaultHasher::new();
        job.session_id().hash(&mut hasher);
        let lanes = self.waiting.len() as u64;
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or_default();
        if let Some(waiting) = self.waiting.get_mut(lane) {
            waiting.push_back(job);
        }
    }

    fn start(&mut self, runtime: &HostRuntime) {
        let lanes = self.waiting.iter_mut().zip(&mut self.is_busy).enumerate();
        for (lane, (waiting, is_busy)) in lanes {
            if *is_busy || waiting.is_empty() {
                continue;
            }
            *is_busy = true;
            let batch = waiting.len().min(BATCH);
            let jobs: Vec<Job> = waiting.drain(..batch).collect();
            let now = runtime.unix_now();
            if let Some(peers) = runtime.shared.peers.clone() {
                self.running.spawn(async move {
                    let mut done = Vec::with_capacity(jobs.len());
                    for job in jobs {
                        let outcome = peers.carry_out(&job, now).await;
                        done.push((job, outcome));
                    }
                    (lane, done)
                });
                continue;
            }
            let storage = Arc::clone(&runtime.shared.storage);
            self.running.spawn_blocking(move || {
                let jobs = jobs.into_iter();
                let done = jobs.map(|job| {
                    let outcome = job.carry_out(&*storage, now);
                    (job, outcome)
                });
                (lane, done.collect())
            });
        }
    }

    /// Waits for a batch. `None` if there is none; then it is not to be polled again before
    /// [`start`](Self::start).
    async fn next(&mut self) -> Option<Vec<Done>> {
        let Ok((lane, done)) = self.running.join_next().await? else {
            // The storage panicked: which lane it was is not known, so all go on.
            self.is_busy.fill(false);
            return Some(Vec::new());
        };
        if let Some(is_busy) = self.is_busy.get_mut(lane) {
            *is_busy = false;
        }
        Some(done)
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
async fn work(turn: Turn, mut prompt: Prompt) -> RunId {
    let (run, runtime) = (turn.run, turn.runtime.clone());
    let answers = pin!(async {
        loop {
            let answering = async { runtime.shared.agent.answer(&turn, prompt).await };
            let answer = AssertUnwindSafe(answering).catch_unwind().await;
            let answer = answer.unwrap_or_else(|_| {
                tracing::error!(?run, "an agent panicked");
                Err(AgentError::new(PANICKED))
            });
            let unread = runtime.with(|state, now| match answer {
                Ok(reply) => state.hub.finish(run, &reply.text, now),
                Err(AgentError::Over) => Err(AgentError::Over),
                // A run that is over has told so.
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
