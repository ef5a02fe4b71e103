//! What a registry is asked, answers and tells.

use rpc_core::Text;

use super::ConnId;
use super::run::{AnswerError, RunId, RunRefused, RuntimeInput};
use crate::auth::Address;
use crate::frame::SessionState;
use crate::id::SessionId;
use crate::limits::{
    ALREADY_AUTHENTICATED, ALREADY_RUNNING, AUTHENTICATE_FIRST, NOTHING_TO_INTERRUPT,
    PROMPT_REQUIRED,
};
use crate::replay::Gap;

/// Longest id that a client may bring, in bytes; who brings a longer one gets another id.
pub const MAX_SESSION_ID: usize = 256;

/// Who a session belongs to. Exhaustive: a caller has proved an address, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Whoever knows the id: the caller did not sign.
    Unsigned,
    /// The caller who proved this address.
    Key(Address),
}

impl From<Address> for Owner {
    fn from(address: Address) -> Self {
        Self::Key(address)
    }
}

/// What a CONNECT asks for, once it is known who sent it.
#[derive(Clone, Copy, Debug)]
pub struct SessionRequest<'a> {
    pub(super) owner: Owner,
    pub(super) session_id: Option<&'a str>,
    pub(super) last_msg_id: Option<&'a str>,
    pub(super) stored_owner: Option<Owner>,
}

impl<'a> SessionRequest<'a> {
    /// A new session for this caller.
    #[must_use]
    pub const fn new(owner: Owner) -> Self {
        Self {
            owner,
            session_id: None,
            last_msg_id: None,
            stored_owner: None,
        }
    }

    /// The session that the caller wants; an empty id is none.
    #[must_use]
    pub fn with_session_id(mut self, id: Option<&'a str>) -> Self {
        self.session_id = id.filter(|id| !id.is_empty());
        self
    }

    /// The event that the client showed last.
    #[must_use]
    pub const fn with_last_msg_id(mut self, id: Option<&'a str>) -> Self {
        self.last_msg_id = id;
        self
    }

    /// Who the storage says the session belongs to, for one that the registry has forgotten.
    #[must_use]
    pub const fn with_stored_owner(mut self, owner: Option<Owner>) -> Self {
        self.stored_owner = owner;
        self
    }
}

/// What a CONNECT got: send CONNECTED with it, then the frames that
/// [`next_frame`](super::SessionRegistry::next_frame) gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The session. Not always the one that was asked for: somebody else's id is answered with a
    /// new one, as if it were unknown.
    pub session_id: SessionId,
    /// Its state.
    pub status: SessionState,
    /// Events of the run that were dropped and cannot be replayed. CONNECTED should carry the
    /// session as a whole.
    pub gap: Option<Gap>,
    /// The ERROR with which the last run ended while nobody was there to see it. Send it after
    /// CONNECTED; it is not given again.
    pub failure: Option<Text>,
}

/// A CONNECT that was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket has a session, and this CONNECT is for another one, or of another caller.
    #[error("{ALREADY_AUTHENTICATED}")]
    AlreadyConnected,
    /// Every session is in use. Retrying later is safe.
    #[error("too many sessions")]
    TooManySessions,
    /// The session has as many sockets as it may have. Retrying later is safe.
    #[error("too many connections to this session")]
    TooManySockets,
}

impl ConnectError {
    /// Whether the same CONNECT may be taken later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::AlreadyConnected => false,
            Self::TooManySessions | Self::TooManySockets => true,
        }
    }
}

/// What became of an INPUT. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Accepted {
    /// It started a run: start the agent.
    Started(RunId),
    /// It waits for the running agent: send `RUNTIME_INPUT_ACK` with the id of the input.
    Queued(RunId),
}

/// An INPUT that was refused. Nothing changed, and nothing will be done with it. The text is that of
/// the ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The socket has no session (any more). Retry after CONNECT.
    #[error("{AUTHENTICATE_FIRST}")]
    NotConnected,
    /// There is no text. Retrying fails again.
    #[error("{PROMPT_REQUIRED}")]
    NoPrompt,
    /// The running agent does not take it. Retry when the run is over.
    #[error("{}", running_words(*.0))]
    Running(RunRefused),
    /// Too many agents run. Retry later.
    #[error("too many agents are running")]
    TooManyRuns,
}

/// Known hosts have words for a run that takes nothing more, and bound nothing.
fn running_words(why: RunRefused) -> String {
    match why {
        RunRefused::Full => why.to_string(),
        _ => ALREADY_RUNNING.to_owned(),
    }
}

impl InputError {
    /// Whether the same INPUT may be taken later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::NotConnected | Self::NoPrompt => false,
            Self::Running(_) | Self::TooManyRuns => true,
        }
    }
}

/// A frame for a running agent that was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The socket has no session (any more).
    #[error("{AUTHENTICATE_FIRST}")]
    NotConnected,
    /// There is nothing to interrupt.
    #[error("{NOTHING_TO_INTERRUPT}")]
    Idle,
    /// The answer belongs to no open question.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// A run that is over: it finished, failed or was given up. Whoever works on it should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is over")]
pub struct RunOver;

/// Why a session was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Removed {
    /// Nobody used it for too long.
    Idle,
    /// Its agent and its clients were silent for too long.
    Stuck,
    /// It made room for a new one.
    Evicted,
    /// [`remove`](super::SessionRegistry::remove) was called.
    Asked,
}

/// What a registry tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryEvent {
    /// A session was removed. Its sockets stay open and may send CONNECT again.
    Removed {
        /// The session.
        session_id: SessionId,
        /// Who it belonged to.
        owner: Owner,
        /// Why.
        why: Removed,
        /// The sockets that it had. If an agent ran, send them an ERROR.
        sockets: Vec<ConnId>,
        /// The run that has to be stopped.
        run: Option<RunId>,
        /// Inputs that were acknowledged and not read.
        unread: Vec<RuntimeInput>,
    },
}
