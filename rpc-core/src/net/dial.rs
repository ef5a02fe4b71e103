//! [`Dialer`]: how a [`Link`](super::Link) gets its next transport.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;

use super::transport::Transport;
use crate::error::CloseReason;

/// Opens connections. A [`Link`](super::Link) dials once per attempt, with its own deadline around
/// the whole attempt.
///
/// ```
/// use async_trait::async_trait;
/// use rpc_core::net::{DialError, Dialer, mem};
/// use tokio::sync::mpsc;
///
/// /// Makes each connection in memory, and hands its other end to a server.
/// struct InProcess(mpsc::Sender<mem::MemTransport>);
///
/// #[async_trait]
/// impl Dialer for InProcess {
///     type Transport = mem::MemTransport;
///
///     async fn dial(&self) -> Result<Self::Transport, DialError> {
///         let (here, there) = mem::duplex(16);
///         self.0.send(there).await.map_err(|_| DialError::Exhausted)?;
///         Ok(here)
///     }
/// }
/// ```
#[async_trait]
pub trait Dialer: Send + Sync + 'static {
    /// The transport of a successful attempt.
    type Transport: Transport;

    /// Connects once, including the handshakes of TCP, TLS and WebSocket.
    ///
    /// # Errors
    /// [`DialError`], whose [`is_retryable`](DialError::is_retryable) decides whether the link
    /// tries again.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the attempt and leaves nothing behind.
    async fn dial(&self) -> Result<Self::Transport, DialError>;
}

/// Why a connection could not be established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL cannot be dialled; a retry does not help.
    #[error("bad URL {url:?}: {why}")]
    BadUrl {
        /// The URL without its credentials and query.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The connection was not established in time: TCP, TLS and the upgrade share one deadline.
    #[error("not connected within {after:?}")]
    TimedOut {
        /// The deadline that passed.
        after: Duration,
    },
    /// The name could not be resolved, nothing listens there, or the connection failed.
    #[error("could not reach {host}: {source}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// TLS failed: an unknown issuer, a wrong name, an expired certificate.
    #[error("TLS with {host} failed: {source}")]
    Tls {
        /// Host and port.
        host: String,
        /// The error of rustls.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server answered the upgrade with another status.
    #[error("the server answered {status} instead of upgrading to WebSocket")]
    Status {
        /// The HTTP status code.
        status: u16,
    },
    /// The server's reply to the upgrade request is not valid.
    #[error("the WebSocket handshake failed: {0}")]
    Handshake(String),
    /// There is no further connection (the transport was given once).
    #[error("the transport was used already: it connects once")]
    Exhausted,
}

impl DialError {
    /// Returns whether another attempt may succeed: not for bad URLs, TLS failures and HTTP
    /// statuses that rule it out (4xx other than 408, 425 and 429).
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::BadUrl { .. } | Self::Tls { .. } | Self::Exhausted => false,
            Self::Status { status } => {
                !matches!(*status, 400..=499) || matches!(*status, 408 | 425 | 429)
            }
            Self::TimedOut { .. } | Self::Unreachable { .. } | Self::Handshake(_) => true,
        }
    }
}

/// Maps 401 to refused credentials.
impl From<&DialError> for CloseReason {
    fn from(error: &DialError) -> Self {
        if let DialError::Status { status: 401 } = error {
            let message = error.to_string();
            return Self::Authentication { message };
        }
        Self::Connect {
            message: error.to_string(),
            retryable: error.is_retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Retry;

    #[test]
    fn a_401_is_a_refusal_of_the_credentials_and_other_statuses_are_not() {
        for (status, refused, retry) in [
            (401, true, Retry::Never),
            (403, false, Retry::Never),
            (503, false, Retry::Backoff),
        ] {
            let reason = CloseReason::from(&DialError::Status { status });
            let is_refused = matches!(reason, CloseReason::Authentication { .. });
            assert_eq!((is_refused, reason.retry()), (refused, retry), "{status}");
        }
    }
}
