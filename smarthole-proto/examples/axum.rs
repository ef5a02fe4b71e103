//! A router's server mounted into axum, beside a route of the program and behind layers of
//! tower-http. One client gets a message; then the server drains, and axum ends.
//!
//! ```sh
//! cargo run -p smarthole-proto --example axum
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::{Router, http::StatusCode, routing::get, serve::ListenerExt as _};
use futures_util::FutureExt as _;
use smarthole_proto::frame::Registration;
use smarthole_proto::hub::Input;
use smarthole_proto::net::{Server, ServerOptions};
use smarthole_proto::plugin::{Plugin, PluginConfig, handler_fn};
use smarthole_proto::router::Keywords;
use smarthole_proto::rpc_core::net::server::PeerAddr;
use tokio::net::TcpListener;
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};

/// The server serves this machine only, so it has to know the peer.
async fn add_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
    request.extensions_mut().insert(PeerAddr(peer));
    request
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let (server, service) = Server::mount(Keywords::new(), ServerOptions::default());
    let (runtime, handle) = (server.runtime(), server.handle());
    let patience = Duration::from_secs(10); // for requests: a WebSocket lives on
    let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, patience);
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route_service("/", service)
        .layer(axum::middleware::map_request(add_peer))
        .layer((TraceLayer::new_for_http(), timeout, CorsLayer::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/", listener.local_addr()?);
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true))); // small frames leave at once
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    // Once the server has drained, axum ends too.
    let host = axum::serve(listener, app).with_graceful_shutdown(server.run().map(drop));
    let host = tokio::spawn(host.into_future());

    let config = PluginConfig::new(Registration::new("notes", "I keep notes."))?;
    let plugin = Plugin::new(&url, config, handler_fn(|_, _| async { Ok(()) }))?;
    let mut events = runtime.events();
    tokio::spawn(plugin.run());
    events.next().await; // it has registered
    println!("{:?}", runtime.ask(Input::text("buy milk")).await?);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(host.await??)
}
