//! [`ConnectError`]: why a client was not connected over WebSockets.

use super::dialer::WsDialer;
use crate::error::{CloseReason, Retry};
use crate::net::dial::DialError;

/// Why a client was not connected. [`retry`](Self::retry) says whether another attempt may succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is invalid: [`DialError::BadUrl`]. Nothing was tried.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// A secret would go to another machine without encryption. Use `wss://`, or allow it in the
    /// configuration. Nothing was tried.
    #[error("{what} would be sent to {host} without encryption")]
    Insecure {
        /// The secret, such as `the password`.
        what: &'static str,
        /// The URL's host.
        host: String,
    },
    /// A secret cannot be sent in an HTTP header. Nothing was tried.
    #[error("{what} cannot be sent in a header")]
    Header {
        /// The secret, such as `the API key`.
        what: &'static str,
    },
    /// The attempt failed: nothing listens, the upgrade was refused, a deadline passed; or
    /// credentials were refused, which is [`CloseReason::Authentication`].
    #[error(transparent)]
    Failed(#[from] CloseReason),
}

impl ConnectError {
    /// Returns whether and how another attempt may succeed.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Dial(_) | Self::Insecure { .. } | Self::Header { .. } => Retry::Never,
            Self::Failed(reason) => reason.retry(),
        }
    }
}

impl WsDialer {
    /// Rejects URLs over which `what`, such as `the password`, would go to another machine without
    /// encryption.
    ///
    /// # Errors
    /// [`ConnectError::Insecure`] with the [exposed host](Self::exposed_host).
    pub fn protect(self, what: &'static str) -> Result<Self, ConnectError> {
        let host = self.exposed_host().map(str::to_owned);
        host.map_or(Ok(self), |host| Err(ConnectError::Insecure { what, host }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_sent_unencrypted_only_to_loopback() {
        for url in [
            "ws://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://[::1]",
            "ws://[::ffff:127.0.0.1]",
            "ws://LocalHost/rpc.ws",
            "wss://example.org",
            "HTTPS://example.org:8000",
        ] {
            let dialer = WsDialer::new(url).unwrap();
            assert!(dialer.protect("the token").is_ok(), "{url}");
        }
        for (url, named) in [
            ("ws://example.org:8080", "example.org"),
            ("http://192.168.0.7/ws", "192.168.0.7"),
            ("WS://[fe80::1]:8000", "fe80::1"),
            (
                "ws://localhost.example.org?127.0.0.1",
                "localhost.example.org",
            ),
            ("ws://127.0.0.1.example.org", "127.0.0.1.example.org"),
        ] {
            let refused = WsDialer::new(url).unwrap().protect("the token");
            let error = refused.map(drop).unwrap_err();
            let expected = format!("the token would be sent to {named} without encryption");
            assert_eq!(error.to_string(), expected, "{url}");
            assert_eq!(error.retry(), Retry::Never);
        }
    }
}
