//! [`Task`]: what a server remembers of a chat.

use std::borrow::Cow;
use std::time::SystemTime;

use rpc_core::decode::{DecodeError, Field, Members, Reader, Slot};
use rpc_core::timestamp;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::id::TaskId;
use crate::wire::again;

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

#[derive(Default)]
struct TaskMembers<'a> {
    id: Slot<Cow<'a, str>>,
    state: Slot<Cow<'a, str>>,
    created_at: Slot<Cow<'a, str>>,
    updated_at: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for TaskMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.str("id", again(&mut self.id)),
            "state" => field.str("state", again(&mut self.state)),
            "createdAt" => field.str("createdAt", again(&mut self.created_at)),
            "updatedAt" => field.str("updatedAt", again(&mut self.updated_at)),
            _ => field.skip(),
        }
    }
}

impl Task {
    /// A task; `None` is null.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let Some(members) = reader.object::<TaskMembers<'_>>()? else {
            return Ok(None);
        };
        let id = TaskId::parse(&members.id.require("id")?);
        let state = TaskState::parse(&members.state.require("state")?);
        let time = |slot: Slot<Cow<'_, str>>, name| {
            let time = timestamp::parse(&slot.require(name)?);
            time.ok_or_else(|| DecodeError::bad_value(name, "a time in UTC"))
        };
        Ok(Some(Self {
            id: id.map_err(|_| DecodeError::bad_value("id", "a task's id"))?,
            state: state.ok_or_else(|| DecodeError::bad_value("state", "a task's state"))?,
            created_at: time(members.created_at, "createdAt")?,
            updated_at: time(members.updated_at, "updatedAt")?,
        }))
    }
}

/// Times are written in milliseconds and with `Z`: known clients refuse an offset.
impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Task", 4)?;
        to.serialize_field("id", &self.id)?;
        to.serialize_field("state", self.state.name())?;
        to.serialize_field("createdAt", &timestamp::format(self.created_at))?;
        to.serialize_field("updatedAt", &timestamp::format(self.updated_at))?;
        to.end()
    }
}
