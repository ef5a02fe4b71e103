//! The sessions of a host: who owns them, how long they live, and what bounds them.
//!
//! A [hub](crate::hub) keeps them in a registry.
//!
//! # The life of a session
//!
//! ```text
//!             CONNECT                INPUT
//!      (new) ────────► connected ─────────────► running
//!                        │   ▲  OUTPUT or ERROR    │
//!     nobody for 10 min  │   └─────────────────────┤ 1 h of silence
//!                        ▼                         ▼
//!                     removed                   removed
//! ```
//!
//! - A session without a run is removed when its sockets have been silent for
//!   [`idle_timeout`](RegistryConfig::idle_timeout), or when it has been without a socket for
//!   [`grace`](RegistryConfig::grace). Any frame restarts the time, and so do the end of a run and
//!   the loss of the last socket.
//! - A run is given up after [`stuck_timeout`](RegistryConfig::stuck_timeout) without an event of
//!   its agent and without a frame of a client. It goes on without any socket.
//! - However a run ends, its session can be used again at once, also after a failure.
//! - A removed session is not lost: the client has its conversation, and so has the
//!   [storage](crate::storage).
//!
//! # Access
//!
//! - A session belongs to the caller who started it. Another caller who asks for it gets a new one
//!   with another id, and nothing of the first; [`status`](crate::hub::Hub::status) reports it as
//!   not found. This still reveals that the id is taken, because a free one is given to whoever
//!   asks for it, as the specification requires. So ids should be hard to guess, as those made here
//!   are.
//! - Several sockets of its owner may watch a session. All see every event and every OUTPUT, also
//!   of runs that another socket started.
//! - A socket acts on the session of its CONNECT until the socket closes or the session is removed;
//!   an agent acts on its run until it is over. Numbers of connections and runs are never reused,
//!   so a late call has no effect.
//!
//! # Bounds
//!
//! Sessions, runs, sockets of a session, events, waiting inputs and open questions: see
//! [`RegistryConfig`]. Frames are held once, in the session's log, and every socket
//! [takes](crate::hub::Hub::next_frame) them at its own speed; a socket that is too slow gets the whole
//! session instead of those that it has missed.

mod agent;
mod config;
mod event;
mod prompt;
mod run;
mod sockets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

use rpc_core::{Instant, PendingMap, Text};

pub use config::RegistryConfig;
pub(crate) use event::{
    Accepted, AgentError, InputError, MAX_SESSION_ID, Removed, RemovedSession, SessionRequest,
};
pub use event::{Owner, RunOver};
pub use prompt::{Prompt, SavedFile};
pub use run::{Finished, RunId, RunLimits};
pub(crate) use run::{Run, RunRefused};

use crate::frame::SessionState;
use crate::id::SessionId;
use crate::replay::{Cursor, EventLog};
pub use crate::replay::{Entry, LogLimits};

/// A connection, numbered by the application. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionInfo<'r> {
    /// Its owner.
    pub(crate) owner: Owner,
    /// Its state: never [`SessionState::New`].
    pub(crate) status: SessionState,
    /// Its sockets.
    pub(crate) sockets: &'r [ConnId],
    /// The current run.
    pub(crate) run: Option<RunId>,
}

struct Session {
    owner: Owner,
    /// In order of arrival.
    sockets: Vec<ConnId>,
    run: Option<(RunId, Box<Run>)>,
    /// Whether it has ever had a run.
    used: bool,
    /// Whether the log has the events of an interrupted run, which the next input begins again.
    begins_again: bool,
    log: EventLog,
    /// The ERROR of the last run, until a socket has got it, and the position after it.
    failure: Option<(Cursor, Text)>,
    /// Its position among the sessions that may be evicted.
    parked: Option<u64>,
}

