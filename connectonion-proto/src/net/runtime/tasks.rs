//! The task of a [`HostRuntime`]: runs agents, stores sessions, and handles deadlines.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rpc_core::net::catch_panic;
use rpc_core::net::telemetry::server_call;
use rpc_core::store::{MemoryStore, SessionLogConfig, Store};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::HostRuntime;
use super::agent::Agent;
use super::turn::Turn;
use crate::hub::{AppError, HubEvent, Job, Prompt, RunId};
use crate::net::SYSTEM;
use crate::net::sessions::{Sessions, log_config};
use crate::storage::{Record, StorageError};

/// How many sessions are stored at the same time: their writes share what a store does for each.
const LANES: usize = 32;
/// The number of storage jobs of a lane that are done at once.
const BATCH: usize = 64;
/// How long to wait before a store that does not answer is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// How often sessions that have expired are removed.
const SWEEP: Duration = Duration::from_secs(10 * 60);
/// How often it is looked whether lists have changed.
const LOOK: Duration = Duration::from_secs(1);
/// The bytes of the sessions of a host that is alone, in a store and in memory.
const STORE_BYTES: u64 = 2 << 30;
const MEMORY_BYTES: u64 = 256 << 20;

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
    let sessions = sessions(runtime).await;
    // It goes when this future goes.
    let mut chores = JoinSet::new();
    if runtime.shared.cluster.is_none() {
        recover(runtime, &sessions).await;
    }
    chores.spawn(tend(runtime.clone(), Arc::clone(&sessions)));
    if runtime.shared.trust_source.is_some() {
        chores.spawn(watch_lists(runtime.clone()));
    }
    // Tasks of their own, so that an agent that computes blocks neither time nor clients. They go
    // when this future goes.
    let mut running = JoinSet::new();
    let mut agents: HashMap<RunId, (AbortHandle, Arc<Notify>)> = HashMap::new();
    let mut storing: JoinSet<Stored> = JoinSet::new();
    let mut lanes: Vec<Lane> = Vec::new();
    lanes.resize_with(LANES, Lane::default);
    loop {
        while let Some(event) = hub.peek(|state| state.hub.poll_event()) {
            match event {
                HubEvent::Start {
                    run,
                    session_id,
                    owner,
                    prompt,
                } => {
                    let changed = Arc::<Notify>::default();
                    let head = |conn| hub.peek(|state| state.heads.get(&conn).cloned());
                    let turn = Turn {
                        runtime: runtime.clone(),
                        run,
                        session_id,
                        owner,
                        head: prompt.conn.and_then(head),
                        changed: Arc::clone(&changed),
                    };
                    let work = (runtime.shared.start)(turn, prompt);
                    agents.insert(run, (running.spawn(work), changed));
                }
                HubEvent::Cancel(run) => {
                    if let Some((agent, _)) = agents.remove(&run) {
                        agent.abort();
                    }
                }
                HubEvent::Store(job) => {
                    let sum: usize = job.session_id().bytes().map(usize::from).sum();
                    let lane = sum % LANES;
                    if let Some(lane) = lanes.get_mut(lane) {
                        lane.waiting.push(job);
                    }
                }
                HubEvent::Unused(files) => {
                    let shared = Arc::clone(&runtime.shared);
                    spawn_blocking(move || {
                        let paths = files.iter().filter_map(|it| it.path.as_deref());
                        if let Err(error) = shared.uploads.remove_files(paths) {
                            tracing::warn!(%error, "files of a refused prompt are not removed");
                        }
                    });
                }
                HubEvent::Told(run) => {
                    if let Some((_, changed)) = agents.get(&run) {
                        changed.notify_waiters();
                    }
                }
            }
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            if !lane.is_busy && !lane.waiting.is_empty() {
                lane.is_busy = true;
                // One conversation at a time is in memory that the hub does not know of.
                let loaded = lane.waiting.iter().position(Job::is_load);
                let count = loaded.map_or(lane.waiting.len(), |it| it + 1).min(BATCH);
                let batch = lane.waiting.drain(..count).collect();
                let now = runtime.unix_now();
                storing.spawn(store(Arc::clone(&sessions), now, number, batch));
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

/// Carries out a batch of jobs. Those of a store that panics, which has said so, stay undone.
async fn store(sessions: Arc<Sessions>, now: f64, lane: usize, jobs: Vec<Job>) -> Stored {
    let carrying_out = async {
        let mut done = Vec::with_capacity(jobs.len());
        for job in jobs {
            done.push((sessions.carry_out(&job, now).await, job));
        }
        done
    };
    let done = catch_panic("the store", carrying_out).await;
    (lane, done.unwrap_or_default())
}

/// Returns the sessions of all hosts, or those of this one when its store answers.
async fn sessions(runtime: &HostRuntime) -> Arc<Sessions> {
    if let Some(cluster) = &runtime.shared.cluster {
        return cluster.sessions();
    }
    let (store, max): (Arc<dyn Store>, _) = match &runtime.shared.store {
        Some(store) => (Arc::clone(store), STORE_BYTES),
        None => (Arc::new(MemoryStore::new()), MEMORY_BYTES),
    };
    loop {
        let config = SessionLogConfig {
            max_bytes: Some(runtime.shared.max_store_bytes.unwrap_or(max)),
            clock: runtime.clock(),
            ..log_config()
        };
        match Sessions::open(&*store, config, None).await {
            Ok(sessions) => return Arc::new(sessions),
            Err(error) => tracing::error!(%error, "the sessions cannot be opened"),
        }
        sleep(PAUSE).await;
    }
}

async fn recover(runtime: &HostRuntime, sessions: &Sessions) {
    match sessions.recover(runtime.unix_now()).await {
        Ok(0) => {}
        Ok(runs) => tracing::warn!(runs, "runs were interrupted by the end of their host"),
        Err(error) => tracing::error!(%error, "the sessions were not recovered"),
    }
}

/// Removes the sessions that have expired, and files without a session; all hosts of a cluster do only that. Logs
/// once what of the sessions is lost.
async fn tend(runtime: HostRuntime, sessions: Arc<Sessions>) {
    let is_alone = runtime.shared.cluster.is_none();
    if is_alone && let Err(error) = sessions.log.check().await {
        // As where the host has ended meanwhile.
        tracing::debug!(%error, "the sessions were not checked");
    }
    loop {
        if let Err(error) = tend_files(&runtime, &sessions).await {
            tracing::warn!(%error, "files without a session are not removed");
        }
        sleep(SWEEP).await;
        if is_alone && let Err(error) = sessions.sweep().await {
            tracing::warn!(%error, "sessions that have expired are not removed");
        }
    }
}

/// Removes the files of sessions that are over. New files are left: their prompts may not be stored yet.
async fn tend_files(runtime: &HostRuntime, sessions: &Sessions) -> io::Result<()> {
    if runtime.shared.uploads.is_empty() {
        return Ok(());
    }
    let kept = sessions.owned_by(runtime.unix_now()).await;
    // Without it nobody knows whose they are.
    let Some(kept) = kept.map_err(io::Error::other)? else {
        return Ok(());
    };
    let before = (runtime.clock())().checked_sub(SWEEP).unwrap_or(UNIX_EPOCH);
    let shared = Arc::clone(&runtime.shared);
    let removing = spawn_blocking(move || {
        let kept = kept.iter().map(|(owner, id)| (*owner, &**id));
        shared.uploads.remove_others(kept, before)
    });
    removing.await?
}

/// Ends what callers have here who are blocked in lists that change elsewhere.
async fn watch_lists(runtime: HostRuntime) {
    loop {
        sleep(LOOK).await;
        if runtime.sessions() > 0 {
            runtime.with_access(|access| runtime.refresh_book(access));
        }
    }
}

/// Runs an agent from its prompt to its end. A panic counts as a failure.
pub(super) async fn work<A: Agent>(agent: Arc<A>, turn: Turn, mut prompt: Prompt) -> RunId {
    let (run, runtime) = (turn.run, turn.runtime.clone());
    let answers = pin!(async {
        loop {
            let answering = async { agent.run(&turn, prompt).await };
            let answer = catch_panic("an agent", answering).await;
            let answer = answer.unwrap_or_else(|| Err(AppError::failed(PANICKED)));
            let unread = runtime.with_hub(|hub, now| match answer {
                Ok(reply) => hub.finish(run, &reply.text, now),
                Err(AppError::Over) => Err(AppError::Over),
                // A run that is over has reported it.
                Err(error) => match hub.fail(run, &error.to_string(), now) {
                    Ok(()) | Err(_) => Err(AppError::Over),
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
