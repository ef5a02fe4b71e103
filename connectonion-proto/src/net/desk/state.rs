//! What a [`Desk`](super::Desk) keeps under its lock: the hub, and where its output goes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use rpc_core::net::Handle;
use rpc_core::{CloseFrame, Refused, Str};
use tokio::sync::oneshot;

use super::agent::Prompt;
use super::turn::Signals;
use crate::console;
use crate::frame::{Answer, Input};
use crate::hub::{Hub, HubEvent, JobId, Now, Reply};
use crate::id::SessionId;
use crate::server::ServerConn;
use crate::session::{ConnId, Owner, RunId};
use crate::storage::Record;

/// What the storage has to do.
pub(super) enum StorageJob {
    Load(JobId, SessionId),
    Store(JobId, Box<Record>),
}

/// What the desk's task has to begin.
pub(super) enum Errand {
    /// Start the agent.
    Run {
        run: RunId,
        session_id: SessionId,
        owner: Owner,
        prompt: Prompt,
        signals: Arc<Signals>,
    },
    /// Stop it.
    Cancel(RunId),
    /// Save the files that come with a prompt.
    Upload {
        conn: ConnId,
        prompt: Str,
        input: Box<Input>,
    },
    /// Find out whether a stranger has paid.
    Payment {
        conn: ConnId,
        identity: crate::auth::Address,
        amount: f64,
    },
}

/// An agent at work.
struct Runner {
    signals: Arc<Signals>,
    answers: HashMap<Str, oneshot::Sender<Answer>>,
}

pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) connections: HashMap<ConnId, Handle<ServerConn>>,
    runners: HashMap<RunId, Runner>,
    pub(super) storage: VecDeque<StorageJob>,
    pub(super) errands: VecDeque<Errand>,
    /// The deadline that the running task sleeps until.
    pub(super) armed: Option<Instant>,
    /// No new prompts are taken.
    pub(super) is_closing: bool,
    last_conn: u64,
}

/// What follows from what the hub had to say.
pub(super) struct Followed {
    /// The running task has something to do.
    pub(super) wakes: bool,
    /// Nothing is being run or stored, and somebody may wait for that.
    pub(super) is_idle: bool,
}

impl State {
    pub(super) fn new(hub: Hub) -> Self {
        Self {
            hub,
            connections: HashMap::new(),
            runners: HashMap::new(),
            storage: VecDeque::new(),
            errands: VecDeque::new(),
            armed: None,
            is_closing: false,
            last_conn: 0,
        }
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.last_conn += 1;
        ConnId(self.last_conn)
    }

    /// An agent waits for an answer.
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

    /// The agent's task has ended.
    pub(super) fn forget_runner(&mut self, run: RunId) {
        self.runners.remove(&run);
    }

    /// Takes everything out of the hub and gives it to whom it concerns.
    pub(super) fn pass_on(&mut self, now: Now) -> Followed {
        let (errands, storage) = (self.errands.len(), self.storage.len());
        while let Some(event) = self.hub.poll_event() {
            self.carry_out(event);
        }
        while let Some((conn, reply)) = self.hub.poll_reply() {
            self.write(conn, |machine| tell(machine, reply));
        }
        while let Some(conn) = self.hub.poll_ready() {
            self.send_frames(conn, now);
        }
        let next = self.hub.poll_timeout();
        let is_sooner = next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed));
        Followed {
            wakes: is_sooner || self.errands.len() > errands || self.storage.len() > storage,
            is_idle: self.is_closing && self.hub.is_idle(),
        }
    }

    /// Writes to a connection, if it is still there. A client that reads too slowly is disconnected.
    pub(super) fn write(
        &self,
        conn: ConnId,
        write: impl FnOnce(&mut ServerConn) -> Result<(), Refused>,
    ) {
        let Some(handle) = self.connections.get(&conn) else {
            return;
        };
        match handle.with(write) {
            Ok(()) | Err(Refused::Closed) => {}
            Err(Refused::QueueFull) => {
                handle.close_with(CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader"));
            }
            Err(why) => tracing::warn!(%why, conn = conn.0, "a frame was not sent"),
        }
    }

    /// Sends a connection as many of its session's frames as there is room for.
    pub(super) fn send_frames(&mut self, conn: ConnId, now: Now) {
        let Some(handle) = self.connections.get(&conn).cloned() else {
            return;
        };
        while handle.with(ServerConn::has_room)
            && let Some(frame) = self.hub.next_frame(conn, now)
        {
            self.write(conn, |machine| machine.send(frame));
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
            HubEvent::Start {
                run,
                session_id,
                owner,
                input,
            } => {
                let signals = Arc::new(Signals::default());
                let runner = Runner {
                    signals: Arc::clone(&signals),
                    answers: HashMap::new(),
                };
                self.runners.insert(run, runner);
                self.errands.push_back(Errand::Run {
                    run,
                    session_id,
                    owner,
                    prompt: Prompt::from(input),
                    signals,
                });
            }
            HubEvent::Cancel { run } => {
                self.runners.remove(&run);
                self.errands.push_back(Errand::Cancel(run));
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

    /// Nobody runs the desk any more: whoever waits for something waits in vain.
    pub(super) fn end(&mut self) {
        self.is_closing = true;
        self.runners = HashMap::new();
        self.errands = VecDeque::new();
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
    }
}
