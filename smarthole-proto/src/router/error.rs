//! [`RouterError`]: why a router did not decide.

use std::time::Duration;

use rpc_core::Str;

/// Why a router did not decide. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The service that it asks could not be reached, or is in trouble. Retrying later may help.
    #[error("the router is unavailable: {0}")]
    Unavailable(Str),
    /// The service that it asks was asked too often, also after the router's own retries. Retrying
    /// later helps.
    #[error("the router has been asked too often; try again later")]
    RateLimited,
    /// It took too long. Retrying may help.
    #[error("the router did not decide within {0:?}")]
    TimedOut(Duration),
    /// The service that it asks refused the credentials. Retrying does not help.
    #[error("the router was refused: {0}")]
    Denied(Str),
    /// It failed in another way, or panicked. Retrying does not help.
    #[error("the router failed: {0}")]
    Failed(Str),
}

rpc_core::from_failures!(RouterError, |text: String| Self::Failed(text.into()));

impl RouterError {
    /// Returns whether the same question may be decided later. A message that was not routed has
    /// reached no client through this question, so asking again is safe.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::RateLimited | Self::TimedOut(_) => true,
            Self::Denied(_) | Self::Failed(_) => false,
        }
    }
}
