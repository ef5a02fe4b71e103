//! [`Server`]: the protocol over WebSockets and over HTTP for any [`Agent`].

mod agent;
mod connection;
mod daemon;
mod options;
mod pages;
mod queue;
mod run;
mod stream;

use rpc_core::net::server::ProtocolServer;

use daemon::Daemon;

pub use agent::{Agent, DynAgent, agent_fn};
pub use options::{ServerOptions, http_config};
pub use run::{ChatReply, EmitError};

/// An Acolyte server, on a socket or [mounted](ProtocolServer::mount), made from an [`Agent`] and
/// [`ServerOptions`]. An agent that the program uses beside the server goes in as an
/// [`Arc`](std::sync::Arc).
///
/// It serves WebSockets at `/v1/rpc`, and chats as streams and the status
/// over HTTP. Without a key, it listens on loopback addresses only. It ends when its handle drains
/// it, or at a client's shutdown request.
///
/// ```
/// use acolyte_proto::net::{Agent, ChatReply, Server, ServerOptions};
/// use acolyte_proto::error::AppError;
/// use acolyte_proto::frame::{ChatRequest, Reply, Status};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(
///         &self,
///         run: ChatReply,
///         request: ChatRequest,
///     ) -> Result<Reply, AppError> {
///         let _ = run.text(&request.message).await;
///         Ok(Reply { output_streamed: Some(true), ..Reply::new(request.message, request.model) })
///     }
///
///     async fn status(&self) -> Status {
///         Status::new("echo", "")
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::bind("127.0.0.1:0", Echo, ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = acolyte_proto::client::ClientConfig::default();
/// # let (client, _, connection) = acolyte_proto::net::connect_lazy(&server.url(), config)?;
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
pub type Server<A> = ProtocolServer<Daemon<A>>;
