//! The state of a host, without IO: [`Hub`]. It knows which clients watch which sessions, and what
//! is being run, stored and sent.
//!
//! A hub combines connections, a [registry of sessions](crate::session) and a
//! [storage](crate::storage). It reads no clock and owns no sockets, agents or files: after each
//! call, carry out every [`poll_event`](Hub::poll_event), send every connection its
//! [`poll_reply`](Hub::poll_reply) and, when [`poll_ready`](Hub::poll_ready) names it, its
//! [`next_frame`](Hub::next_frame)s, and check [`poll_timeout`](Hub::poll_timeout).
//!
//! # What is acknowledged is stored
//!
//! - A prompt that starts a run is acknowledged by the first event of that run, its `user_input`.
//!   It is stored before, with the whole conversation.
//! - A prompt for a running agent is acknowledged by `RUNTIME_INPUT_ACK`, and stored before that.
//!   It is read: by the agent in this run, or by another run if the agent fails.
//! - A change of mode between two runs is sent at once and then stored. A run stores its mode at
//!   its end.
//! - An OUTPUT is stored before it is sent. If the storage fails, it is sent all the same, because
//!   the client keeps the conversation. The hub holds it in memory and
//!   [stores it again](Hub::store_again), until it is stored or the session is removed.
//! - Events are sent at once. If [they are stored](HubConfig::store_events), it is in batches beside
//!   that: clients resume among them when the run of a dead host begins again.
//! - A host that is killed during a run finds the prompts of that run in its storage. The client
//!   gets them back with the conversation, unanswered, when it connects; or they are
//!   [run again](HubConfig::max_reruns), when the client connects or [without it](Hub::recover).
//! - A host that may no longer write to a session ([`StorageError::Fenced`]) acknowledges nothing
//!   more of it: its run is stopped, and its connections are closed.

mod bytes;
mod chat;
mod config;
mod control;
mod enter;
mod entry;
mod event;
mod events;
mod intake;
mod job;
mod moved;
mod recover;
mod run_state;
mod runs;
#[cfg(test)]
mod tests;
mod unstored;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use rpc_core::Instant;
use rpc_core::encode::encode;
use rpc_core::{Refused, Str, Text, UniqueBits};
use serde::Serialize;

use crate::console::{Line, NOT_AUTHENTICATED};
use crate::frame::{ErrorFrame, SessionState, SessionStatus};
use crate::id::SessionId;
use crate::limits::AUTHENTICATE_FIRST;
use crate::replay::Next;
use crate::session::{ConnId, Owner, Removed, RemovedSession, SessionRegistry};
use crate::storage::{Record, RecordStatus, StorageError};

use bytes::{Held, len_of};
pub use config::HubConfig;
use entry::SessionEntry;
pub use event::{AskError, ConnectRequest, EmitError, HubEvent, Now, Reply};
pub use job::Job;
use job::{Entering, Task};

/// The sessions, runs and connections of a host.
pub struct Hub {
    config: HubConfig,
    registry: SessionRegistry,
    /// Sessions with connections or a running agent.
    entries: HashMap<SessionId, SessionEntry>,
    /// The number of jobs that are not done.
    jobs: usize,
    /// The sessions that are being loaded, and how often.
    loading: HashMap<SessionId, usize>,
    /// The number of sessions that are being taken over.
    recovering: usize,
    /// Connections whose CONNECT waits for the storage.
    entering: HashMap<ConnId, Entering>,
    /// Connections that are being closed because this host does not serve their session.
    moved: HashSet<ConnId>,
    /// The number of the last job that may be overtaken by another one.
    last_job: u64,
    /// The number of runs that start when their prompt is stored.
    beginning: usize,
    /// Sessions with acknowledged prompts that wait until fewer agents run.
    starved: VecDeque<SessionId>,
    /// When to store again what was not stored.
    store_again_at: Option<Instant>,
    /// The bytes of conversations.
    held: Held,
    ids: UniqueBits,
    replies: VecDeque<(ConnId, Reply)>,
    events: VecDeque<HubEvent>,
}

