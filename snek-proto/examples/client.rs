//! A client of a server in the same process: logs in, asks for its channels, sends a message and
//! reads it back.
//!
//! ```sh
//! cargo run -p snek-proto --example client
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::net::{self, MemoryBackend, Server, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "secret", "Ann");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let config = ClientConfig::new("ann", "secret");
    let (client, mut events, connection) = net::connect(&url, config).await?;
    tokio::spawn(connection.run()); // you spawn it: there are no hidden tasks

    for channel in client.get_channels().await? {
        println!("channel: {}", channel.name);
    }
    client.send_message("general", "hello", Final::Yes).await?;
    while let Some(event) = events.next().await {
        match event {
            ClientEvent::Message(message) => {
                println!("{}: {}", message.user_nick, message.message);
                client.close();
            }
            other => println!("{other:?}"),
        }
    }
    Ok(())
}
