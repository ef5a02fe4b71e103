//! Connecting over WebSockets: [`connect`], [`connect_lazy`] and [`dialer`].

pub use rpc_core::net::ws::ConnectError;
use rpc_core::net::ws::WsDialer;

use super::{Client, Connection, Events, connect_with};
use crate::client::ClientConfig;
use crate::limits::WS_PATH;

/// Connects to a gateway and waits for its hello. Several URLs, separated by commas, are the nodes of
/// one service, which a [`WsDialer`] goes round.
///
/// Makes one attempt. The connection that is returned reconnects whenever it is lost, once you
/// [run](Connection::run) it.
///
/// ```
/// use exoclaw_proto::client::ClientConfig;
/// use exoclaw_proto::net;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
/// # let auth = exoclaw_proto::auth::Auth::token("secret")?;
/// # let options = ServerOptions::new(auth);
/// # let server = Server::bind("127.0.0.1:0", MemoryBackend::new(), options).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// let config = ClientConfig::new("secret");
/// let (client, _, connection) = net::connect(&url, config).await?; // ws://127.0.0.1:7200
/// tokio::spawn(connection.run());
/// println!("{}", client.chat("hello").await.finish().await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`], within the deadlines of the dial and the handshake.
///
/// # Cancel safety
/// Dropping the future drops the connection.
pub async fn connect(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    let (client, events, connection) = connect_lazy(url, config)?;
    Ok((client, events, connection.establish().await?))
}

/// Like [`connect`], but returns at once: the connection makes the first attempt as well when it
/// runs, and keeps trying. For programs that may start before their gateway.
///
/// # Errors
/// As for [`dialer`].
pub fn connect_lazy(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config))
}

/// Returns a WebSocket dialer for a gateway, with the message limit of `config`. `http(s)` URLs are
/// read as `ws(s)`; a URL without a path, or an `http(s)` URL with a prefix, gets `/ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Insecure`] if `config` has a token,
/// the URL is not `wss://`, its host is not this machine, and
/// [`insecure`](ClientConfig::insecure) is not set.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let dialer = WsDialer::for_client(url, &config.link, config.limits.max_message_bytes)?
        .or_path(WS_PATH)?;
    if config.token.is_none() || config.insecure {
        return Ok(dialer);
    }
    dialer.protect("the token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_the_default_path() {
        for (url, end) in [
            ("ws://127.0.0.1:7200", "/ws\""),
            ("ws://127.0.0.1:7200/", "/ws\""),
            ("ws://localhost:7200/other", "/other\""),
            ("http://localhost:7200/other", "/other/ws\""),
        ] {
            let dialer = dialer(url, &ClientConfig::default()).unwrap();
            let shown = format!("{dialer:?}");
            assert!(shown.contains(end), "{url}: {shown}");
        }
    }

    #[test]
    fn a_token_is_sent_unencrypted_only_where_allowed() {
        let config = ClientConfig {
            token: Some("t".into()),
            ..ClientConfig::default()
        };
        assert!(dialer("ws://127.0.0.1:7200", &config).is_ok());
        let refused = dialer("ws://example.org", &config);
        assert!(matches!(refused, Err(ConnectError::Insecure { .. })));
        let allowed = ClientConfig {
            insecure: true,
            ..config
        };
        assert!(dialer("ws://example.org", &allowed).is_ok());
        assert!(dialer("ws://example.org", &ClientConfig::default()).is_ok());
    }
}
