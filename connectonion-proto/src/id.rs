//! Ids: [`SessionId`], [`EventId`] and [`ToolCallId`], and functions that make them.

use rpc_core::{Id, uuid};

use crate::frame::{Session, StreamEvent, ToolCall};

/// The id of a session: any text. Servers make UUIDs.
pub type SessionId = Id<Session>;

/// The id of an event: any text, not always unique. Clients send the last one back as
/// `last_msg_id`.
pub type EventId = Id<StreamEvent>;

/// The id of a call of a tool: any text, by which its result refers to it.
pub type ToolCallId = Id<ToolCall>;

/// Creates the id of a session from 128 random bits: a UUID of version 4.
pub(crate) fn session_id(random: u128) -> SessionId {
    SessionId::new(uuid(random))
}

/// Creates the id of an event from 128 random bits: `ev-` and a UUID of version 4.
pub(crate) fn event_id(random: u128) -> EventId {
    EventId::new(format!("ev-{}", uuid(random)))
}

/// Creates the id of a prompt during a run from 128 random bits: `runtime-input-` and a UUID of
/// version 4. The event that reports that the agent has read it has the same id.
pub(crate) fn runtime_input_id(random: u128) -> EventId {
    EventId::new(format!("runtime-input-{}", uuid(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_4_uuids() {
        let zeros = session_id(0);
        assert_eq!(zeros.as_str(), "00000000-0000-4000-8000-000000000000");
        let ones = event_id(u128::MAX);
        assert_eq!(ones.as_str(), "ev-ffffffff-ffff-4fff-bfff-ffffffffffff");
        let id = runtime_input_id(0x550e_8400_e29b_31d4_2716_4466_5544_0000);
        assert_eq!(
            id.as_str(),
            "runtime-input-550e8400-e29b-41d4-a716-446655440000"
        );
    }
}
