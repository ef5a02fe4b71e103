//! What the machine keeps of a request in flight: [`Pending`], and [`Run`] of a chat.

use std::time::{Duration, Instant};

use rpc_core::FrameNumber;
use rpc_core::timers::later;

use super::CallId;
use crate::tool_calls::ToolCalls;

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
