//! Connecting over WebSockets: [`connect`], [`dialer`] and their error.

use rpc_core::net::DialError;
use rpc_core::net::ws::{WsConfig, WsDialer};

use super::{Client, Connection, Events, connect_with, link_config};
use crate::client::ClientConfig;

/// The reason why no connection was attempted. A retry does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is invalid: [`DialError::BadUrl`].
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The password would go to another machine without encryption. Use `wss://`, or allow it with
    /// [`insecure_password`](ClientConfig::insecure_password).
    #[error("the password would be sent to {host} without encryption")]
    InsecurePassword {
        /// The URL's host.
        host: String,
    },
}

/// Connects to a server, and reconnects whenever the connection is lost. Several URLs, separated by
/// commas, are the nodes of one service, which a [`WsDialer`] goes round.
///
/// Nothing happens until the connection's `run` is polled.
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
/// let (client, mut events, connection) = net::connect(&url, config)?; // ws://127.0.0.1:8080/rpc.ws
/// tokio::spawn(connection.run());
/// client.ready().await?;
/// client.send_message("general", "hello", Final::Yes).await?;
/// while let Some(event) = events.next().await {
///     println!("{event:?}");
///     # if matches!(event, rpc_core::net::LinkEvent::Event(_)) { break }
/// }
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

/// Returns a WebSocket dialer for a server, with the message limit of `config`. `http(s)` URLs are
/// read as `ws(s)`; a URL without a path gets `/rpc.ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::InsecurePassword`] if it is not
/// `wss://` and its host is not this machine.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let ws = WsConfig::default()
        .with_max_message(config.limits.max_message_bytes)
        .with_max_outgoing(config.limits.max_message_bytes);
    let dialer = WsDialer::new(url)?.or_path("/rpc.ws")?.with_config(ws);
    match dialer.exposed_host() {
        Some(host) if !config.insecure_password => Err(ConnectError::InsecurePassword {
            host: host.to_owned(),
        }),
        _ => Ok(dialer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_in_the_clear_to_this_machine_only() {
        let config = ClientConfig::new("ann", "secret");
        for url in [
            "ws://127.0.0.1:8080",
            "http://[::1]",
            "ws://localhost/rpc.ws",
            "wss://example.org",
            "https://example.org",
        ] {
            assert!(dialer(url, &config).is_ok(), "{url}");
        }
        for (url, named) in [
            ("ws://example.org", "example.org"),
            ("http://192.168.0.7:8080/rpc.ws", "192.168.0.7"),
            ("ws://127.0.0.1.example.org", "127.0.0.1.example.org"),
        ] {
            let refused = dialer(url, &config).map(drop);
            assert!(
                matches!(&refused, Err(ConnectError::InsecurePassword { host }) if host == named),
                "{url}: {refused:?}"
            );
            let allowed = ClientConfig {
                insecure_password: true,
                ..config.clone()
            };
            assert!(dialer(url, &allowed).is_ok(), "{url}");
        }
    }
}
