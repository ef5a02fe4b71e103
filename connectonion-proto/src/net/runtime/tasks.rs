//! The task of a [`HostRuntime`]: runs agents, stores sessions, saves files, and handles deadlines.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use rpc_core::Str;
use rpc_core::net::telemetry::server_call;
use tokio::task::{AbortHandle, JoinSet};

use super::agent::AgentError;
use super::handler::{images_of, rejected};
use super::state::{Job, StorageJob};
use super::turn::Turn;
use super::{HostRuntime, random};
use crate::auth::{AuthError, Signature};
use crate::frame::{ErrorFrame, Input};
use crate::hub::{ConnectRequest, Finished, JobId};
use crate::net::SYSTEM;
use crate::session::{ConnId, Owner, Prompt, RunId, SavedFile};
use crate::storage::{Record, StorageError};
use crate::trust::Onboarding;
use crate::upload;

/// The number of storage jobs done at once.
const BATCH: usize = 64;
/// The error for a client whose agent panicked.
const PANICKED: &str = "the agent panicked";

/// The outcome of storage jobs.
enum Outcome {
    Loaded(JobId, Box<Result<Option<Record>, StorageError>>),
    Stored(JobId, Result<(), StorageError>),
}

pub(super) async fn run(runtime: HostRuntime) -> Infallible {
    let runtime = &runtime;
    let _running = runtime.shared.hub.running();
    recover(runtime).await;
    // Tasks of their own, so that an agent that computes holds up neither time nor clients. They go
    // when this future goes.
    let mut running = JoinSet::new();
    let mut agents: HashMap<RunId, AbortHandle> = HashMap::new();
    let mut storing = Lanes::new(runtime.shared.storage.lanes());
    loop {
        while let Some(job) = runtime.next_job() {
            match job {
                Job::Run {
                    run,
                    session_id,
                    owner,
                    head,
                    prompt,
                    signals,
                } => {
                    let turn = Turn {
                        runtime: runtime.clone(),
                        run,
                        session_id,
                        owner,
                        head,
                        signals,
                    };
                    let handle = running.spawn(work(turn, prompt));
                    agents.insert(run, handle);
                }
                Job::Cancel(run) => {
                    if let Some(agent) = agents.remove(&run) {
                        agent.abort();
                    }
                }
                Job::Upload {
                    conn,
                    prompt,
                    input,
                } => {
                    running.spawn(save(runtime.clone(), conn, prompt, *input));
                }
                Job::Status {
                    conn,
                    asker,
                    session_id,
                } => {
                    running.spawn(tell_status(runtime.clone(), conn, asker, session_id));
                }
                Job::Spend { conn, request } => {
                    running.spawn(spend(runtime.clone(), conn, *request));
                }
                Job::Payment {
                    conn,
                    identity,
                    amount,
                } => {
                    running.spawn(check_payment(runtime.clone(), conn, identity, amount));
                }
            }
        }
        storing.start(runtime);
        tokio::select! {
            () = runtime.shared.hub.changed() => {}
            Some(outcomes) = storing.next() => runtime.take_outcomes(outcomes),
            Some(ended) = running.join_next() => {
                if let Ok(Some(run)) = ended {
                    agents.remove(&run);
                }
            }
        }
    }
}

/// The jobs of the storage. Those of one session are in one lane, and each lane does one batch at a
/// time, so that records are stored in their order.
struct Lanes {
    waiting: Vec<VecDeque<StorageJob>>,
    is_busy: Vec<bool>,
    running: JoinSet<(usize, Vec<Outcome>)>,
}

impl Lanes {
    fn new(lanes: usize) -> Self {
        let lanes = lanes.max(1);
        Self {
            waiting: (0..lanes).map(|_| VecDeque::new()).collect(),
            is_busy: vec![false; lanes],
            running: JoinSet::new(),
        }
    }

