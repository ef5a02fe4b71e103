//! [`Mailbox`]: what a hub has for one connection, on its way to the connection's machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rpc_core::CloseFrame;
use rpc_core::backlog::Backlog;

use crate::hub::Reply;

/// Replies that wait at most. A connection that asks has one answer at a time; the rest are frames
/// for everybody who watches a session.
const MAX_REPLIES: usize = 256;

/// There is no room: the client reads too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Filled under the hub's lock, in the hub's order; emptied by the connection's own task.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    replies: Mutex<Backlog<Reply>>,
    /// There may be something to take.
    is_full: AtomicBool,
}

impl Mailbox {
    pub(super) fn put(&self, reply: Reply) -> Result<(), Full> {
        let replies = self.replies.lock();
        let mut replies = replies.unwrap_or_else(PoisonError::into_inner);
        if replies.len() >= MAX_REPLIES {
            return Err(Full);
        }
        replies.push_back(reply);
        self.is_full.store(true, Ordering::Release);
        Ok(())
    }

    /// The hub has frames for the connection.
    pub(super) fn has_frames(&self) {
        self.is_full.store(true, Ordering::Release);
    }

    /// Whether there may be something to take; asking it empties the flag.
    pub(super) fn take_flag(&self) -> bool {
        self.is_full.load(Ordering::Acquire) && self.is_full.swap(false, Ordering::AcqRel)
    }

    pub(super) fn take(&self) -> Option<Reply> {
        let replies = self.replies.lock();
        replies.unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// What a client is told that does not read as fast as it is written to.
pub(super) fn slow_reader() -> CloseFrame {
    CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader")
}
