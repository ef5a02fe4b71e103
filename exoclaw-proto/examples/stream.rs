//! Shows a chat's text as it arrives, and cancels the next chat after its first words. The protocol
//! has no cancel: the gateway goes on, and the client discards the rest.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example stream
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{self, MemoryBackend, Server, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // This backend repeats what it is told, word by word.
    let backend = MemoryBackend::new();
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());

    let mut chat = client.chat("roses are red").await;
    while let Some(event) = chat.next().await {
        match event? {
            StreamEvent::Text(text) => println!("text: {text}"),
            StreamEvent::ToolUse(tool) => println!("tool: {}", tool.name),
            StreamEvent::Usage(usage) => println!("tokens: {}", usage.total()),
            other => println!("{other:?}"),
        }
    }

    let mut chat = client.chat("violets are blue").await;
    if let Some(event) = chat.next().await {
        println!("before the cancel: {:?}", event?);
    }
    drop(chat);
    client.ping().await?;
    println!("the connection goes on");
    Ok(())
}
