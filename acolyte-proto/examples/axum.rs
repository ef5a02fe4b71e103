//! A server mounted into axum, beside a route of the program and behind layers of
//! tower-http. One client chats; then the server drains, and axum ends.
//!
//! ```sh
//! cargo run -p acolyte-proto --example axum
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use acolyte_proto::client::ClientConfig;
use acolyte_proto::error::AppError;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{self, Agent, ChatReply, Server, ServerOptions};
use axum::{Router, http::StatusCode, routing::get, serve::ListenerExt as _};
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};

struct Echo;

impl Agent for Echo {
    async fn run(&self, _: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        Ok(Reply::new(request.message, "echo"))
    }

    async fn status(&self) -> Status {
        Status::new("echo", "")
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let (server, service) = Server::mount(Echo, ServerOptions::default());
    let handle = server.handle();
    let patience = Duration::from_secs(10); // for requests: a WebSocket lives on
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, patience);
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .fallback_service(service) // WebSockets and pages
        .layer((TraceLayer::new_for_http(), timeout, CorsLayer::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true))); // small frames leave at once
    // Once the server has drained, axum ends too.
    let host = axum::serve(listener, app).with_graceful_shutdown(server.run().map(drop));
    let host = tokio::spawn(host.into_future());

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());
    let mut chat = client.chat(ChatRequest::new("hello", "echo")).await;
    println!("{}", chat.finish().await);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(host.await??)
}
