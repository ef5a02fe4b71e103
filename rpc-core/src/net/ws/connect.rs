//! [`ConnectError`]: why a client was not connected over WebSockets, and what every client sets before.

use super::config::{BadHeader, WsConfig};
use super::dialer::WsDialer;
use super::url::Target;
use crate::error::{CloseReason, Retry};
use crate::net::dial::DialError;
use crate::net::link::LinkConfig;
use crate::secret::Secret;

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

/// What a client may set, natively and in a page.
impl WsDialer {
    /// Creates the dialer of a client with this configuration: its deadline, its TLS, and messages of at most
    /// `max_message` bytes in both directions.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn for_client(url: &str, link: &LinkConfig, max_message: usize) -> Result<Self, DialError> {
        let dialer = Self::new(url)?.with_config(WsConfig {
            max_message,
            max_outgoing: max_message,
            connect_timeout: link.connect_timeout,
            ..WsConfig::default()
        });
        #[cfg(all(feature = "tls", not(all(feature = "web", target_family = "wasm"))))]
        if let Some(tls) = &link.tls {
            return Ok(dialer.with_tls(tls.clone()));
        }
        Ok(dialer)
    }

    /// Replaces the whole configuration.
    #[must_use]
    pub fn with_config(mut self, config: WsConfig) -> Self {
        self.config = config;
        self
    }

    /// Adds the path to URLs that are a base: `ws://host`, `ws://host?query`, `ws://host/prefix/` and
    /// `http://host/prefix` get it, `ws://host/other` stays as it is.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if `path` is not a path.
    pub fn or_path(mut self, path: &str) -> Result<Self, DialError> {
        let targets = self.targets.into_iter().map(|it| it.or_path(path));
        self.targets = targets.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Adds a header that is never printed; see [`WsConfig::with_secret_header`].
    ///
    /// # Errors
    /// [`BadHeader`] if it cannot be sent.
    pub fn with_secret_header(
        mut self,
        name: &str,
        value: &Secret<String>,
    ) -> Result<Self, BadHeader> {
        self.config = self.config.with_secret_header(name, value)?;
        Ok(self)
    }

    /// Offers a subprotocol; see [`WsConfig::with_subprotocol`].
    ///
    /// # Errors
    /// [`BadHeader`] if it is not a token.
    pub fn with_subprotocol(mut self, name: impl Into<String>) -> Result<Self, BadHeader> {
        self.config = self.config.with_subprotocol(name)?;
        Ok(self)
    }

    /// Returns the first host of the list to which traffic could be read on the way: there is no TLS,
    /// and it is not this machine. Nothing is resolved: of names, only `localhost` is this machine.
    ///
    /// ```
    /// use rpc_core::net::ws::WsDialer;
    /// assert_eq!(WsDialer::new("ws://example.com")?.exposed_host(), Some("example.com"));
    /// assert_eq!(WsDialer::new("ws://127.0.0.1:9100")?.exposed_host(), None);
    /// # Ok::<(), rpc_core::net::DialError>(())
    /// ```
    #[must_use]
    pub fn exposed_host(&self) -> Option<&str> {
        let mut targets = self.targets.iter();
        let exposed = targets.find(|target| !target.is_tls && !target.is_this_machine())?;
        Some(&exposed.host)
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &WsConfig {
        &self.config
    }

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

// The URLs without their queries, and no secrets.
crate::debug::debug_fields!([] WsDialer, this => {
    url: this.targets.iter().map(Target::printable).collect::<Vec<_>>().join(","),
    config: this.config,
});

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
