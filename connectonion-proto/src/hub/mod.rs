//! The sessions of a host, without IO: [`Hub`]. It knows who owns and who watches which session, how
//! long it lives, and what is being run, stored and sent: see [`session`](crate::session).
//!
//! A hub reads no clock and owns no sockets, agents or files: after each call, carry out every
//! [`poll_event`](Hub::poll_event), show every [`poll_line`](Hub::poll_line), send every connection its
//! [`poll_reply`](Hub::poll_reply) and, when [`poll_ready`](Hub::poll_ready) names it, its
//! [`next_frame`](Hub::next_frame)s, and check [`poll_timeout`](Hub::poll_timeout).

mod agent;
mod bytes;
mod command;
mod config;
mod connect;
mod conversation;
mod end;
mod event;
mod intake;
mod job;
mod prompt;
mod recover;
mod removed;
mod run;
mod sockets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use rpc_core::encode::encode;
use rpc_core::{Instant, Json, PendingMap, Text, UniqueBits};
use serde::Serialize;

pub use config::HubConfig;
#[allow(unreachable_pub, reason = "`net` has it, with its features")]
pub use event::AppError;
pub use event::{ConnId, ConnectRequest, HubEvent, Now, Owner, Reply, RunId};
pub use job::Job;
#[cfg(feature = "server")]
pub(crate) use job::Request;
#[allow(unreachable_pub, reason = "`net` has it, with its features")]
pub use prompt::Prompt;

use crate::console::{self, NOT_AUTHENTICATED};
use crate::frame::{ErrorFrame, SessionState, SessionStatus};
use crate::id::{EventId, SessionId};
use crate::limits::AUTHENTICATE_FIRST;
use crate::replay::{Cursor, EventLog};
pub use crate::replay::{Entry, LogLimits};
use crate::storage::{Record, RecordStatus};
use bytes::Reserved;
use job::Connecting;
use run::{Phase, Run};

/// The longest session id of a client, in bytes; a longer one is replaced.
pub(crate) const MAX_SESSION_ID: usize = 256;

/// An interrupted run that begins again: its prompt is the last message of the conversation already,
/// and the log has its events.
struct Rerun {
    /// How many times it has begun again, this one included.
    count: u32,
    /// The event that has reported the prompt before, if clients can still see it.
    prompt: Option<Text>,
}

#[derive(Default)]
struct Session {
    owner: Owner,
    /// From where its last connection has come, if that is known.
    caller: Option<IpAddr>,
    /// In order of arrival.
    sockets: Vec<ConnId>,
    log: EventLog,
    /// Whether it has ever had a run.
    used: bool,
    /// The ERROR of the last run, until a socket has got it, and the position after it.
    failure: Option<(Cursor, Text)>,
    /// Its position among the sessions that may be evicted.
    parked: Option<u64>,
    /// Whether the conversation is known here. Without sockets and runs it is forgotten, or to make room:
    /// the storage or the client has it.
    is_known: bool,
    /// The conversation between runs.
    copy: Option<Json>,
    /// Whether it came from the client, and is not stored.
    is_handed: bool,
    /// The bytes of the conversation that the storage has in memory.
    stored: usize,
    /// Those of one that made room, until it is recalled.
    away: usize,
    /// Whether it is being recalled for a prompt.
    is_recalled: bool,
    /// Whether the conversation is nowhere else, because storing it failed.
    is_only_here: bool,
    /// The last record, if it was not stored and may be stored later.
    unstored: Option<Box<Record>>,
    /// The copy was changed between runs and is not being stored.
    is_unsaved: bool,
    /// The number of the job that stores changes between runs.
    saving: Option<u64>,
    /// The current run, or the one that starts when its prompt is stored.
    run: Option<Box<Run>>,
    /// The prompts that no stored conversation has, in order: those that the run has read, those that
    /// were acknowledged, and those that are not stored yet.
    prompts: VecDeque<Prompt>,
    /// How many of them the run has read.
    read: usize,
    /// The one among them that is being stored.
    storing: Option<EventId>,
    /// The interrupted run that the first of them begins again.
    rerun: Option<Rerun>,
}

impl Session {
    /// Returns the run that has started.
    fn started(&self) -> Option<&Run> {
        let run = self.run.as_deref();
        run.filter(|run| run.phase != Phase::Beginning)
    }

    /// Returns the run whose agent is at work.
    fn running(&mut self) -> Option<&mut Run> {
        let run = self.run.as_deref_mut();
        run.filter(|run| run.is_running())
    }

    /// Returns whether an interrupted run begins again, or has, and is not over.
    fn is_rerun(&self) -> bool {
        let run = self.run.as_deref();
        self.rerun.is_some() || run.is_some_and(|run| run.reruns > 0 && run.phase != Phase::Ending)
    }

    /// Returns whether the result of the run is being stored.
    fn is_ending(&self) -> bool {
        matches!(&self.run, Some(run) if run.phase == Phase::Ending)
    }

    /// Whether nothing is run, waits or is being stored.
    fn is_idle(&self) -> bool {
        self.run.is_none() && self.prompts.is_empty() && self.saving.is_none()
    }

