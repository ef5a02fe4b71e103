//! [`Task`]: a server's record of a chat.

use std::time::SystemTime;

use rpc_core::words;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;

/// A server's record of an accepted chat, kept until the server restarts or forgets it.
///
/// Times are written in milliseconds and with `Z`: known clients refuse an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its state.
    pub state: TaskState,
    /// When the chat was accepted.
    #[serde(with = "super::time")]
    pub created_at: SystemTime,
    /// When the state last changed.
    #[serde(with = "super::time")]
    pub updated_at: SystemTime,
}

words! {
    /// The state of a chat. Exhaustive: these are the states of the protocol.
    pub enum TaskState {
        /// It was accepted.
        "accepted" => Accepted,
        /// It is waiting.
        "queued" => Queued,
        /// It is running.
        "running" => Running,
        /// It has ended with a reply, possibly one with an error.
        "completed" => Completed,
        /// It has failed.
        "failed" => Failed,
        /// It was aborted, or its connection was lost.
        "cancelled" => Cancelled,
    }
}

impl Task {
    /// Creates the record of a chat that is accepted now.
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
    /// Returns whether the chat has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
