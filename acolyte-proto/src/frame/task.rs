//! [`Task`]: what a server remembers of a chat.

use std::time::SystemTime;

use crate::id::TaskId;

/// What a server remembers of a chat that it accepted, until it restarts or forgets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// How far it is.
    pub state: TaskState,
    /// When the chat was accepted.
    pub created_at: SystemTime,
    /// When the state changed last.
    pub updated_at: SystemTime,
}

/// How far a chat is. Exhaustive: the states of the protocol's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It was accepted.
    Accepted,
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// It has ended with a reply, perhaps one that tells of an error.
    Completed,
    /// It has failed.
    Failed,
    /// It was aborted, or its connection was lost.
    Cancelled,
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
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [
        Self::Accepted,
        Self::Queued,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the chat has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