impl Hub {
    /// Creates a hub without sessions. The seed should be random: it determines the ids of events
    /// and inputs.
    #[must_use]
    pub fn new(config: HubConfig, seed: u128, now: Instant) -> Self {
        Self {
            registry: SessionRegistry::new(config.registry.clone(), now),
            config,
            entries: HashMap::new(),
            jobs: 0,
            loading: HashMap::new(),
            recovering: 0,
            entering: HashMap::new(),
            moved: HashSet::new(),
            last_job: 0,
            beginning: 0,
            starved: VecDeque::new(),
            store_again_at: None,
            held: Held::default(),
            ids: UniqueBits::new(seed),
            replies: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.registry.len()
    }

    /// Returns the session of a connection.
    #[must_use]
    pub fn session_of(&self, conn: ConnId) -> Option<&SessionId> {
        self.registry.session_of(conn)
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running()
    }

    /// Returns the number of bytes of events that are held for clients.
    #[must_use]
    pub const fn log_bytes(&self) -> usize {
        self.registry.log_bytes()
    }

    /// Answers `SESSION_STATUS`. `asker` is the identity that the connection has proved; `None` if
    /// it has proved none but must. A session of another owner is reported as not found.
    #[must_use]
    pub fn status(&self, asker: Option<Owner>, session_id: Option<&Str>) -> SessionStatus {
        let state = session_id.and_then(|id| self.registry.status(asker, id));
        SessionStatus::new(session_id.cloned(), state.unwrap_or(SessionState::NotFound))
    }

    /// Removes a closed connection. Its run goes on.
    pub fn disconnect(&mut self, conn: ConnId, now: Now) {
        self.entering.remove(&conn);
        self.moved.remove(&conn);
        if let Some(session_id) = self.registry.disconnect(conn, now.instant) {
            self.forget_if_left(&session_id);
        }
    }

    /// Notes that a connection has sent something: its session is alive.
    pub fn heard(&mut self, conn: ConnId, now: Instant) {
        self.registry.heard(conn, now);
    }

    /// Handles the outcome of a job: the record that was found, if it was to load one.
    pub fn done(&mut self, job: Job, outcome: Result<Option<Record>, StorageError>, now: Now) {
        self.jobs -= 1;
        let Job { session_id, task } = job;
        let is_fenced = outcome == Err(StorageError::Fenced);
        match task {
            Task::Enter(conn, number, request) => {
                self.loaded(&session_id);
                let is_newest = |it: &mut Entering| it.number == number;
                if self.entering.get_mut(&conn).is_some_and(is_newest) {
                    self.entering.remove(&conn);
                    match outcome {
                        Ok(record) => self.enter(conn, &request, record, now),
                        Err(_) if is_fenced => {
                            return self.reply(conn, Reply::Close(moved::elsewhere()));
                        }
                        Err(error) => {
                            let words = format!("the session is not available: {error}");
                            let error = ErrorFrame::new(words).with_retryable(true);
                            self.refuse_connect(conn, error);
                        }
                    }
                }
                self.release_unused(&session_id);
            }
            Task::Recover => {
                self.recovering -= 1;
                self.loaded(&session_id);
                self.recovered(&session_id, outcome, now);
            }
            Task::Note(_) | Task::Release => {}
            _ if is_fenced => self.give_up(&session_id, now),
            Task::Prompt(id, run, _) => self.prompt_stored(&session_id, (id, run), outcome, now),
            Task::End(run, closing, record) => {
                let outcome = outcome.map_err(|error| (error, record));
                self.end_stored(&session_id, run, closing, outcome, now);
            }
            Task::Events(run, _) => self.events_stored(run),
            Task::Save {
                number,
                is_again,
                record,
            } => {
                let outcome = outcome.map_err(|error| (error, record));
                self.saved((number, is_again), &session_id, outcome, now);
            }
        }
    }

    /// Removes expired sessions, and stores again what was not stored. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        self.registry.handle_timeout(now.instant);
        while let Some(removed) = self.registry.poll_removed() {
            self.removed(removed, now);
        }
        if self.store_again_at.is_some_and(|at| at <= now.instant) {
            self.store_again(now);
        }
        self.feed_starved(now);
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next; possibly a little early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.registry.poll_timeout(), self.store_again_at];
        deadlines.into_iter().flatten().min()
    }

    /// Returns the next job or event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HubEvent> {
        self.events.pop_front()
    }

    /// Returns the next reply and its connection.
    #[must_use]
    pub fn poll_reply(&mut self) -> Option<(ConnId, Reply)> {
        self.replies.pop_front()
    }

    /// Returns a connection with frames to take, once until there are new ones for it.
    #[must_use]
    pub fn poll_ready(&mut self) -> Option<ConnId> {
        self.registry.poll_ready()
    }

    /// Returns the next frame for a connection: an event, an OUTPUT, the ERROR of a failed run.
    /// Call it until `None` while there is room to send; a slow connection later continues where it
    /// stopped.
    ///
    /// A connection that is so slow that events are dropped before it takes them gets the current
    /// session instead, as `session_sync`.
    #[must_use]
    pub fn next_frame(&mut self, conn: ConnId, now: Now) -> Option<Text> {
        loop {
            match self.registry.next_frame(conn)? {
                Next::Event(text) | Next::Closing(text) => return Some(text),
                // Between runs the OUTPUT that follows has the session.
                Next::Gap(_) => {
                    if let Some(text) = self.snapshot(conn, now) {
                        return Some(text);
                    }
                }
            }
        }
    }

    /// Returns whether nothing is being run or stored, so that the host may end without losing
    /// work.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.registry.running() == 0 && self.jobs == 0 && self.starved.is_empty()
    }

    /// Asks the storage for something.
    fn ask_storage(&mut self, session_id: SessionId, task: Task) {
        let job = Job { session_id, task };
        if let Some(record) = job.record() {
            // A run may have added to the conversation.
            let size = len_of(record.session.as_ref());
            self.held.add(record.owner.unwrap_or(Owner::Unsigned), size);
        }
        self.jobs += 1;
        self.events.push_back(HubEvent::Store(job));
    }

    /// Asks the storage for a session.
    fn load(&mut self, session_id: SessionId, task: Task) {
        *self.loading.entry(session_id.clone()).or_default() += 1;
        self.ask_storage(session_id, task);
    }

    fn loaded(&mut self, session_id: &SessionId) {
        if let Some(count) = self.loading.get_mut(session_id) {
            *count -= 1;
            if *count == 0 {
                self.loading.remove(session_id);
            }
        }
    }

    /// Returns the session of a connection.
    fn entry_at(&mut self, conn: ConnId) -> Option<(SessionId, &mut SessionEntry)> {
        let session_id = self.registry.session_of(conn)?.clone();
        let entry = self.entries.get_mut(&session_id)?;
        Some((session_id, entry))
    }

    fn reply(&mut self, conn: ConnId, reply: Reply) {
        self.replies.push_back((conn, reply));
    }

    /// Refuses a CONNECT.
    pub(crate) fn refuse_connect(&mut self, conn: ConnId, error: ErrorFrame) {
        self.line(Line::ConnectRefused {
            why: error.message.to_string(),
        });
        self.reply(conn, Reply::Refuse(Box::new(error)));
    }

    /// Refuses an INPUT.
    pub(crate) fn refuse_input(&mut self, conn: ConnId, error: ErrorFrame) {
        self.line(Line::InputRefused {
            why: match &*error.message {
                AUTHENTICATE_FIRST => NOT_AUTHENTICATED.to_owned(),
                message => message.to_owned(),
            },
        });
        self.reply(conn, Reply::Refuse(Box::new(error)));
    }

    /// Sends a connection a frame other than an answer to CONNECT or INPUT.
    pub(crate) fn tell(&mut self, conn: ConnId, frame: &impl Serialize) {
        match encode(frame) {
            Ok(text) => self.reply(conn, Reply::Frame(text)),
            // Its own frames are JSON.
            Err(error) => drop::<Refused>(error),
        }
    }

    fn line(&mut self, line: Line) {
        self.events.push_back(HubEvent::Line(line));
    }

    /// Forgets the conversation of a session without connections and runs: the storage or the
    /// client has it.
    fn forget_if_left(&mut self, session_id: &SessionId) {
        let is_watched = |hub: &Self| {
            let session = hub.registry.session(session_id.as_str());
            session.is_some_and(|it| !it.sockets.is_empty())
        };
        let is_idle = self
            .entries
            .get(session_id)
            .is_some_and(SessionEntry::is_idle);
        if is_idle && !is_watched(self) {
            self.entries.remove(session_id);
        }
    }

    fn removed(&mut self, removed: RemovedSession, now: Now) {
        let session_id = removed.session_id.clone();
        self.end_entry(removed, now);
        self.release(&session_id);
    }

    fn end_entry(&mut self, removed: RemovedSession, now: Now) {
        let RemovedSession {
            session_id,
            why,
            sockets,
            run,
            unread,
        } = removed;
        let Some(entry) = self.entries.remove(&session_id) else {
            return;
        };
        let gone = || ErrorFrame::new("the session is over: send CONNECT again");
        for conn in entry.intake.iter().filter_map(|it| it.conn) {
            self.refuse_input(conn, gone().with_retryable(true));
        }
        if entry.work.as_ref().is_some_and(|work| work.run.is_none()) {
            self.beginning -= 1;
        }
        let ttl = self.config.result_ttl;
        let mut record = entry.record(&session_id, RecordStatus::Failed, now, ttl);
        if let (None, Some(unstored)) = (&entry.work, entry.unstored) {
            let mut again = unstored;
            (again.session, again.inputs) = (entry.copy, record.inputs);
            let task = Task::Note(again);
            return self.ask_storage(session_id, task);
        }
        let Some((run, work)) = run.zip(entry.work) else {
            return;
        };
        self.events.push_back(HubEvent::Cancel { run });
        let message = match why {
            Removed::Stuck => "the agent was stopped: it gave no sign of life",
            _ => "the agent was stopped: its session was removed",
        };
        for conn in sockets {
            self.tell(conn, &ErrorFrame::new(message));
        }
        self.line(Line::AgentError {
            message: message.to_owned(),
        });
        if !work.is_ending {
            record.session = Some(work.render(session_id.as_str(), None, now.unix));
            record.inputs.splice(..0, unread);
            let task = Task::Note(Box::new(record));
            self.ask_storage(session_id, task);
        }
    }
}

/// Prints numbers only: the contents are private.
impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("registry", &self.registry)
            .field("entries", &self.entries.len())
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