impl Session {
    fn info(&self) -> SessionInfo<'_> {
        SessionInfo {
            owner: self.owner,
            status: self.status(),
            sockets: &self.sockets,
            run: self.run.as_ref().map(|(run, _)| *run),
        }
    }

    const fn status(&self) -> SessionState {
        match self.run {
            Some(_) => SessionState::Running,
            None => SessionState::Connected,
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

/// The sessions of a server, with their sockets and runs.
pub(crate) struct SessionRegistry {
    config: RegistryConfig,
    /// With the time when each ends.
    sessions: PendingMap<SessionId, Session>,
    connections: HashMap<ConnId, ConnectionEntry>,
    runs: HashMap<RunId, SessionId>,
    next_run: u64,
    /// The sessions without sockets and runs, oldest first.
    parked: BTreeMap<u64, SessionId>,
    next_parked: u64,
    /// The bytes of all logs.
    log_bytes: usize,
    ready: VecDeque<ConnId>,
    removed: VecDeque<RemovedSession>,
}

impl SessionRegistry {
    /// Creates a registry without sessions. Times are counted from `now`.
    #[must_use]
    pub(crate) fn new(config: RegistryConfig, now: Instant) -> Self {
        Self {
            sessions: PendingMap::new(config.max_sessions, 0, now),
            config,
            connections: HashMap::new(),
            runs: HashMap::new(),
            next_run: 0,
            parked: BTreeMap::new(),
            next_parked: 0,
            log_bytes: 0,
            ready: VecDeque::new(),
            removed: VecDeque::new(),
        }
    }

    /// Returns the state of a session for a `SESSION_STATUS`; `None` ("not found") if it does not
    /// exist or belongs to another caller. `asker` is `None` for a socket that has proved nothing
    /// where proof is required.
    #[must_use]
    pub(crate) fn status(&self, asker: Option<Owner>, session_id: &str) -> Option<SessionState> {
        let session = self.sessions.get(session_id)?;
        (asker == Some(session.owner)).then(|| session.status())
    }

    /// Returns the state of a session.
    #[must_use]
    pub(crate) fn session(&self, session_id: &str) -> Option<SessionInfo<'_>> {
        self.sessions.get(session_id).map(Session::info)
    }

    /// Returns all sessions, in no particular order.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = (&SessionId, SessionInfo<'_>)> {
        let sessions = self.sessions.iter();
        sessions.map(|(id, session)| (id, session.info()))
    }

    /// Returns the session of a socket.
    #[must_use]
    pub(crate) fn session_of(&self, conn: ConnId) -> Option<&SessionId> {
        self.connections.get(&conn).map(|entry| &entry.session)
    }

    /// Returns the number of sessions.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of runs.
    #[must_use]
    pub(crate) fn running(&self) -> usize {
        self.runs.len()
    }

    /// Returns the number of bytes of events held.
    #[must_use]
    pub(crate) const fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Removes a session and its run. Returns `false` if it does not exist.
    pub(crate) fn remove(&mut self, session_id: &str) -> bool {
        let id = SessionId::from(session_id);
        let Some(session) = self.sessions.complete(&id).live() else {
            return false;
        };
        self.end(id, session, Removed::Asked);
        true
    }

    /// Removes expired sessions. A call before [`poll_timeout`](Self::poll_timeout) does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((id, session)) = self.sessions.pop_expired(now) {
            let why = match session.run {
                Some(_) => Removed::Stuck,
                None => Removed::Idle,
            };
            self.end(id, session, why);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next; possibly a little early,
    /// never late. `None` if there is no session.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.sessions.poll_timeout()
    }

    /// Returns the next session that was removed.
    pub(crate) fn poll_removed(&mut self) -> Option<RemovedSession> {
        self.removed.pop_front()
    }

    /// Cleans up after a removed session, and reports it.
    fn end(&mut self, session_id: SessionId, mut session: Session, why: Removed) {
        for conn in &session.sockets {
            self.connections.remove(conn);
        }
        if let Some(place) = session.parked {
            self.parked.remove(&place);
        }
        self.log_bytes -= session.log.bytes();
        let run = session.run.take();
        if let Some((run, _)) = &run {
            self.runs.remove(run);
        }
        let (run, unread) = run.map(|(id, mut over)| (id, over.take_inputs())).unzip();
        self.removed.push_back(RemovedSession {
            session_id,
            why,
            sockets: session.sockets,
            run,
            unread: unread.unwrap_or_default(),
        });
    }

    /// Restarts a session's time, and notes whether it may be evicted.
    fn rest(&mut self, id: &SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let is_left = session.run.is_none() && session.sockets.is_empty();
        match session.parked {
            None if is_left => {
                session.parked = Some(self.next_parked);
                self.parked.insert(self.next_parked, id.clone());
                self.next_parked += 1;
            }
            Some(place) if !is_left => {
                session.parked = None;
                self.parked.remove(&place);
            }
            _ => {}
        }
        let wait = self.config.wait(session);
        self.sessions.extend(id.as_str(), now.checked_add(wait));
    }

    /// Frees the memory of events that all sockets have read.
    fn tidy(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let has_read = |conn| {
            let entry: Option<&ConnectionEntry> = self.connections.get(conn);
            entry.is_none_or(|entry| session.log.is_read(entry.cursor))
        };
        let is_over = session.run.is_none() && !session.begins_again;
        if is_over && session.sockets.iter().all(has_read) {
            self.log_bytes -= session.log.bytes();
            session.log.clear();
        }
    }
}

impl RegistryConfig {
    /// Returns how long a session in this state may be silent.
    fn wait(&self, session: &Session) -> Duration {
        if session.run.is_some() {
            self.stuck_timeout
        } else if session.sockets.is_empty() {
            self.grace
        } else {
            self.idle_timeout
        }
    }
}

/// Prints numbers only: the contents are private.
impl fmt::Debug for SessionRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRegistry")
            .field("sessions", &self.sessions.len())
            .field("sockets", &self.connections.len())
            .field("running", &self.runs.len())
            .field("log_bytes", &self.log_bytes)
            .finish_non_exhaustive()
    }
}
