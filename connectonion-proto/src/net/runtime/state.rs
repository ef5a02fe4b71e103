//! The locked state of a [`HostRuntime`](super::HostRuntime): the hub, and the receivers of its
//! output.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use rpc_core::net::{Connections, HubState, time};
use rpc_core::{Instant, Refused, Str};
use tokio::sync::oneshot;

use super::turn::{Head, Signals};
use crate::console;
use crate::frame::Answer;
use crate::hub::{Hub, HubEvent, Now, Reply};
use crate::server::ServerConn;
use crate::session::{ConnId, RunId};

/// A running agent.
#[derive(Default)]
struct Runner {
    signals: Arc<Signals>,
    /// The upgrade request of the connection that has sent the prompt.
    head: Option<Arc<Head>>,
    answers: HashMap<Str, oneshot::Sender<Answer>>,
}

pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) connections: Connections<ServerConn>,
    /// The upgrade requests of those that have one.
    pub(super) heads: HashMap<ConnId, Arc<Head>>,
    runners: HashMap<RunId, Runner>,
    /// What the runtime's task does: starts and stops of agents, and jobs of the storage.
    pub(super) work: VecDeque<HubEvent>,
}

impl State {
    pub(super) fn new(hub: Hub) -> Self {
        Self {
            hub,
            connections: Connections::default(),
            heads: HashMap::new(),
            runners: HashMap::new(),
            work: VecDeque::new(),
        }
    }

    /// Returns what an agent that starts needs; `None` if its run is over already.
    pub(super) fn runner(&self, run: RunId) -> Option<(Arc<Signals>, Option<Arc<Head>>)> {
        let runner = self.runners.get(&run)?;
        Some((Arc::clone(&runner.signals), runner.head.clone()))
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

    fn signal(&self, run: RunId, tell: impl FnOnce(&Signals)) {
        if let Some(runner) = self.runners.get(&run) {
            tell(&runner.signals);
        }
    }
}

impl HubState for State {
    type Now = Now;

    fn now() -> Now {
        Now::new(time::now(), SystemTime::now())
    }

    fn drain_outputs(&mut self, now: Now) -> bool {
        let before = self.work.len();
        while let Some(event) = self.hub.poll_event() {
            match event {
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
                HubEvent::Start {
                    run, ref prompt, ..
                } => {
                    let head = prompt.conn.and_then(|conn| self.heads.get(&conn).cloned());
                    let runner = Runner {
                        head,
                        ..Runner::default()
                    };
                    self.runners.insert(run, runner);
                    self.work.push_back(event);
                }
                HubEvent::Cancel { run } => {
                    self.runners.remove(&run);
                    self.work.push_back(event);
                }
                HubEvent::Store(_) => self.work.push_back(event),
            }
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
        self.work.len() > before
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
        self.work = VecDeque::new();
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
