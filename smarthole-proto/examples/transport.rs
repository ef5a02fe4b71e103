//! A transport of your own: a `Dialer` that makes each connection in memory, and hands its other
//! end to a router without sockets. A proxy or a tunnel is written in the same way.
//!
//! ```sh
//! cargo run -p smarthole-proto --example transport
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::Registration;
use smarthole_proto::hub::{HubConfig, Input};
use smarthole_proto::net::{self, Event, RouterOptions, RouterRuntime};
use smarthole_proto::router::Keywords;
use smarthole_proto::rpc_core::net::{DialError, Dialer, DriverConfig, mem};
use smarthole_proto::server::ServerConfig;

struct InProcess(RouterRuntime);

impl Dialer for InProcess {
    type Transport = mem::MemTransport;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let (here, there) = mem::duplex(16);
        let config = ServerConfig::default();
        tokio::spawn(self.0.serve(there, config, DriverConfig::default()));
        Ok(here)
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = RouterRuntime::new(HubConfig::default());
    let router = runtime.clone();
    let keywords = Arc::new(Keywords::new());
    tokio::spawn(async move { router.run(keywords, RouterOptions::default()).await });

    let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
    let dialer = InProcess(runtime.clone());
    let (client, mut events, connection) = net::connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await?;

    let asked = tokio::spawn(async move { runtime.ask(Input::text("notes: buy milk")).await });
    while let Some(event) = events.next().await {
        if let Event::Message(message) = event {
            println!("message: {}", message.text);
            message.ack().await?;
            client.close();
        }
    }
    println!("{:?}", asked.await??.outcomes);
    Ok(())
}
