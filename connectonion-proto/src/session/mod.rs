//! The sessions of a server: [`SessionRegistry`]. Who owns them, which sockets watch them, what
//! runs in them, and when they end.
//!
//! A registry does no IO, reads no clock and makes no frames. It serves many connections, so it is
//! no [`Machine`](rpc_core::Machine), but it has the same verbs: put something in, then take
//! [`poll_event`](SessionRegistry::poll_event) and [`poll_ready`](SessionRegistry::poll_ready) until
//! both give nothing, then look at [`poll_timeout`](SessionRegistry::poll_timeout).
//!
//! ```
//! use std::time::Instant;
//! use connectonion_proto::replay::{Entry, Next};
//! use connectonion_proto::frame::SessionState;
//! use connectonion_proto::session::{
//!     Accepted, ConnId, SessionRequest, Finish, Owner, RegistryConfig, RuntimeInput, SessionRegistry,
//! };
//!
//! let now = Instant::now();
//! let mut registry = SessionRegistry::new(RegistryConfig::default(), now);
//! let (conn, owner) = (ConnId(1), Owner::Key([7; 32].into()));
//! let joined = registry.connect(conn, SessionRequest::new(owner), 0x5eed, now)?;
//! assert_eq!(joined.status, SessionState::New);
//!
//! let input = || RuntimeInput::new("r1", "hello");
//! let Accepted::Started(run) = registry.input(conn, input(), now)? else { panic!() };
//! registry.event(run, Entry::event(r#"{"type":"thinking"}"#.into()), now)?;
//! assert_eq!(registry.finish(run, r#"{"type":"OUTPUT"}"#.into(), now)?, Finish::Done);
//!
//! assert_eq!(registry.poll_ready(), Some(conn));
//! assert!(matches!(registry.next_frame(conn), Some(Next::Event(_))));
//! assert!(matches!(registry.next_frame(conn), Some(Next::Closing(_))));
//! assert_eq!(registry.next_frame(conn), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A session's life
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
//! - A session without a run is removed when its sockets have said nothing for
//!   [`idle_timeout`](RegistryConfig::idle_timeout), or when it has been without a socket for
//!   [`grace`](RegistryConfig::grace). Any frame is a sign of life, and so are the end of a run and the
//!   going of the last socket.
//! - A run is given up after [`stuck_timeout`](RegistryConfig::stuck_timeout) without an event of its
//!   agent and without a word of a client. It runs on without any socket.
//! - However a run ends, the session can be used again at once. A failed one, too.
//! - A session that was removed is not lost: its conversation is with the client, and in the
//!   [storage](crate::storage).
//!
//! # Who may do what
//!
//! - A session belongs to the caller who began it. Whoever asks for somebody else's gets a new one,
//!   under another id, and nothing of the first; [`status`](SessionRegistry::status) does not know it.
//!   That an id is somebody else's can be told all the same, because a free one is given to whoever
//!   asks for it, as the specification wants. So ids should be hard to guess, as those made here are.
//! - Several sockets of its owner may watch a session. All see every event and every OUTPUT, also
//!   of runs that another one began.
//! - A socket acts on the session that its CONNECT got, until it is gone or the session is removed;
//!   an agent acts on its run, until it is over. Connections and runs have numbers that are never
//!   used again, so whoever is late reaches nothing.
//!
//! # What is bounded
//!
//! Sessions, runs, sockets of a session, events, inputs and questions that wait: see
//! [`RegistryConfig`]. Frames are held once, in the session's log, and every socket
//! [takes](SessionRegistry::next_frame) them at its own speed; a socket that is too slow finds a gap.

mod agent;
mod config;
mod event;
mod run;
mod sockets;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use rpc_core::{PendingMap, Text};

pub use config::RegistryConfig;
pub use event::{
    Accepted, AgentError, ConnectError, InputError, Joined, MAX_SESSION_ID, Owner, RegistryEvent,
    Removed, RunOver, SessionRequest,
};
pub use run::{AnswerError, Finish, RequestKind, Run, RunId, RunLimits, RunRefused, RuntimeInput};

use crate::frame::SessionState;
use crate::id::SessionId;
use crate::replay::{Cursor, EventLog};

/// A connection, numbered by the application. A number is not used again for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// What is known of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo<'r> {
    /// Who it belongs to.
    pub owner: Owner,
    /// Its state: never [`SessionState::New`].
    pub status: SessionState,
    /// The sockets that watch it.
    pub sockets: &'r [ConnId],
    /// What runs.
    pub run: Option<RunId>,
}

