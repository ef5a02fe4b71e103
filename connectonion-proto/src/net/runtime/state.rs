//! The locked state of a [`HostRuntime`](super::HostRuntime): the hub, and the receivers of its
//! output.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rpc_core::net::{Connections, HubState, clock};
use rpc_core::{Refused, Str};
use tokio::sync::oneshot;

use super::turn::{Head, Signals};
use crate::console;
use crate::frame::{Answer, Input};
use crate::hub::{ConnectRequest, Hub, HubEvent, JobId, Now, Reply};
use crate::id::SessionId;
use crate::replay::Entry;
use crate::server::ServerConn;
use crate::session::{ConnId, Owner, Prompt, RunId};
use crate::storage::Record;

/// A job for the storage.
pub(super) enum StorageJob {
    Load(JobId, SessionId),
    Store(JobId, Box<Record>),
    StoreEvents(JobId, SessionId, Vec<Entry>),
    Release(SessionId),
}

impl StorageJob {
    /// Returns the session, whose jobs are done in order.
    pub(super) fn session_id(&self) -> &str {
        match self {
            Self::Load(_, id) | Self::Release(id) | Self::StoreEvents(_, id, _) => id.as_str(),
            Self::Store(_, record) => &record.session_id,
        }
    }
}

/// A job for the runtime's task.
pub(super) enum Job {
    /// Start the agent.
    Run {
        run: RunId,
        session_id: SessionId,
        owner: Owner,
        head: Option<Arc<Head>>,
        prompt: Prompt,
        signals: Arc<Signals>,
    },
    /// Stop it.
    Cancel(RunId),
    /// Save the files of a prompt.
    Upload {
        conn: ConnId,
        prompt: Str,
        input: Box<Input>,
    },
    /// Ask the other hosts for the status of a session.
    Status {
        conn: ConnId,
        asker: Option<Owner>,
        session_id: Str,
    },
    /// Count the signature of a CONNECT as used at all hosts, then connect.
    Spend {
        conn: ConnId,
        request: Box<ConnectRequest>,
    },
    /// Check whether a stranger has paid.
    Payment {
        conn: ConnId,
        identity: crate::auth::Address,
        amount: f64,
    },
}

/// A running agent.
struct Runner {
    signals: Arc<Signals>,
    answers: HashMap<Str, oneshot::Sender<Answer>>,
}

pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) connections: Connections<ServerConn>,
    /// The upgrade requests of those that have one.
    pub(super) heads: HashMap<ConnId, Arc<Head>>,
    runners: HashMap<RunId, Runner>,
    pub(super) storage: VecDeque<StorageJob>,
    pub(super) jobs: VecDeque<Job>,
}

impl State {
    pub(super) fn new(hub: Hub) -> Self {
        Self {
            hub,
            connections: Connections::default(),
            heads: HashMap::new(),
            runners: HashMap::new(),
            storage: VecDeque::new(),
            jobs: VecDeque::new(),
        }
    }

    /// Registers an agent's question.
    pub(super) fn expect(&mut self, run: RunId, id: Str, answer: oneshot::Sender<Answer>) {
        if let Some(runner) = self.runners.get_mut(&run) {
            runner.answers.insert(id, answer);
        }
    }

    pub(super) fn forget_question(&mut self, run: RunId, id: &str) {
        if let Some(runner) = self.runners.get_mut(&run) {
            runner.answers.remove(id);
        }
    }

    /// Forgets an agent whose task has ended.
    pub(super) fn forget_runner(&mut self, run: RunId) {
        self.runners.remove(&run);
    }

    /// Sends a connection as many of its session's frames as there is room for.
    pub(super) fn send_frames(&mut self, conn: ConnId, now: Now) {
        let Some(handle) = self.connections.get(conn.0) else {
            return;
        };
        while handle.with(ServerConn::has_room)
            && let Some(frame) = self.hub.next_frame(conn, now)
        {
            self.connections
                .write(conn.0, |machine| machine.send(frame));
        }
    }

