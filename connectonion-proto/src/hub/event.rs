//! The inputs and outputs of a hub: [`ConnectRequest`], [`Reply`], [`HubEvent`].

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rpc_core::{CloseFrame, Instant, Refused, Str, Text};

use super::{Job, Prompt};
use crate::auth::Address;
use crate::frame::{Connect, Connected, ErrorFrame, ReceivedFile, RuntimeInputAck};
use crate::id::SessionId;

/// A connection, numbered by the application. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// The number of a run. No two runs of a hub have the same number, so an agent that works on after
/// its run was given up cannot affect the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// The owner of a session. Exhaustive: a caller has proved an address, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Anyone who knows the id: the caller did not sign.
    #[default]
    Unsigned,
    /// The caller who proved this address.
    Key(Address),
}

/// The current time: for deadlines, and for records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// The monotonic clock.
    pub instant: Instant,
    /// The wall clock, in seconds since 1970.
    pub unix: f64,
}

impl Now {
    /// Creates the time from both clocks, the wall clock in whole microseconds: some clients read more
    /// digits with an error of the last bit, and their copy of a session would be another version.
    pub fn new(instant: Instant, wall: SystemTime) -> Self {
        let since = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = since.subsec_micros();
        Self {
            instant,
            unix: Duration::new(since.as_secs(), micros * 1000).as_secs_f64(),
        }
    }
}

/// A client that was admitted, and its CONNECT.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectRequest {
    /// The identity that its signature proves, or none.
    pub owner: Owner,
    /// The frame.
    pub connect: Connect,
    /// 128 random bits that no one can guess: unsigned callers are known by their session's id
    /// alone.
    pub random: u128,
    /// Whether the client learns that a signature is recommended. Default no.
    pub recommend_signature: bool,
    /// From where it comes, for limits. Default `None`: not known.
    pub caller: Option<IpAddr>,
}

impl ConnectRequest {
    /// Creates the request of an admitted client.
    pub const fn new(owner: Owner, connect: Connect, random: u128) -> Self {
        Self {
            owner,
            connect,
            random,
            recommend_signature: false,
            caller: None,
        }
    }
}

/// A reply of a hub to one connection; replies are in order. Events and OUTPUT are separate: a
/// connection [takes](super::Hub::next_frame) those at its own speed, after its replies.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Answers its CONNECT: it is admitted.
    Accept(Box<Connected>),
    /// Refuses its CONNECT or INPUT.
    Refuse(Box<ErrorFrame>),
    /// Answers its INPUT: a run has started.
    Begun,
    /// Answers its INPUT: the running agent will read it.
    Acknowledge(RuntimeInputAck),
    /// Any other frame.
    Frame(Text),
    /// Closes the connection: this host does not serve the session, and the client should connect
    /// again.
    Close(CloseFrame),
}

/// A job to do, or something for an agent. None may be skipped.
#[derive(Debug)]
#[non_exhaustive]
pub enum HubEvent {
    /// Do something with the storage, then call [`done`](super::Hub::done).
    Store(Job),
    /// Start the agent. It ends with [`finish`](super::Hub::finish) or [`fail`](super::Hub::fail).
    Start {
        /// The run.
        run: RunId,
        /// The session.
        session_id: SessionId,
        /// The owner of the session.
        owner: Owner,
        /// The prompt.
        prompt: Prompt,
    },
    /// Stop the agent: its run is over.
    Cancel(RunId),
    /// The user has told the agent something: an answer, a prompt, a goal, or to stop after its step.
    Told(RunId),
    /// Delete these files: their prompt was refused.
    Unused(Vec<ReceivedFile>),
}

/// Why an agent has no answer, or its `Turn` refused something: nothing changed then,
/// and the same call fails again. The text is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The agent failed.
    #[error("{message}")]
    Failed {
        /// The message for the client.
        message: String,
    },
    /// The run is over: it finished, failed or was given up. Stop the agent.
    #[error("the run is over")]
    Over,
    /// Too many questions are open, or the event is not a question.
    #[error("no room for another question")]
    NoRoom,
    /// Frames of this type are reserved for the host.
    #[error("frames of the type {0:?} are the host's own")]
    Reserved(Str),
    /// It cannot be encoded, or is too large.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl AppError {
    /// Creates a failure with this message for the client.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }
}

rpc_core::from_failures!(AppError, Self::failed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_survive_inexact_float_parsing() {
        for step in 0..20_000 {
            let since = Duration::from_nanos(1_795_000_000_000_000_000 + step * 987_654_321_987);
            let now = Now::new(Instant::now(), UNIX_EPOCH + since);
            let read: f64 = serde_json::from_str(&now.unix.to_string()).unwrap();
            assert_eq!(read.to_bits(), now.unix.to_bits(), "{since:?}");
        }
    }
}
