//! Connecting over WebSockets: [`connect`], [`dialer`] and their error.

use rpc_core::net::DialError;
use rpc_core::net::ws::{WsConfig, WsDialer};

use super::{Client, Connection, Events, connect_with, link_config};
use crate::client::ClientConfig;
use crate::limits::WS_PATH;

/// The reason why no connection was attempted. A retry does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is invalid: [`DialError::BadUrl`].
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The token would go to another machine without encryption. Use `wss://`, or allow it with
    /// [`insecure_token`](ClientConfig::insecure_token).
    #[error("the token would be sent to {host} without encryption")]
    InsecureToken {
        /// The URL's host.
        host: String,
    },
}

/// Connects to a gateway, and reconnects whenever the connection is lost. Several URLs, separated by
/// commas, are the nodes of one service, which a [`WsDialer`] goes round.
///
/// Nothing happens until the connection's `run` is polled.
///
/// ```
/// use exoclaw_proto::client::ClientConfig;
/// use exoclaw_proto::net;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
/// # let auth = exoclaw_proto::auth::Auth::token("secret")?;
/// # let connection = exoclaw_proto::server::ServerConfig::new(auth);
/// # let options = ServerOptions { connection, ..ServerOptions::default() };
/// # let server = Server::bind("127.0.0.1:0", MemoryBackend::new(), options).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// let config = ClientConfig::new("secret");
/// let (client, _, connection) = net::connect(&url, config)?; // ws://127.0.0.1:7200
/// tokio::spawn(connection.run());
/// client.ready().await?;
/// println!("{}", client.chat("hello").await.text().await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`dialer`].
pub fn connect(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection<WsDialer>), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config, link_config()))
}

/// Returns a WebSocket dialer for a gateway, with the message limit of `config`. `http(s)` URLs are
/// read as `ws(s)`; a URL without a path gets `/ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::InsecureToken`] if `config` has a
/// token, the URL is not `wss://` and its host is not this machine.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let ws = WsConfig::default()
        .with_max_message(config.limits.max_message_bytes)
        .with_max_outgoing(config.limits.max_message_bytes);
    let dialer = WsDialer::new(url)?.or_path(WS_PATH)?.with_config(ws);
    match dialer.exposed_host() {
        Some(host) if config.token.is_some() && !config.insecure_token => {
            Err(ConnectError::InsecureToken {
                host: host.to_owned(),
            })
        }
        _ => Ok(dialer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_that_of_the_specification() {
        for (url, end) in [
            ("ws://127.0.0.1:7200", "/ws\""),
            ("ws://127.0.0.1:7200/", "/ws\""),
            ("http://localhost:7200/other", "/other\""),
        ] {
            let dialer = dialer(url, &ClientConfig::default()).unwrap();
            let shown = format!("{dialer:?}");
            assert!(shown.contains(end), "{url}: {shown}");
        }
    }

    #[test]
    fn a_token_goes_in_the_clear_to_this_machine_only() {
        let config = ClientConfig::new("t");
        for url in [
            "ws://127.0.0.1:7200",
            "http://127.9.9.9",
            "ws://[::1]:7200/ws",
            "ws://[::ffff:127.0.0.1]",
            "ws://LocalHost",
            "wss://example.org",
            "HTTPS://example.org:7200",
        ] {
            assert!(dialer(url, &config).is_ok(), "{url}");
        }
        for (url, named) in [
            ("ws://example.org:7200", "example.org"),
            ("http://192.168.0.7/ws", "192.168.0.7"),
            ("WS://[fe80::1]:7200", "fe80::1"),
            (
                "ws://localhost.example.org?127.0.0.1",
                "localhost.example.org",
            ),
            ("ws://127.0.0.1.example.org", "127.0.0.1.example.org"),
        ] {
            let refused = dialer(url, &config).map(drop);
            assert!(
                matches!(&refused, Err(ConnectError::InsecureToken { host }) if host == named),
                "{url}: {refused:?}"
            );
            assert!(dialer(url, &ClientConfig::default()).is_ok(), "{url}");
            let allowed = ClientConfig {
                insecure_token: true,
                ..config.clone()
            };
            assert!(dialer(url, &allowed).is_ok(), "{url}");
        }
        let bad = dialer("ftp://h", &config).map(drop);
        assert!(matches!(
            bad,
            Err(ConnectError::Dial(DialError::BadUrl { .. }))
        ));
    }
}
