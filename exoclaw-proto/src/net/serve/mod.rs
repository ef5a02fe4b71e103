//! [`Server`]: the protocol over WebSockets for any [`Backend`].

mod backend;
mod connection;
mod memory;
mod options;
mod peer;
mod reply;

use rpc_core::net::server::ProtocolServer;

use connection::Gateway;

pub use backend::{AppError, Backend, DynBackend, backend_fn};
pub use memory::MemoryBackend;
pub use options::{ServerOptions, http_config};
pub use peer::Peer;
pub use reply::{ChatReply, Gone};

/// An Exoclaw gateway's server, on a socket or [mounted](ProtocolServer::mount), made from a
/// [`Backend`] and [`ServerOptions`]. A backend that the program uses beside the server goes in as
/// an [`Arc`](std::sync::Arc).
///
/// It serves WebSockets at [`WS_PATH`](crate::limits::WS_PATH); every other request goes to the HTTP
/// service in the options, if there is one. Without a token, it listens on loopback addresses only.
///
/// ```
/// use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = MemoryBackend::new().with_plugin("echo");
/// let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = exoclaw_proto::client::ClientConfig::default();
/// # let (client, _, connection) = exoclaw_proto::net::connect_lazy(&server.url(), config)?;
/// # tokio::spawn(connection.run());
/// # let handle = server.handle();
/// # tokio::spawn(async move {
/// #     client.ready().await.unwrap();
/// #     handle.drain(std::time::Duration::from_secs(1)).await;
/// # });
/// server.run().await;
/// # Ok(())
/// # }
/// ```
pub type Server<B> = ProtocolServer<Gateway<B>>;
