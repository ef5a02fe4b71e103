//! [`Answered`]: answers to the agent's questions that the host may not have.

use std::collections::VecDeque;

use rpc_core::{CallId, FrameNumber};

use crate::frame::Response;

/// The number of answers remembered; the oldest are forgotten first. Agents ask one at a time.
pub(super) const MAX_ANSWERS: usize = 64;

/// The answers of this connection, oldest first, until the host is known to have them. Hosts
/// confirm no answer, but they handle frames in order: the reply to a query sent after an answer is
/// its receipt.
#[derive(Debug, Default)]
pub(super) struct Answered {
    answers: VecDeque<Sent>,
}

#[derive(Debug)]
struct Sent {
    frame: FrameNumber,
    /// The query after it.
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

    /// Handles the reply to this query: the host has every answer sent before it.
    pub(super) fn confirm(&mut self, query: CallId) {
        let is_its = |sent: &Sent| sent.receipt == Some(query);
        if let Some(at) = self.answers.iter().position(is_its) {
            self.answers.drain(..=at);
        }
    }

    /// Removes the oldest unconfirmed answer.
    pub(super) fn pop(&mut self) -> Option<(FrameNumber, Response)> {
        let sent = self.answers.pop_front()?;
        Some((sent.frame, sent.response))
    }

    /// Forgets all answers, when no question is open any more.
    pub(super) fn clear(&mut self) {
        self.answers.clear();
    }
}
