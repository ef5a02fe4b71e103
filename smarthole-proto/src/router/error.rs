//! [`RouterError`]: why a router did not decide.

use std::time::Duration;

use rpc_core::Str;

/// Why a router did not decide. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// What it asks could not be reached, or has trouble. Retrying later may help.
    #[error("the router is unavailable: {message}")]
    Unavailable {
        /// What happened.
        message: Str,
    },
    /// What it asks was asked too often, and still is after the router's own retries. Retrying
    /// later helps.
    #[error("the router has been asked too often; try again later")]
    RateLimited,
    /// It took too long. Retrying may help.
    #[error("the router did not decide within {after:?}")]
    TimedOut {
        /// The deadline that passed.
        after: Duration,
    },
    /// What it asks refused the credentials. Retrying does not help.
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
    /// It failed for this reason.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }

    /// What it asks is out of reach for this reason.
    pub fn unavailable(message: impl Into<Str>) -> Self {
        Self::Unavailable {
            message: message.into(),
        }
    }

    /// Whether the same question may be decided later. A message that was not routed has reached
    /// nobody through this question, so asking again is safe.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::RateLimited | Self::TimedOut { .. } => true,
            Self::Denied { .. } | Self::Failed { .. } => false,
        }
    }
}
