//! [`Server`]: the protocol over WebSockets for any [`Backend`].

mod backend;
mod connection;
mod memory;
mod options;
mod peer;
mod reply;

use rpc_core::net::server::ProtocolServer;

use connection::Platform;

pub use backend::{Backend, DynBackend};
pub use memory::MemoryBackend;
pub use options::{ServerOptions, http_config};
pub use peer::Peer;
pub use reply::{CallReply, Replied};

/// A Snek server, on a socket or [mounted](ProtocolServer::mount), made from a [`Backend`] and
/// [`ServerOptions`]. A backend that the program uses beside the server goes in as
/// an [`Arc`](std::sync::Arc).
///
/// ```
/// use snek_proto::net::{MemoryBackend, Server, ServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = MemoryBackend::new().with_channel("general", "General");
/// let server = Server::bind("127.0.0.1:0", backend.open(), ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = snek_proto::client::ClientConfig::new("ann", "secret");
/// # let (client, _, connection) = snek_proto::net::connect_lazy(&server.url(), config)?;
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
pub type Server<B> = ProtocolServer<Platform<B>>;