    fn start(&mut self, runtime: &HostRuntime) {
        for job in runtime.take_storage_jobs() {
            let mut hasher = DefaultHasher::new();
            job.session_id().hash(&mut hasher);
            let lanes = self.waiting.len() as u64;
            let lane = usize::try_from(hasher.finish() % lanes).unwrap_or_default();
            if let Some(waiting) = self.waiting.get_mut(lane) {
                waiting.push_back(job);
            }
        }
        let lanes = self.waiting.iter_mut().zip(&mut self.is_busy).enumerate();
        for (lane, (waiting, is_busy)) in lanes {
            if *is_busy || waiting.is_empty() {
                continue;
            }
            *is_busy = true;
            let batch = waiting.len().min(BATCH);
            let jobs = waiting.drain(..batch).collect();
            let (storage, now) = (Arc::clone(&runtime.shared.storage), runtime.unix_now());
            self.running
                .spawn_blocking(move || (lane, carry_out(&*storage, jobs, now)));
        }
    }

    /// Waits for a batch. `None` if there is none; then it is not to be polled again before
    /// [`start`](Self::start).
    async fn next(&mut self) -> Option<Vec<Outcome>> {
        let Ok((lane, outcomes)) = self.running.join_next().await? else {
            // The storage panicked: which lane it was is not known, so all go on.
            self.is_busy.fill(false);
            return Some(Vec::new());
        };
        if let Some(is_busy) = self.is_busy.get_mut(lane) {
            *is_busy = false;
        }
        Some(outcomes)
    }
}