struct Session {
    owner: Owner,
    /// In the order of coming.
    sockets: Vec<ConnId>,
    run: Option<(RunId, Box<Run>)>,
    /// Whether it has ever had a run.
    used: bool,
    log: EventLog,
    /// The ERROR of the last run, until somebody has got it, and the place after it.
    failure: Option<(Cursor, Text)>,
    /// Its place among those that may be evicted.
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

/// A socket at its session.
struct ConnectionEntry {
    session: SessionId,
    cursor: Cursor,
    /// Whether it waits in `ready`.
    is_ready: bool,
}

/// The sessions, their sockets and runs.
pub struct SessionRegistry {
    config: RegistryConfig,
    /// With the time when each ends.
    sessions: PendingMap<SessionId, Session>,
    connections: HashMap<ConnId, ConnectionEntry>,
    runs: HashMap<RunId, SessionId>,
    next_run: u64,
    /// Sessions without socket and run, in the order in which they became so.
    parked: BTreeMap<u64, SessionId>,
    next_parked: u64,
    /// Bytes of all logs.
    log_bytes: usize,
    ready: VecDeque<ConnId>,
    events: VecDeque<RegistryEvent>,
}

impl SessionRegistry {
    /// A registry without sessions. Times are counted from `now`.
    #[must_use]
    pub fn new(config: RegistryConfig, now: Instant) -> Self {
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
            events: VecDeque::new(),
        }
    }

    /// What somebody who asks may know of a session: `None` ("not found") if it is not there or
    /// belongs to somebody else. `asker` is `None` for a socket that has proved nothing where proof is
    /// needed. The answer is `SESSION_STATUS`.
    #[must_use]
    pub fn status(&self, asker: Option<Owner>, session_id: &str) -> Option<SessionState> {
        let session = self.sessions.get(session_id)?;
        (asker == Some(session.owner)).then(|| session.status())
    }

    /// What is known of a session.
    #[must_use]
    pub fn session(&self, session_id: &str) -> Option<SessionInfo<'_>> {
        self.sessions.get(session_id).map(Session::info)
    }

    /// All sessions, in no particular order.
    pub fn sessions(&self) -> impl Iterator<Item = (&SessionId, SessionInfo<'_>)> {
        let sessions = self.sessions.iter();
        sessions.map(|(id, session)| (id, session.info()))
    }

    /// The session that a socket is at.
    #[must_use]
    pub fn session_of(&self, conn: ConnId) -> Option<&SessionId> {
        self.connections.get(&conn).map(|entry| &entry.session)
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many runs there are.
    #[must_use]
    pub fn running(&self) -> usize {
        self.runs.len()
    }

    /// How many bytes of events are held.
    #[must_use]
    pub const fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Removes a session, with its run; `false` if there is none.
    pub fn remove(&mut self, session_id: &str) -> bool {
        let id = SessionId::from(session_id);
        let Some(session) = self.sessions.complete(&id).live() else {
            return false;
        };
        self.removed(id, session, Removed::Asked);
        true
    }

    /// Removes the sessions whose time is over. A call before [`poll_timeout`](Self::poll_timeout)
    /// does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((id, session)) = self.sessions.pop_expired(now) {
            let why = match session.run {
                Some(_) => Removed::Stuck,
                None => Removed::Idle,
            };
            self.removed(id, session, why);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) should be called next; perhaps a little early,
    /// never late. `None` if there is no session.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.sessions.poll_timeout()
    }

    /// The next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<RegistryEvent> {
        self.events.pop_front()
    }

    /// Ends what a session that was taken out leaves behind, and tells.
    fn removed(&mut self, session_id: SessionId, mut session: Session, why: Removed) {
        for conn in &session.sockets {
            self.connections.remove(conn);
        }
        if let Some(place) = session.parked {
            self.parked.remove(&place);
        }
        self.log_bytes -= session.log.bytes();
        let (mut run, mut unread) = (None, Vec::new());
        if let Some((id, mut over)) = session.run.take() {
            self.runs.remove(&id);
            run = Some(id);
            unread = over.take_inputs();
        }
        self.events.push_back(RegistryEvent::Removed {
            session_id,
            owner: session.owner,
            why,
            sockets: session.sockets,
            run,
            unread,
        });
    }

    /// Counts a session's time from now on, and notes whether it may be evicted.
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

    /// Gives back the memory of events that everybody has read.
    fn tidy(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let has_read = |conn| {
            let entry: Option<&ConnectionEntry> = self.connections.get(conn);
            entry.is_none_or(|entry| session.log.is_read(entry.cursor))
        };
        if session.run.is_none() && session.sockets.iter().all(has_read) {
            self.log_bytes -= session.log.bytes();
            session.log.clear();
        }
    }
}

impl RegistryConfig {
    /// How long a session in this state may be silent.
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

/// Prints numbers only: the rest is private text.
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
