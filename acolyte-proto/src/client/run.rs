//! The machine's record of a request in flight: [`Pending`], and [`Run`] for a chat.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use rpc_core::FrameNumber;
use rpc_core::timers::later;

use super::{CallId, Warning};
use crate::event::Event;

/// The number of tool calls remembered per chat; known servers allow 300. Beyond it, outputs and
/// results without a call go unnoticed.
const REMEMBERED_CALLS: usize = 4_096;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// The request's frame.
    pub(super) frame: FrameNumber,
    /// Whether the server has answered at all.
    pub(super) answered: bool,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Status,
    Task,
    /// The chat to abort. A quiet abort reports no result.
    Abort {
        chat: CallId,
        quiet: bool,
    },
    Chat(Run),
}

/// A chat in flight.
#[derive(Debug)]
pub(super) struct Run {
    /// How long the chat waits for its next message.
    pub(super) idle: Option<Duration>,
    /// When the last message for the chat came; initially, when the chat was sent.
    pub(super) heard: Instant,
    /// The time by which the chat must have ended, if nothing else comes.
    pub(super) end_by: Option<Instant>,
    /// Whether the chat waits in the server's queue, so that silence about it means nothing while a
    /// chat before it progresses.
    pub(super) queued: bool,
    /// Whether an abort was sent.
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

    /// Returns when the chat has waited too long, if its last message came at `heard`.
    pub(super) fn deadline(&self, heard: Instant) -> Option<Instant> {
        self.end_by.or_else(|| Some(later(heard, self.idle?)))
    }
}

/// The tool calls that a chat has made, by hash: a collision at worst hides a warning.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl ToolCalls {
    /// Remembers a call, or returns a warning for an event without its call.
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