    /// Returns the session as it was before the run, for a client without its events.
    fn settled(&self) -> Option<&Json> {
        match self.started() {
            Some(run) => run.base(),
            None => self.copy.as_ref(),
        }
    }

    /// Returns the record of the current run, or of the session between two. Acknowledged prompts that no
    /// run has read are in every record that is stored while they wait, because the last one counts.
    fn record(&self, id: &SessionId, status: RecordStatus, now: Now, ttl: Duration) -> Box<Record> {
        let run = self.run.as_ref();
        let prompt = run.map(|run| run.prompt.text.clone());
        let began = run.map_or(now.unix, |run| run.began);
        let mut record = Record::new(id.as_str(), status, prompt.unwrap_or_default(), began);
        record.owner = Some(self.owner);
        record.expires = Some(began + ttl.as_secs_f64());
        record.inputs = self.unread().cloned().collect();
        Box::new(record)
    }

    /// Returns the prompts that were acknowledged and not read.
    fn unread(&self) -> impl Iterator<Item = &Prompt> {
        let unread = self.prompts.iter().skip(self.read);
        unread.filter(|it| it.conn.is_none())
    }

    /// Takes them: the agent reads them now.
    fn take_unread(&mut self) -> Vec<Prompt> {
        let unread: Vec<_> = self.unread().cloned().collect();
        self.read += unread.len();
        unread
    }

    /// Returns how long it may be silent.
    fn wait(&self, config: &HubConfig) -> Duration {
        if self.started().is_some() {
            config.stuck_timeout
        } else if self.sockets.is_empty() {
            config.grace
        } else {
            config.idle_timeout
        }
    }
}

/// A socket of a session.
struct ConnectionEntry {
    session: SessionId,
    cursor: Cursor,
    /// Whether it is queued in `ready`.
    is_ready: bool,
}

/// The sessions of a host, with their sockets, runs, prompts and jobs for the storage.
pub struct Hub {
    config: HubConfig,
    /// With the time when each ends.
    sessions: PendingMap<SessionId, Session>,
    connections: HashMap<ConnId, ConnectionEntry>,
    /// All runs, also those that start when their prompt is stored.
    runs: HashMap<RunId, SessionId>,
    /// The last number of a run, of a job that may be overtaken, or of a parked session.
    last_number: u64,
    /// The sessions without sockets and runs, oldest first.
    parked: BTreeMap<u64, SessionId>,
    /// The number of jobs that are not done.
    jobs: usize,
    /// The sessions that are being loaded, and how often.
    loading: HashMap<SessionId, usize>,
    /// The number of sessions that are being taken over.
    recovering: usize,
    /// Connections whose CONNECT waits for the storage.
    connecting: HashMap<ConnId, Connecting>,
    /// The bytes of files that are being saved, with where they come from.
    uploading: HashMap<ConnId, (Option<IpAddr>, usize)>,
    /// Connections that are being closed because this host does not serve their session.
    moved: HashSet<ConnId>,
    /// Sessions with acknowledged prompts that wait until fewer agents run.
    waiting_for_room: VecDeque<SessionId>,
    /// When to store again what was not stored.
    store_again_at: Option<Instant>,
    /// The bytes of conversations.
    reserved: Reserved,
    /// The bytes of all logs.
    log_bytes: usize,
    ids: UniqueBits,
    ready: VecDeque<ConnId>,
    replies: VecDeque<(ConnId, Reply)>,
    lines: VecDeque<String>,
    events: VecDeque<HubEvent>,
}

