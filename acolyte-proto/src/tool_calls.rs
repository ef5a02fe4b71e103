//! [`ToolCalls`]: which calls of tools a chat has seen, so that what belongs to none is noticed.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use rpc_core::Str;

use crate::event::Event;

/// So many calls of tools are remembered per chat; known servers allow 300. After more than that,
/// what belongs to no call is not noticed any more.
const REMEMBERED_CALLS: usize = 4_096;

/// Why a step is refused that belongs to no call.
pub(crate) const STRAY: &str = "a tool's output or result comes without its call";

/// The calls of tools that a chat has seen, by a hash: a clash hides a stray at worst.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl ToolCalls {
    /// The id of a call that this event refers to and that has not been told before.
    pub(crate) fn stray<'e>(&self, event: &'e Event) -> Option<&'e Str> {
        let id = match event {
            Event::ToolOutput(output) => &output.id,
            Event::ToolResult(result) => &result.id,
            _ => return None,
        };
        let known = self.seen.contains(&hash(id)) || self.seen.len() >= REMEMBERED_CALLS;
        (!known).then_some(id)
    }

    /// Takes note of an event that was told: later ones may refer to its call.
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
