//! What the machine keeps of a request in flight: [`Pending`], and [`Run`] of a chat.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use rpc_core::outbox::FrameNumber;
use rpc_core::timers::later;

use super::{CallId, Warning};
use crate::event::Event;

/// So many calls of tools are remembered per chat; known servers allow 300. After more than that,
/// what belongs to no call is not noticed any more.
const REMEMBERED_CALLS: usize = 4_096;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// The frame that asked.
    pub(super) frame: FrameNumber,
    /// The server has said something to it.
    pub(super) answered: bool,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Status,
    Task,
    /// The chat that it is to abort. Nobody waits for a quiet one.
    Abort {
        chat: CallId,
        quiet: bool,
    },
    Chat(Run),
}

/// A chat in flight.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// How long it waits for its next message.
    pub(super) idle: Option<Duration>,
    /// It waits in the server's queue, so silence about it proves nothing.
    pub(super) queued: bool,
    /// This side has sent an abort.
    pub(super) aborting: bool,
    pub(super) tools: ToolCalls,
}

impl Run {
    pub(super) fn new(idle: Option<Duration>) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// When it has waited too long, if nothing comes from now on.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let idle = self.idle.filter(|_| !self.queued);
        idle.map(|idle| later(now, idle))
    }
}

/// The calls of tools that a chat has seen, by a hash: a clash hides a warning at worst.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl ToolCalls {
    /// Takes note of a call, or says that this event belongs to none.
    pub(super) fn check(&mut self, event: &Event<'_>) -> Option<Warning> {
        let id = match event {
            Event::ToolCall(call) => {
                if self.seen.len() < REMEMBERED_CALLS {
                    self.seen.insert(hash(&call.id));
                }
                return None;
            }
            Event::ToolOutput(output) => &*output.id,
            Event::ToolResult(result) => &*result.id,
            _ => return None,
        };
        let known = self.seen.contains(&hash(id)) || self.seen.len() >= REMEMBERED_CALLS;
        (!known).then(|| Warning::ToolWithoutCall {
            tool_call_id: id.to_owned(),
        })
    }
}

fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}