impl Hub {
    /// Creates a hub without sessions. The seed should be random: it determines the ids of events
    /// and inputs.
    pub fn new(config: HubConfig, seed: u128, now: Instant) -> Self {
        Self {
            sessions: PendingMap::new(config.max_sessions, now),
            config,
            connections: HashMap::new(),
            runs: HashMap::new(),
            last_number: 0,
            parked: BTreeMap::new(),
            jobs: 0,
            loading: HashMap::new(),
            recovering: 0,
            connecting: HashMap::new(),
            uploading: HashMap::new(),
            moved: HashSet::new(),
            waiting_for_room: VecDeque::new(),
            store_again_at: None,
            reserved: Reserved::default(),
            log_bytes: 0,
            ids: UniqueBits::new(seed),
            ready: VecDeque::new(),
            replies: VecDeque::new(),
            lines: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the session of a connection.
    pub fn session_of(&self, conn: ConnId) -> Option<&SessionId> {
        self.connections.get(&conn).map(|entry| &entry.session)
    }

    /// Returns the number of runs, with those whose prompt is being stored.
    pub fn running(&self) -> usize {
        self.runs.len()
    }

    /// Returns the number of bytes of events that are held for clients.
    pub const fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Answers `SESSION_STATUS`. `asker` is the identity that the connection has proved; `None` if
    /// it has proved none but must. A session of another owner is reported as not found.
    pub fn status(&self, asker: Option<Owner>, session_id: Option<&SessionId>) -> SessionStatus {
        let session = session_id.and_then(|id| self.sessions.get(id.as_str()));
        let standing = match session.filter(|it| asker == Some(it.owner)) {
            Some(session) if session.started().is_some() => SessionState::Running,
            Some(_) => SessionState::Connected,
            None => SessionState::NotFound,
        };
        SessionStatus::new(session_id.cloned(), standing)
    }

    /// Removes expired sessions, and stores again what was not stored. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some((id, session)) = self.sessions.pop_expired(now.instant) {
            let why = "the agent was stopped: it gave no sign of life";
            self.end_session(&id, session, why, now);
        }
        if self.store_again_at.is_some_and(|at| at <= now.instant) {
            self.store_again(now);
        }
        self.feed_starved(now);
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next; possibly a little early.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.sessions.poll_timeout(), self.store_again_at];
        deadlines.into_iter().flatten().min()
    }

    /// Returns the next job or event.
    pub fn poll_event(&mut self) -> Option<HubEvent> {
        self.events.pop_front()
    }

    /// Returns the next reply and its connection.
    pub fn poll_reply(&mut self) -> Option<(ConnId, Reply)> {
        self.replies.pop_front()
    }

    /// Returns the next line for the console.
    pub fn poll_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Returns whether nothing is being run or stored, so that the host may end without losing
    /// work.
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.jobs == 0 && self.waiting_for_room.is_empty()
    }

    /// Returns whether there are [events](Self::poll_event).
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the session of a connection.
    fn session_at(&mut self, conn: ConnId) -> Option<(SessionId, &mut Session)> {
        let id = self.session_of(conn)?.clone();
        let session = self.sessions.get_mut(id.as_str())?;
        Some((id, session))
    }

    /// Returns the session of a run whose agent is at work.
    fn session_of_run(&mut self, run: RunId) -> Result<(&SessionId, &mut Session), AppError> {
        let id = self.runs.get(&run).ok_or(AppError::Over)?;
        let session = self.sessions.get_mut(id.as_str());
        let session = session.filter(|it| it.run.as_ref().is_some_and(|run| run.is_running()));
        Ok((id, session.ok_or(AppError::Over)?))
    }

    /// Returns a run whose agent is at work, and its session's id.
    pub(crate) fn run_mut(&mut self, run: RunId) -> Result<(&SessionId, &mut Run), AppError> {
        let (id, session) = self.session_of_run(run)?;
        Ok((id, session.running().ok_or(AppError::Over)?))
    }

    fn reply(&mut self, conn: ConnId, reply: Reply) {
        self.replies.push_back((conn, reply));
    }

    /// Refuses a CONNECT.
    pub(crate) fn refuse_connect(&mut self, conn: ConnId, error: impl Into<Box<ErrorFrame>>) {
        let error = error.into();
        self.line(console::connect_refused(&error.message));
        self.reply(conn, Reply::Refuse(error));
    }

    /// Refuses an INPUT.
    pub(crate) fn refuse_input(&mut self, conn: ConnId, error: impl Into<Box<ErrorFrame>>) {
        let error = error.into();
        let why = match &*error.message {
            AUTHENTICATE_FIRST => NOT_AUTHENTICATED,
            message => message,
        };
        self.line(console::input_refused(why));
        self.reply(conn, Reply::Refuse(error));
    }

    /// Sends a connection a frame other than an answer to CONNECT or INPUT.
    pub(crate) fn send_to(&mut self, conn: ConnId, frame: &impl Serialize) {
        // Its own frames are JSON.
        if let Ok(text) = encode(frame) {
            self.reply(conn, Reply::Frame(text));
        }
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push_back(line.into());
    }

    /// Restarts a session's time, and notes whether it may be evicted.
    fn evict_if_idle(&mut self, id: &SessionId, now: Instant) {
        let next = self.next_number();
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let is_left = session.started().is_none() && session.sockets.is_empty();
        match session.parked {
            None if is_left => {
                session.parked = Some(next);
                self.parked.insert(next, id.clone());
            }
            Some(place) if !is_left => {
                session.parked = None;
                self.parked.remove(&place);
            }
            _ => {}
        }
        let wait = session.wait(&self.config);
        self.sessions.extend(id.as_str(), now.checked_add(wait));
    }

    /// Frees what is no longer needed: events that all sockets have read, and the conversation of a session
    /// without sockets and runs.
    fn free_unneeded(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let has_read = |conn| {
            let entry: Option<&ConnectionEntry> = self.connections.get(conn);
            entry.is_none_or(|entry| session.log.is_read(entry.cursor))
        };
        let is_over = session.started().is_none() && session.rerun.is_none();
        if is_over && session.sockets.iter().all(has_read) {
            self.log_bytes -= session.log.bytes();
            session.log.clear();
        }
        let is_stored = !session.is_only_here && session.unstored.is_none();
        if session.sockets.is_empty() && session.is_idle() && is_stored {
            session.is_known = false;
            session.copy = None;
            session.is_handed = false;
        }
    }
}

// Prints numbers only: the contents are private.
rpc_core::debug_fields!([] Hub, this => {
    sessions: this.sessions.len(),
    sockets: this.connections.len(),
    running: this.runs.len(),
    log_bytes: this.log_bytes,
    jobs: this.jobs,
});
