//! A transport of your own. A `Dialer` makes the connections of a client; this one wraps each
//! WebSocket so that every message is printed. A proxy or a tunnel is written in the same way.
//!
//! ```sh
//! cargo run -p snek-proto --example transport
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::future::ready;

use futures_util::{SinkExt, StreamExt};
use snek_proto::client::ClientConfig;
use snek_proto::net::{self, MemoryBackend, Server, ServerOptions};
use snek_proto::rpc_core::Outgoing;
use snek_proto::rpc_core::net::{DialError, Dialer, Transport, ws::WsDialer};

struct Printing(WsDialer);

impl Dialer for Printing {
    // A transport is a stream of messages and a sink of frames.
    type Transport = Box<dyn Transport>;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let socket = self.0.dial().await?;
        let transport =
            socket
                .inspect(|message| println!("<- {message:?}"))
                .with(|frame: Outgoing| {
                    println!("-> {frame:?}");
                    ready(Ok(frame))
                });
        Ok(Box::new(transport))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let backend = MemoryBackend::new().with_channel("general", "General");
    let server = Server::bind("127.0.0.1:0", backend.open(), ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let config = ClientConfig::new("ann", "secret");
    let dialer = Printing(net::dialer(&url, &config)?);
    let (client, _events, connection) = net::connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await?;
    client.ping().await?;
    Ok(())
}
