//! [`ChatError`] and [`ErrorDetail`], the failure of a chat; [`FrameError`]; the reasons of a
//! refusal.

mod chat;
mod frame;

pub use chat::{ChatError, ErrorDetail};
pub use frame::FrameError;

use crate::id::RpcId;

/// The `error` for an invalid request: bad JSON, a bad id, an unknown type, a wrong payload.
pub(crate) const INVALID_MESSAGE: &str = "Invalid RPC message";
/// The start of the `error` for a chat whose id is in use.
pub(crate) const ALREADY_RUNNING: &str = "Chat request already running for id: ";
/// The start of the `error` for a chat that does not fit into the queue.
pub(crate) const QUEUE_FULL: &str = "RPC queue is full (";

/// Returns the `error` for a chat whose id is in use.
pub(crate) fn already_running(id: &RpcId) -> String {
    format!("{ALREADY_RUNNING}{id}")
}

/// Returns the `error` for a chat that does not fit into the queue.
pub(crate) fn queue_full(queued: usize) -> String {
    format!("{QUEUE_FULL}{queued} queued). Try again shortly.")
}

/// The kind of a refusal, recognized by its text: the protocol has no codes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The request was invalid. Repeating it fails again.
    InvalidMessage,
    /// The request's id is in use. Safe to repeat with another id.
    AlreadyRunning,
    /// Too many chats wait on this connection. Safe to repeat later.
    QueueFull,
    /// Anything else.
    Other,
}

impl RefusalKind {
    /// Returns the kind of a refusal with this text.
    #[must_use]
    pub fn of(error: &str) -> Self {
        if error == INVALID_MESSAGE {
            Self::InvalidMessage
        } else if error.starts_with(ALREADY_RUNNING) {
            Self::AlreadyRunning
        } else if error.starts_with(QUEUE_FULL) {
            Self::QueueFull
        } else {
            Self::Other
        }
    }
}

/// Codes that known servers use in `errorCode` and [`ErrorDetail::code`]. The set is open: expect
/// others, also those of an operating system such as `ENOENT`.
pub mod code {
    /// The chat was aborted. Sent by servers of this crate only.
    pub const ABORTED: &str = "E_ABORTED";
    /// The most common code by far.
    pub const UNKNOWN: &str = "E_UNKNOWN";
    /// Something took too long.
    pub const TIMEOUT: &str = "E_TIMEOUT";
    /// A tool found no such file.
    pub const FILE_NOT_FOUND: &str = "E_FILE_NOT_FOUND";
    /// A budget of tokens or of tool calls is used up.
    pub const BUDGET_EXHAUSTED: &str = "E_BUDGET_EXHAUSTED";
    /// The chat named no model that the server knows.
    pub const MODEL_NOT_CONFIGURED: &str = "E_MODEL_NOT_CONFIGURED";
    /// The model's provider cannot be used.
    pub const MODEL_PROVIDER_UNAVAILABLE: &str = "E_MODEL_PROVIDER_UNAVAILABLE";
    /// A tool was asked to leave the workspace.
    pub const SANDBOX_VIOLATION: &str = "E_SANDBOX_VIOLATION";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_their_words() {
        let id = RpcId::random(7);
        for (error, kind) in [
            (INVALID_MESSAGE.to_owned(), RefusalKind::InvalidMessage),
            (already_running(&id), RefusalKind::AlreadyRunning),
            (queue_full(25), RefusalKind::QueueFull),
            ("Unsupported RPC method".to_owned(), RefusalKind::Other),
        ] {
            assert_eq!(RefusalKind::of(&error), kind, "{error}");
        }
        let full = "RPC queue is full (25 queued). Try again shortly.";
        assert_eq!(queue_full(25), full);
    }
}
