//! A gateway mounted into axum, beside a route of the program and behind layers of
//! tower-http. One client chats; then the server drains, and axum ends.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example axum
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use axum::{Router, http::StatusCode, routing::get, serve::ListenerExt as _};
use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::{self, MemoryBackend, Server, ServerOptions};
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::new(Auth::token("secret")?);
    let (server, service) = Server::mount(MemoryBackend::new(), options);
    let handle = server.handle();
    let patience = Duration::from_secs(10); // for requests: a WebSocket lives on
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, patience);
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .nest_service("/gateway", service) // which sees /ws
        .layer((TraceLayer::new_for_http(), timeout, CorsLayer::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/gateway/ws", listener.local_addr()?);
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true))); // small frames leave at once
    // Once the server has drained, axum ends too.
    let host = axum::serve(listener, app).with_graceful_shutdown(server.run().map(drop));
    let host = tokio::spawn(host.into_future());

    let config = ClientConfig::new("secret");
    let (client, _events, connection) = net::connect(&url, config).await?;
    tokio::spawn(connection.run());
    println!("{}", client.chat("hello there").await.finish().await?);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(host.await??)
}
