//! The machine's record of a request in flight: [`Pending`], and [`Run`] for a chat.

use std::time::Duration;

use rpc_core::timers::later;
use rpc_core::{FrameNumber, Instant};

use super::CallId;
use crate::tool_calls::ToolCalls;

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
    pub(super) received: Instant,
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
            received: now,
            end_by: None,
            queued: false,
            aborting: false,
            tools: ToolCalls::default(),
        }
    }

    /// Returns when the chat has waited too long, if its last message came at `received`.
    pub(super) fn deadline(&self, received: Instant) -> Option<Instant> {
        self.end_by.or_else(|| Some(later(received, self.idle?)))
    }
}
