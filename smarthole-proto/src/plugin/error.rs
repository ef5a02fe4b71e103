//! [`PluginError`], why a handler did not take a message, and [`SetupError`].

use rpc_core::Refused;
use rpc_core::Str;
use rpc_core::text::beginning;

use crate::error::RegistrationError;

/// Why a handler did not take a message. Unless there has been a response already, the message is
/// rejected with the error's text, which the router reads: leave out what should stay here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The message is not for this client. That is no failure.
    #[error("{reason}")]
    Rejected {
        /// What it is for, or why it is not for this client.
        reason: Str,
    },
    /// Something went wrong.
    #[error("{message}")]
    Failed {
        /// What.
        message: Str,
    },
    /// A response could not be sent.
    #[error("a response could not be sent: {0}")]
    Response(#[from] Refused),
}

impl PluginError {
    /// The message is not for this client.
    pub fn rejected(reason: impl Into<Str>) -> Self {
        Self::Rejected {
            reason: reason.into(),
        }
    }

    /// Something went wrong.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }

    /// The reason for the router: the error's text, cut to 1 KiB.
    #[must_use]
    pub fn reason(&self) -> Str {
        const MAX: usize = 1024;
        beginning(&self.to_string(), MAX).into()
    }
}

impl From<std::io::Error> for PluginError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for PluginError {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self::failed(error.to_string())
    }
}

/// Why a plugin could not be made. It would fail again unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is none that can be dialled.
    #[error("{message}")]
    Url {
        /// What is wrong with it.
        message: String,
    },
    /// The registration would be refused.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_errors_text_within_bounds() {
        assert_eq!(PluginError::rejected("only notes").reason(), "only notes");
        let io = std::io::Error::other("disk full");
        assert_eq!(PluginError::from(io).reason(), "disk full");
        let long = PluginError::failed("é".repeat(1000)).reason();
        assert_eq!(&*long, "é".repeat(512));
        let boxed: Box<dyn std::error::Error + Send + Sync> = "no".into();
        assert_eq!(PluginError::from(boxed), PluginError::failed("no"));
    }
}
