//! What the machine keeps of a request in flight: [`Pending`], and [`Run`] of a chat.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use rpc_core::FrameNumber;
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
#[derive(Debug)]
pub(super) struct Run {
    /// How long it waits for its next message.
    pub(super) idle: Option<Duration>,
    /// When something came for it last; at first when it was sent.
    pub(super) heard: Instant,
    /// When its end must have come, if nothing else comes.
    pub(super) end_by: Option<Instant>,
    /// It waits in the server's queue, so silence about it proves nothing while a chat before it gets
    /// on.
    pub(super) queued: bool,
    /// This side has sent an abort.
    pub(super) aborting: bool,
    pub(super) tools: ToolCalls,
}

impl Run {
    pub(super) fn new(idle: Option<Duration>, now: Instant) -> Self {
        Self {
            idle,
            heard: now,
            end_by: None,
            queued: false,
            aborting: false,
            tools: ToolCalls::default(),
        }
    }

    /// When it has waited too long, if it was heard of then.
    pub(super) fn deadline(&self, heard: Instant) -> Option<Instant> {
        self.end_by.or_else(|| Some(later(heard, self.idle?)))
    }
}

/// The calls of tools that a chat has seen, by a hash: a clash hides a warning at worst.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl ToolCalls {
    /// Takes note of a call, or says that this event belongs to none.
    pub(super) fn check(&mut self, event: &Event) -> Option<Warning> {
        let id = match event {
            Event::ToolCall(call) => {
                if self.seen.len() < REMEMBERED_CALLS {
                    self.seen.insert(hash(&call.id));
                }
                return None;
            }
            Event::ToolOutput(output) => &output.id,
            Event::ToolResult(result) => &result.id,
            _ => return None,
        };
        let known = self.seen.contains(&hash(id)) || self.seen.len() >= REMEMBERED_CALLS;
        (!known).then(|| Warning::ToolWithoutCall {
            tool_call_id: id.clone(),
        })
    }
}

fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}
