//! [`Answered`]: answers to questions of the agent that the host may not have.

use std::collections::VecDeque;

use rpc_core::{CallId, FrameNumber};

use crate::frame::Response;

/// Most answers that are remembered; the oldest are forgotten first. Agents ask one after the other.
pub(super) const MAX_ANSWERS: usize = 64;

/// The answers of this connection, oldest first, until the host is known to have them. Hosts confirm
/// none, but they handle frames in order: the reply to a query that was sent behind an answer is its
/// receipt.
#[derive(Debug, Default)]
pub(super) struct Answered {
    answers: VecDeque<Sent>,
}

#[derive(Debug)]
struct Sent {
    frame: FrameNumber,
    /// The query behind it.
    receipt: Option<CallId>,
    response: Response,
}

impl Answered {
    pub(super) fn push(&mut self, frame: FrameNumber, receipt: Option<CallId>, response: Response) {
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(Sent {
            frame,
            receipt,
            response,
        });
    }

    /// The reply to this query has come: the host has what was sent before it.
    pub(super) fn confirm(&mut self, query: CallId) {
        let is_its = |sent: &Sent| sent.receipt == Some(query);
        if let Some(at) = self.answers.iter().position(is_its) {
            self.answers.drain(..=at);
        }
    }

    /// The oldest answer that was not confirmed.
    pub(super) fn pop(&mut self) -> Option<(FrameNumber, Response)> {
        let sent = self.answers.pop_front()?;
        Some((sent.frame, sent.response))
    }

    /// No question is open any more.
    pub(super) fn clear(&mut self) {
        self.answers.clear();
    }
}
