//! Connecting over WebSockets: [`connect`], [`connect_lazy`] and [`dialer`].

pub use rpc_core::net::ws::ConnectError;
use rpc_core::net::ws::WsDialer;

use super::{Client, Connection, Events, connect_with};
use crate::client::ClientConfig;

/// Connects to a router and registers. Several URLs, separated by commas, are the nodes of one
/// service, which a [`WsDialer`] goes round.
///
/// Makes one attempt. The connection that is returned reconnects whenever it is lost, once you
/// [run](Connection::run) it.
///
/// ```
/// use smarthole_proto::client::ClientConfig;
/// use smarthole_proto::net::{self, Event};
/// use smarthole_proto::frame::{Notification, Registration};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use smarthole_proto::{hub::Input, net::Server, router::Keywords};
/// # let server = Server::bind("127.0.0.1:0", Keywords::new(), Default::default()).await?;
/// # let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
/// # tokio::spawn(server.run());
/// # let asking = tokio::spawn(async move {
/// #     runtime.registered("notes").await;
/// #     runtime.ask(Input::text("notes: milk")).await
/// # });
/// let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
/// let (client, mut events, connection) = net::connect(&url, config).await?; // ws://127.0.0.1:9473
/// tokio::spawn(connection.run());
/// while let Some(event) = events.next().await {
///     if let Event::Message(message) = event {
///         println!("{}", message.text);
///         message.ack().await?;
///         message.notify(Notification::new("noted")).await?;
///         # client.close();
///     }
/// }
/// println!("ended: {}", client.closed().await);
/// # assert!(asking.await??.is_taken());
/// # drop(handle);
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
/// runs, and keeps trying. For programs that may start before their router.
///
/// # Errors
/// As for [`dialer`].
pub fn connect_lazy(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config))
}

/// Returns a WebSocket dialer for a router, with the message limit of `config` in both directions.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    Ok(WsDialer::for_client(
        url,
        &config.link,
        config.limits.max_message_bytes,
    )?)
}
