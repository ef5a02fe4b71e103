//! A server mounted into axum, beside a route of the program and behind layers of
//! tower-http. One client connects and calls it; then the server drains, and axum ends.
//!
//! ```sh
//! cargo run -p snek-proto --example axum
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use axum::{Router, http::StatusCode, routing::get, serve::ListenerExt as _};
use futures_util::FutureExt as _;
use snek_proto::client::ClientConfig;
use snek_proto::frame::Final;
use snek_proto::net::{self, MemoryBackend, Server, ServerOptions};
use tokio::net::TcpListener;
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let backend = MemoryBackend::new().with_channel("general", "General");
    let (server, service) = Server::mount(backend.open(), ServerOptions::default());
    let handle = server.handle();
    let patience = Duration::from_secs(10); // for requests: a WebSocket lives on
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, patience);
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route_service("/rpc.ws", service)
        .layer((TraceLayer::new_for_http(), timeout, CorsLayer::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/rpc.ws", listener.local_addr()?);
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true))); // small frames leave at once
    // Once the server has drained, axum ends too.
    let host = axum::serve(listener, app).with_graceful_shutdown(server.run().map(drop));
    let host = tokio::spawn(host.into_future());

    let (client, _events, connection) =
        net::connect(&url, ClientConfig::new("ann", "secret")).await?;
    tokio::spawn(connection.run());
    let reply = client.send_message("general", "hello", Final::Yes).await?;
    println!("the reply is {}", reply.data().get());

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(host.await??)
}
