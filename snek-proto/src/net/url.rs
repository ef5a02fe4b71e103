//! Connecting over WebSockets: [`connect`], [`connect_lazy`] and [`dialer`].

pub use rpc_core::net::ws::ConnectError;
use rpc_core::net::ws::WsDialer;

use super::{Client, Connection, Events, connect_with};
use crate::client::ClientConfig;

/// Connects to a server and logs in. Several URLs, separated by commas, are the nodes of one service,
/// which a [`WsDialer`] goes round.
///
/// Makes one attempt. The connection that is returned reconnects whenever it is lost, once you
/// [run](Connection::run) it.
///
/// ```
/// use snek_proto::client::ClientConfig;
/// use snek_proto::frame::Final;
/// use snek_proto::net;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend = snek_proto::net::MemoryBackend::new().with_channel("general", "General").open();
/// # let server = snek_proto::net::Server::bind("127.0.0.1:0", backend, Default::default()).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// let config = ClientConfig::new("mybot", "mypassword");
/// let (client, mut events, connection) = net::connect(&url, config).await?; // ws://127.0.0.1:8080/rpc.ws
/// tokio::spawn(connection.run());
/// client.send_message("general", "hello", Final::Yes).await?;
/// while let Some(event) = events.next().await {
///     println!("{event:?}");
///     # break;
/// }
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
/// runs, and keeps trying. For programs that may start before their server.
///
/// # Errors
/// As for [`dialer`].
pub fn connect_lazy(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config))
}

/// Returns a WebSocket dialer for a server, with the message limit of `config`. `http(s)` URLs are
/// read as `ws(s)`; a URL without a path gets `/rpc.ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Insecure`] if it is not `wss://`,
/// its host is not this machine, and [`insecure`](ClientConfig::insecure) is not
/// set.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let dialer = WsDialer::for_client(url, &config.link, config.limits.max_message_bytes)?
        .or_path("/rpc.ws")?;
    if config.insecure {
        return Ok(dialer);
    }
    dialer.protect("the password")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_sent_unencrypted_only_where_allowed() {
        let config = ClientConfig::new("ann", "secret");
        assert!(dialer("ws://127.0.0.1:8080", &config).is_ok());
        let refused = dialer("ws://example.org", &config);
        assert!(matches!(refused, Err(ConnectError::Insecure { .. })));
        let allowed = ClientConfig {
            insecure: true,
            ..config
        };
        assert!(dialer("ws://example.org", &allowed).is_ok());
    }
}