    fn carry_out(&mut self, event: HubEvent) {
        match event {
            HubEvent::Load { job, session_id } => {
                self.storage.push_back(StorageJob::Load(job, session_id));
            }
            HubEvent::Store { job, record } => {
                self.storage.push_back(StorageJob::Store(job, record));
            }
            HubEvent::StoreEvents {
                job,
                session_id,
                events,
            } => {
                let job = StorageJob::StoreEvents(job, session_id, events);
                self.storage.push_back(job);
            }
            HubEvent::Release { session_id } => {
                self.storage.push_back(StorageJob::Release(session_id));
            }
            HubEvent::Start {
                run,
                session_id,
                owner,
                conn,
                prompt,
            } => {
                let signals = Arc::new(Signals::default());
                let runner = Runner {
                    signals: Arc::clone(&signals),
                    answers: HashMap::new(),
                };
                self.runners.insert(run, runner);
                self.jobs.push_back(Job::Run {
                    run,
                    session_id,
                    owner,
                    head: conn.and_then(|conn| self.heads.get(&conn).cloned()),
                    prompt,
                    signals,
                });
            }
            HubEvent::Cancel { run } => {
                self.runners.remove(&run);
                self.jobs.push_back(Job::Cancel(run));
            }
            HubEvent::Answer {
                run,
                request_id,
                answer,
            } => {
                let runner = self.runners.get_mut(&run);
                let waiting = runner.and_then(|runner| runner.answers.remove(&request_id));
                if let Some(waiting) = waiting {
                    // Whoever asked may have gone.
                    let _ = waiting.send(answer);
                }
            }
            HubEvent::Interrupt { run } => {
                self.signal(run, |signals| signals.interrupt.notify_waiters());
            }
            HubEvent::Interjected { run } => {
                self.signal(run, |signals| signals.input.notify_waiters());
            }
            HubEvent::Goal { run, prompt } => self.signal(run, |signals| {
                let goal = signals.goal.lock();
                *goal.unwrap_or_else(std::sync::PoisonError::into_inner) = Some(prompt);
            }),
            HubEvent::Line(line) => tracing::info!(target: console::TARGET, "{line}"),
            // The agent finds it in the session.
            HubEvent::Mode { .. } => {}
        }
    }

    fn signal(&self, run: RunId, tell: impl FnOnce(&Signals)) {
        if let Some(runner) = self.runners.get(&run) {
            tell(&runner.signals);
        }
    }
}

impl HubState for State {
    type Now = Now;

    fn now() -> Now {
        Now::new(clock(), SystemTime::now())
    }

    fn drain_outputs(&mut self, now: Now) -> bool {
        let (jobs, storage) = (self.jobs.len(), self.storage.len());
        while let Some(event) = self.hub.poll_event() {
            self.carry_out(event);
        }
        while let Some((conn, reply)) = self.hub.poll_reply() {
            if let Reply::Close(frame) = reply {
                if let Some(handle) = self.connections.get(conn.0) {
                    handle.close_with(frame);
                }
                continue;
            }
            self.connections
                .write(conn.0, |machine| tell(machine, reply));
        }
        while let Some(conn) = self.hub.poll_ready() {
            self.send_frames(conn, now);
        }
        self.jobs.len() > jobs || self.storage.len() > storage
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Now) {
        self.hub.handle_timeout(now);
    }

    fn is_idle(&self) -> bool {
        self.hub.is_idle()
    }

    fn end(&mut self) {
        self.runners = HashMap::new();
        self.jobs = VecDeque::new();
        self.storage = VecDeque::new();
    }
}

fn tell(machine: &mut ServerConn, reply: Reply) -> Result<(), Refused> {
    match reply {
        Reply::Accept(connected) => match machine.accept(&connected) {
            // The conversation is with the client too, as it was.
            Err(Refused::TooLarge { .. }) => machine.accept(&connected.with_newer(None)),
            told => told,
        },
        Reply::Refuse(error) => machine.refuse(&error),
        Reply::Begun => machine.begun(),
        Reply::Acknowledge(ack) => machine.acknowledge(&ack),
        Reply::Frame(text) => machine.tell_text(text),
        Reply::Close(_) => Ok(()),
    }
}