async fn recover(runtime: &HostRuntime) {
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

fn carry_out(
    storage: &dyn crate::storage::Storage,
    jobs: Vec<StorageJob>,
    now: f64,
) -> Vec<Outcome> {
    let jobs = jobs.into_iter();
    jobs.filter_map(|job| match job {
        StorageJob::Load(job, id) => {
            let found = storage.load(id.as_str(), now);
            Some(Outcome::Loaded(job, Box::new(found)))
        }
        StorageJob::Store(job, record) => Some(Outcome::Stored(job, storage.append(&record))),
        StorageJob::StoreEvents(job, id, events) => {
            let stored = storage.append_events(id.as_str(), &events);
            Some(Outcome::Stored(job, stored))
        }
        StorageJob::Release(id) => {
            storage.release(id.as_str());
            None
        }
    })
    .collect()
}

/// Runs an agent from its prompt to its end. A panic counts as a failure.
async fn work(turn: Turn, prompt: Prompt) -> Option<RunId> {
    let run = turn.run;
    let answer = pin!(answer(turn, prompt));
    server_call(SYSTEM, "INPUT", answer, |ok| *ok).await;
    Some(run)
}

/// Returns whether the agent has answered.
async fn answer(turn: Turn, prompt: Prompt) -> bool {
    let run = turn.run;
    let runtime = turn.runtime.clone();
    let mut prompt = prompt;
    let has_answered = loop {
        let answering = async { runtime.shared.agent.run(&turn, prompt).await };
        let answer = AssertUnwindSafe(answering).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| {
            tracing::error!(?run, "an agent panicked");
            Err(AgentError::new(PANICKED))
        });
        let finished = match answer {
            Ok(reply) => runtime.with(|state, now| state.hub.finish(run, &reply.text, now)),
            Err(AgentError::Over(_)) => break false,
            Err(error) => {
                // A run that is over has told so.
                let _ = runtime.with(|state, now| state.hub.fail(run, &error.to_string(), now));
                break false;
            }
        };
        match finished {
            Ok(Finished::More(prompts)) => prompt = joined(&prompts),
            Ok(Finished::Done) => break true,
            Err(_) => break false,
        }
    };
    runtime.shared.hub.peek(|state| state.forget_runner(run));
    has_answered
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

/// Saves the files of a prompt, before anything else is done with it.
async fn save(runtime: HostRuntime, conn: ConnId, prompt: Str, input: Input) -> Option<RunId> {
    let (folder, limits) = (runtime.shared.uploads.clone(), runtime.shared.upload_limits);
    let saving = tokio::task::spawn_blocking(move || {
        let limits_of_lists = crate::limits::server_limits();
        let files = input.files(&limits_of_lists);
        let files = files.map_err(|error| upload::UploadError::from(error).to_string())?;
        let plan = upload::plan(&files, random(), &limits).map_err(|error| error.to_string())?;
        let paths = upload::save(&folder, &plan).map_err(|error| {
            tracing::error!(%error, "an upload was not saved");
            "the files were not saved: try again".to_owned()
        })?;
        let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
        let text = upload::with_reminder(&prompt, &paths);
        let files = plan.iter().zip(&paths);
        let files = files.map(|(file, path)| SavedFile::new(file.name.as_str(), path.as_str()));
        let mut prompt = Prompt::new(text);
        prompt.images = images_of(&input).map_err(|error| format!("Invalid INPUT: {error}"))?;
        prompt.files = files.collect();
        Ok::<_, String>((prompt, input.session))
    });
    let saved = saving
        .await
        .unwrap_or_else(|_| Err("internal error".to_owned()));
    runtime.with(|state, now| match saved {
        Ok((prompt, session)) => state.hub.input(conn, prompt, session, now),
        Err(message) => state.hub.refuse_input(conn, rejected(message)),
    });
    None
}

async fn tell_status(
    runtime: HostRuntime,
    conn: ConnId,
    asker: Option<Owner>,
    session_id: Str,
) -> Option<RunId> {
    let status = runtime.status(asker, session_id).await;
    runtime.with(|state, _| state.hub.tell(conn, &status));
    None
}

/// Connects a client, unless its signature was used at another host.
async fn spend(runtime: HostRuntime, conn: ConnId, request: ConnectRequest) -> Option<RunId> {
    let signature = request.connect.signed.signature.as_deref();
    let signature = signature.and_then(|text| Signature::parse(text).ok());
    let spent = match (&runtime.shared.peers, signature) {
        (Some(peers), Some(signature)) => peers.spend(&signature).await,
        _ => Ok(()),
    };
    match spent {
        Ok(()) => runtime.enter(conn, request),
        Err(error) => runtime.with(|state, _| {
            let error = ErrorFrame::new(error.to_string());
            state.hub.refuse_connect(conn, error);
        }),
    }
    None
}

/// Checks whether a stranger has paid.
async fn check_payment(
    runtime: HostRuntime,
    conn: ConnId,
    identity: crate::auth::Address,
    amount: f64,
) -> Option<RunId> {
    let is_paid = match runtime.shared.payments.clone() {
        Some(payments) => {
            let asking = async move { payments.is_paid(&identity, amount).await };
            AssertUnwindSafe(asking)
                .catch_unwind()
                .await
                .unwrap_or(false)
        }
        None => false,
    };
    let outcome = match is_paid {
        true => runtime.with_access(|access| access.paid(&identity)),
        false => Onboarding::Refuse(AuthError::InsufficientPayment),
    };
    runtime.write(conn, |machine| match outcome {
        Onboarding::Welcome(success) => machine.welcome(&success),
        Onboarding::Refuse(error) => machine.refuse(&ErrorFrame::new(error.to_string())),
        Onboarding::Payment { .. } => Ok(()),
    });
    None
}

impl HostRuntime {
    fn next_job(&self) -> Option<Job> {
        self.shared.hub.peek(|state| state.jobs.pop_front())
    }

    fn take_storage_jobs(&self) -> VecDeque<StorageJob> {
        self.shared
            .hub
            .peek(|state| std::mem::take(&mut state.storage))
    }

    fn take_outcomes(&self, outcomes: Vec<Outcome>) {
        self.with(|state, now| {
            for outcome in outcomes {
                match outcome {
                    Outcome::Loaded(job, found) => state.hub.loaded(job, *found, now),
                    Outcome::Stored(job, outcome) => state.hub.stored(job, outcome, now),
                }
            }
        });
    }
}
