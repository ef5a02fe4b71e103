//! [`ToolCalls`]: the tool calls that a chat has seen, to find outputs and results without a call.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::event::Event;
use crate::id::ToolCallId;

/// The number of calls that a chat remembers; known servers allow 300 calls. After that many, an
/// output or result without its call is not noticed.
const REMEMBERED_CALLS: usize = 4_096;

/// The reason for refusing a step that belongs to no call.
pub(crate) const STRAY: &str = "a tool's output or result comes without its call";

/// The tool calls that a chat has seen, as hashes: at worst, a collision hides a missing call.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl ToolCalls {
    /// Returns the id of the call that this event refers to, if the chat has not seen that call.
    pub(crate) fn stray<'e>(&self, event: &'e Event) -> Option<&'e ToolCallId> {
        let id = match event {
            Event::ToolOutput(output) => &output.id,
            Event::ToolResult(result) => &result.id,
            _ => return None,
        };
        let known = self.seen.contains(&hash(id)) || self.seen.len() >= REMEMBERED_CALLS;
        (!known).then_some(id)
    }

    /// Sends an event, unless it refers to a call that the chat has not seen, and remembers its call
    /// once it is sent.
    pub(crate) fn sent<T, E>(
        &mut self,
        event: &Event,
        stray: impl FnOnce(&'static str) -> E,
        send: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if self.stray(event).is_some() {
            return Err(stray(STRAY));
        }
        let sent = send()?;
        self.note(event);
        Ok(sent)
    }

    /// Remembers the call of an event: later events may refer to it.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Event::ToolCall(call) = event
            && self.seen.len() < REMEMBERED_CALLS
        {
            self.seen.insert(hash(&call.id));
        }
    }
}

fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}

#[cfg(test)]
mod tests {
    use rpc_core::Json;

    use super::*;
    use crate::event::{ToolCall, ToolResult};

    #[test]
    fn after_4096_calls_a_missing_call_is_not_noticed() {
        let mut calls = ToolCalls::default();
        let stray = Event::ToolResult(ToolResult::ok("none", "t"));
        for number in 0..4_096 {
            assert!(calls.stray(&stray).is_some(), "{number}");
            let call = ToolCall::new(number.to_string(), "t", Json::EMPTY_OBJECT);
            calls.note(&Event::ToolCall(call));
        }
        assert!(calls.stray(&stray).is_none());
    }
}
