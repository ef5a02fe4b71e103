//! [`WsConfig`]: limits, buffers, deadline, headers and subprotocols of a WebSocket.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::secret::Secret;

crate::config! {
    /// The configuration of a WebSocket, for both ends. Fields that only a client uses say so.
    ///
    /// ```
    /// use rpc_core::net::ws::WsConfig;
    /// let config = WsConfig { max_message: 1024 * 1024, ..WsConfig::default() };
    /// let config = config.with_header("x-client", "switchboard")?;
    /// assert_eq!(config.headers["x-client"], "switchboard");
    /// # Ok::<(), rpc_core::net::ws::BadHeader>(())
    /// ```
    #[derive(Clone)]
    pub struct WsConfig {
        /// Largest incoming message, and largest incoming frame, in bytes. Default 4 MiB. A larger one
        /// is refused before it is buffered.
        pub max_message: usize = 4 * 1024 * 1024,
        /// Largest outgoing message in bytes. Default 16 MiB. A larger one is an error of
        /// `start_send` and sends nothing.
        pub max_outgoing: usize = 16 * 1024 * 1024,
        /// One deadline for name resolution, TCP, TLS and the upgrade together. Default 10 s.
        pub connect_timeout: Duration = Duration::from_secs(10),
        /// Extra headers of the client's upgrade request. Those that the handshake sets itself are not sent;
        /// [`with_header`](Self::with_header) refuses them. Default none.
        pub headers: HeaderMap = HeaderMap::new(),
        /// Subprotocols, the preferred one first. What is no HTTP token is not sent;
        /// [`with_subprotocol`](Self::with_subprotocol) refuses it. Default none.
        pub subprotocols: Vec<String> = Vec::new(),
    }
}

impl WsConfig {
    /// Adds a header to the client's upgrade request. `Authorization` and cookies are kept out of
    /// `Debug` output; for other secrets see [`with_secret_header`](Self::with_secret_header).
    ///
    /// # Errors
    /// [`BadHeader`] if name or value is not valid in HTTP, or if the handshake sets the header
    /// itself. `Host` may be set and replaces the one from the URL.
    pub fn with_header(self, name: &str, value: &str) -> Result<Self, BadHeader> {
        self.add_header(name, value, false)
    }

    /// Adds a header whose value never appears in `Debug` output.
    ///
    /// # Errors
    /// As [`with_header`](Self::with_header).
    pub fn with_secret_header(self, name: &str, value: &Secret<String>) -> Result<Self, BadHeader> {
        self.add_header(name, value.expose(), true)
    }

    fn add_header(mut self, name: &str, value: &str, secret: bool) -> Result<Self, BadHeader> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BadHeader::Name)?;
        if is_reserved(&name) {
            return Err(BadHeader::Reserved);
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| BadHeader::Value)?;
        value.set_sensitive(
            secret
                || [
                    header::AUTHORIZATION,
                    header::COOKIE,
                    header::PROXY_AUTHORIZATION,
                ]
                .contains(&name),
        );
        self.headers
            .try_append(name, value)
            .map_err(|_| BadHeader::TooMany)?;
        Ok(self)
    }

    /// Adds a subprotocol, the preferred one first. A client offers them, and the server may
    /// select one of them or none ([`WsStream::subprotocol`](super::WsStream::subprotocol));
    /// [`WsStream::accept`](super::WsStream::accept) selects the first that the client offers.
    /// Never printed, because some protocols carry a token here.
    ///
    /// # Errors
    /// [`BadHeader::Value`] if it is not an HTTP token.
    pub fn with_subprotocol(mut self, name: impl Into<String>) -> Result<Self, BadHeader> {
        let name = name.into();
        if !is_token(&name) {
            return Err(BadHeader::Value);
        }
        self.subprotocols.push(name);
        Ok(self)
    }
}

// Prints no values of sensitive headers and no subprotocols.
crate::debug::debug_fields!([] WsConfig, this => {
    max_message: this.max_message,
    max_outgoing: this.max_outgoing,
    connect_timeout: this.connect_timeout,
    headers: this.headers,
    subprotocols: this.subprotocols.len(),
});

/// Why a header or subprotocol was not accepted. The configuration is lost; build it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// Not a header name.
    #[error("not a valid header name")]
    Name,
    /// Not a header value, or not a token where one is needed.
    #[error("not a valid header value")]
    Value,
    /// The WebSocket handshake sets this header by itself.
    #[error("the WebSocket handshake sets this header itself")]
    Reserved,
    /// No room for a further header.
    #[error("too many headers")]
    TooMany,
}

/// Whether a subprotocol can be sent: the name of a header is a token too (RFC 9110, section 5.6.2).
pub(super) fn is_token(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
}

pub(super) fn is_reserved(name: &HeaderName) -> bool {
    name.as_str().starts_with("sec-websocket-")
        || [
            header::CONNECTION,
            header::UPGRADE,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
        ]
        .contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_secret_headers_and_subprotocols() {
        let config = WsConfig::default()
            .with_header("Authorization", "Bearer hunter2")
            .and_then(|c| c.with_secret_header("x-key", &Secret::from("hunter3")))
            .and_then(|c| c.with_subprotocol("hunter4"))
            .and_then(|c| c.with_header("x-plain", "seen"))
            .unwrap();
        let printed = format!("{config:?}");
        assert!(!printed.contains("hunter"), "{printed}");
        assert!(printed.contains("seen"), "{printed}");
    }

    #[test]
    fn reserved_handshake_headers_are_refused() {
        for name in [
            "Connection",
            "upgrade",
            "Sec-WebSocket-Key",
            "sec-websocket-protocol",
        ] {
            let refused = WsConfig::default().with_header(name, "x");
            assert_eq!(refused.err(), Some(BadHeader::Reserved), "{name}");
        }
    }

    #[test]
    fn line_breaks_are_refused_in_names_values_and_subprotocols() {
        assert_eq!(
            WsConfig::default().with_header("a\r\n", "x").err(),
            Some(BadHeader::Name)
        );
        assert_eq!(
            WsConfig::default().with_header("a", "x\r\ny").err(),
            Some(BadHeader::Value)
        );
        assert_eq!(
            WsConfig::default().with_subprotocol("a, b").err(),
            Some(BadHeader::Value)
        );
    }
}
