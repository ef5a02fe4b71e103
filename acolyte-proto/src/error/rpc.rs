//! [`RpcError`], the server's answer to a failed request, and its [`ErrorKind`].

use rpc_core::{DecodeError, Str};

use crate::id::RpcId;

/// The `error` for an invalid request: bad JSON, a bad id, an unknown type, a wrong payload.
pub(crate) const INVALID_MESSAGE: &str = "Invalid RPC message";
const ALREADY_RUNNING: &str = "Chat request already running for id: ";
const QUEUE_FULL: &str = "RPC queue is full (";

/// Returns the `error` for a chat whose id is in use.
pub(crate) fn already_running(id: &RpcId) -> String {
    format!("{ALREADY_RUNNING}{id}")
}

/// Returns the `error` for a chat that does not fit into the queue.
pub(crate) fn queue_full(queued: usize) -> String {
    format!("{QUEUE_FULL}{queued} queued). Try again shortly.")
}

/// The server's answer to a request that failed: the `error` answer, or a status over HTTP.
///
/// The protocol has no error codes: [`kind`](Self::kind) recognises the known texts, and says
/// whether repeating the request is safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct RpcError {
    kind: ErrorKind,
    message: Str,
}

/// The kind of an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request was invalid. Repeating it fails again.
    InvalidMessage,
    /// The request's id is in use. Safe to repeat with another id.
    AlreadyRunning,
    /// Too many chats wait on this connection. Safe to repeat later.
    QueueFull,
    /// The server answered over HTTP with this status, which is not a success; 401 is a missing or
    /// wrong key. From 300 to 499 and with 503 nothing was done; any other may come from a proxy
    /// that has passed the request on.
    Status(u16),
    /// The answer cannot be read: what was done is unknown.
    Unreadable,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// Returns whether this says that nothing was done.
    pub(crate) const fn is_refusal(self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 300..=499 | 503),
            _ => true,
        }
    }
}

impl RpcError {
    /// Creates an error with this text.
    pub fn new(message: impl Into<Str>) -> Self {
        let message = message.into();
        let kind = if message == INVALID_MESSAGE {
            ErrorKind::InvalidMessage
        } else if message.starts_with(ALREADY_RUNNING) {
            ErrorKind::AlreadyRunning
        } else if message.starts_with(QUEUE_FULL) {
            ErrorKind::QueueFull
        } else {
            ErrorKind::Other
        };
        Self { kind, message }
    }

    /// Creates the error for a status over HTTP with this body.
    pub(crate) fn of_status(status: u16, message: impl Into<Str>) -> Self {
        Self {
            kind: ErrorKind::Status(status),
            message: message.into(),
        }
    }

    pub(crate) fn unreadable(error: &DecodeError) -> Self {
        Self {
            kind: ErrorKind::Unreadable,
            message: error.to_string().into(),
        }
    }

    /// Returns the server's error text, or why it cannot be read.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn text(&self) -> String {
        let message = &self.message;
        match self.kind {
            ErrorKind::Status(status) => format!("status {status}: {message}"),
            ErrorKind::Unreadable => format!("the answer cannot be read: {message}"),
            _ => message.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_classified_by_their_message() {
        let id = RpcId::random(7);
        for (error, kind) in [
            (INVALID_MESSAGE.to_owned(), ErrorKind::InvalidMessage),
            (already_running(&id), ErrorKind::AlreadyRunning),
            (queue_full(25), ErrorKind::QueueFull),
            ("Unsupported RPC method".to_owned(), ErrorKind::Other),
        ] {
            assert_eq!(RpcError::new(&*error).kind(), kind, "{error}");
        }
        let full = "RPC queue is full (25 queued). Try again shortly.";
        assert_eq!(queue_full(25), full);
        let refused = RpcError::of_status(401, "no");
        assert_eq!(refused.to_string(), "status 401: no");
    }
}
