//! [`AppError`], why a handler rejected a message.

use rpc_core::Refused;
use rpc_core::Str;
use rpc_core::text::beginning;

/// Why a handler rejected a message. Unless there was a response already, the message is rejected
/// with the error's text, which the router reads: keep private details out of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The message is not for this client. This does not count as a failure.
    #[error("{0}")]
    Rejected(Str),
    /// The handler failed.
    #[error("{0}")]
    Failed(Str),
    /// The handler panicked.
    #[error("internal error")]
    Panicked,
    /// A response could not be sent.
    #[error("a response could not be sent: {0}")]
    Response(#[from] Refused),
}

impl AppError {
    /// Creates an error for a message that is not for this client.
    pub fn rejected(reason: impl Into<Str>) -> Self {
        Self::Rejected(reason.into())
    }

    /// Creates an error for a failure.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self::Failed(message.into())
    }

    /// Returns the reason for the router: the error's text, cut to 1 KiB.
    #[must_use]
    pub fn reason(&self) -> Str {
        const MAX: usize = 1024;
        beginning(&self.to_string(), MAX).into()
    }
}

rpc_core::from_failures!(AppError, Self::failed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_bounded_error_text() {
        assert_eq!(AppError::rejected("only notes").reason(), "only notes");
        let io = std::io::Error::other("disk full");
        assert_eq!(AppError::from(io).reason(), "disk full");
        let long = AppError::failed("é".repeat(1000)).reason();
        assert_eq!(&*long, "é".repeat(512));
        let boxed: Box<dyn std::error::Error + Send + Sync> = "no".into();
        assert_eq!(AppError::from(boxed), AppError::failed("no"));
    }
}
