//! A host of an agent mounted into axum, beside a route of the program and behind layers of
//! tower-http. One client prompts it; then the server drains, and axum ends.
//!
//! ```sh
//! cargo run -p connectonion-proto --example axum
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use axum::{Router, http::StatusCode, routing::get, serve::ListenerExt as _};
use connectonion_proto::auth::Signer;
use connectonion_proto::net::{self, Agent, AppError, Prompt, Reply, Server, ServerOptions, Turn};
use connectonion_proto::trust::TrustLevel;
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};

struct Echo;

impl Agent for Echo {
    async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        Ok(Reply::new(format!("you said {}", prompt.text)))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::new(&Signer::generate()?, TrustLevel::Open);
    let (server, service) = Server::mount(Echo, options);
    let handle = server.handle();
    let patience = Duration::from_secs(10); // for requests: a WebSocket lives on
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, patience);
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .fallback_service(service) // /ws, /health, /info and /sessions
        .layer((TraceLayer::new_for_http(), timeout, CorsLayer::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/ws", listener.local_addr()?);
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true))); // small frames leave at once
    // Once the server has drained, axum ends too.
    let host = axum::serve(listener, app).with_graceful_shutdown(server.run().map(drop));
    let host = tokio::spawn(host.into_future());

    let (agent, _events, connection) =
        net::connect(&url, Signer::generate()?, Default::default()).await?;
    tokio::spawn(connection.run());
    println!("{}", agent.chat("hello").await.finish().await?.result);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(host.await??)
}
