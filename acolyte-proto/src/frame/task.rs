//! [`Task`]: what a server remembers of a chat.

use std::time::SystemTime;

use rpc_core::words;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;

/// What a server remembers of a chat that it accepted, until it restarts or forgets it.
///
/// Times are written in milliseconds and with `Z`: known clients refuse an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// How far it is.
    pub state: TaskState,
    /// When the chat was accepted.
    #[serde(with = "super::time")]
    pub created_at: SystemTime,
    /// When the state changed last.
    #[serde(with = "super::time")]
    pub updated_at: SystemTime,
}

words! {
    /// How far a chat is. Exhaustive: the states of the protocol's machine.
    pub enum TaskState {
        /// It was accepted.
        "accepted" => Accepted,
        /// It waits for its turn.
        "queued" => Queued,
        /// It runs.
        "running" => Running,
        /// It has ended with a reply, perhaps one that tells of an error.
        "completed" => Completed,
        /// It has failed.
        "failed" => Failed,
        /// It was aborted, or its connection was lost.
        "cancelled" => Cancelled,
    }
}

impl Task {
    /// A chat that was accepted now.
    #[must_use]
    pub const fn new(id: TaskId, now: SystemTime) -> Self {
        Self {
            id,
            state: TaskState::Accepted,
            created_at: now,
            updated_at: now,
        }
    }
}

impl TaskState {
    /// Whether the chat has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
