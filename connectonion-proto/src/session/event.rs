//! The requests, replies and events of a registry.

use rpc_core::Text;

use super::ConnId;
use super::prompt::Prompt;
use super::run::{AnswerError, RunId, RunRefused};
use crate::auth::Address;
use crate::frame::SessionState;
use crate::id::SessionId;
use crate::limits::{
    ALREADY_AUTHENTICATED, ALREADY_RUNNING, AUTHENTICATE_FIRST, NOTHING_TO_INTERRUPT,
    PROMPT_REQUIRED,
};
use crate::replay::Gap;

/// The longest session id of a client, in bytes; a longer one is replaced.
pub(crate) const MAX_SESSION_ID: usize = 256;

/// The owner of a session. Exhaustive: a caller has proved an address, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Anyone who knows the id: the caller did not sign.
    Unsigned,
    /// The caller who proved this address.
    Key(Address),
}

impl From<Address> for Owner {
    fn from(address: Address) -> Self {
        Self::Key(address)
    }
}

/// The request of a CONNECT whose sender is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRequest<'a> {
    pub(crate) owner: Owner,
    /// The requested session; an empty id counts as none.
    pub(crate) session_id: Option<&'a str>,
    /// The last event that the client has shown.
    pub(crate) last_msg_id: Option<&'a str>,
    /// The owner according to the storage, for a session that the registry has forgotten.
    pub(crate) stored_owner: Option<Owner>,
}

/// The result of a CONNECT: send CONNECTED with it, then the frames from
/// [`next_frame`](super::SessionRegistry::next_frame).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The session. It may differ from the requested one: the id of another caller's session is
    /// treated as unknown and replaced with a new one.
    pub(crate) session_id: SessionId,
    /// The state of the session.
    pub(crate) status: SessionState,
    /// The events of the run that were dropped and cannot be replayed. CONNECTED should then carry
    /// the whole session.
    pub(crate) gap: Option<Gap>,
    /// The ERROR that ended the last run while no socket was connected. Send it after CONNECTED; it
    /// is returned only once.
    pub(crate) failure: Option<Text>,
}

/// Why a CONNECT was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The socket already has a session, and this CONNECT is for another one, or of another caller.
    #[error("{ALREADY_AUTHENTICATED}")]
    AlreadyConnected,
    /// Every session is in use. Retrying later is safe.
    #[error("too many sessions")]
    TooManySessions,
    /// The session has the maximum number of sockets. Retrying later is safe.
    #[error("too many connections to this session")]
    TooManySockets,
}

impl ConnectError {
    /// Returns whether the same CONNECT may be accepted later.
    #[must_use]
    pub(crate) const fn is_retryable(&self) -> bool {
        match self {
            Self::AlreadyConnected => false,
            Self::TooManySessions | Self::TooManySockets => true,
        }
    }
}

/// The result of an INPUT. Exhaustive: there is no other case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Accepted {
    /// It started a run: start the agent.
    Started(RunId),
    /// It waits for the running agent: send `RUNTIME_INPUT_ACK` with the id of the input.
    Queued(RunId),
}

/// Why an INPUT was refused. Nothing changed, and the input is not processed. `Display` is the text
/// of the ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InputError {
    /// The socket has no session, or no longer has one. Retry after CONNECT.
    #[error("{AUTHENTICATE_FIRST}")]
    NotConnected,
    /// There is no text. Retrying fails again.
    #[error("{PROMPT_REQUIRED}")]
    NoPrompt,
    /// The running agent does not accept it. Retry after the run.
    #[error("{}", running_words(*.0))]
    Running(RunRefused),
    /// Too many agents are running. Retry later.
    #[error("too many agents are running")]
    TooManyRuns,
}

/// Returns the words for a refused input. Known hosts have words for a run that accepts nothing
/// more, but no bounds.
fn running_words(why: RunRefused) -> String {
    match why {
        RunRefused::Full => why.to_string(),
        _ => ALREADY_RUNNING.to_owned(),
    }
}

impl InputError {
    /// Returns whether the same INPUT may be accepted later.
    #[must_use]
    pub(crate) const fn is_retryable(&self) -> bool {
        match self {
            Self::NotConnected | Self::NoPrompt => false,
            Self::Running(_) | Self::TooManyRuns => true,
        }
    }
}

/// Why a frame for a running agent was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgentError {
    /// The socket has no session, or no longer has one.
    #[error("{AUTHENTICATE_FIRST}")]
    NotConnected,
    /// There is nothing to interrupt.
    #[error("{NOTHING_TO_INTERRUPT}")]
    Idle,
    /// The answer belongs to no open question.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// The error for a run that is over: it finished, failed or was given up. Its agent should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is over")]
pub struct RunOver;

/// Why a session was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Removed {
    /// It was not used for too long.
    Idle,
    /// Its agent and its clients were silent for too long.
    Stuck,
    /// It made room for a new one.
    Evicted,
    /// By a call of [`remove`](super::SessionRegistry::remove).
    Asked,
}

/// A session that was removed. Its sockets stay open and may send CONNECT again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemovedSession {
    pub(crate) session_id: SessionId,
    pub(crate) why: Removed,
    pub(crate) sockets: Vec<ConnId>,
    /// The run to stop.
    pub(crate) run: Option<RunId>,
    /// The acknowledged, unread inputs.
    pub(crate) unread: Vec<Prompt>,
}
