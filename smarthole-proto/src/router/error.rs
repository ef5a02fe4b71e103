//! [`RouterError`]: why a router did not decide.

use std::time::Duration;

use rpc_core::Str;

/// Why a router did not decide. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The service that it asks could not be reached, or is in trouble. Retrying later may help.
    #[error("the router is unavailable: {message}")]
    Unavailable {
        /// What happened.
        message: Str,
    },
    /// The service that it asks was asked too often, also after the router's own retries. Retrying
    /// later helps.
    #[error("the router has been asked too often; try again later")]
    RateLimited,
    /// It took too long. Retrying may help.
    #[error("the router did not decide within {after:?}")]
    TimedOut {
        /// The deadline that passed.
        after: Duration,
    },
    /// The service that it asks refused the credentials. Retrying does not help.
    #[error("the router was refused: {message}")]
    Denied {
        /// What happened.
        message: Str,
    },
    /// It failed in another way, or panicked. Retrying does not help.
    #[error("the router failed: {message}")]
    Failed {
        /// What happened.
        message: Str,
    },
}

impl RouterError {
    /// Creates an error for another failure.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }

    /// Creates an error for a service that cannot be reached.
    pub fn unavailable(message: impl Into<Str>) -> Self {
        Self::Unavailable {
            message: message.into(),
        }
    }

    /// Returns whether the same question may be decided later. A message that was not routed has
    /// reached no client through this question, so asking again is safe.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::RateLimited | Self::TimedOut { .. } => true,
            Self::Denied { .. } | Self::Failed { .. } => false,
        }
    }
}
