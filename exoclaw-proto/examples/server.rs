//! A gateway with a backend of its own, which answers in capital letters. One client chats; then
//! the server drains: it lets open chats finish and closes every connection.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example server
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::{ChatSend, Plugin, Status, Usage};
use exoclaw_proto::net::{self, AppError, Backend, ChatReply, Peer, Server, ServerOptions};

struct Shout;

impl Backend for Shout {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::new("1.0.0", 0, 0)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        for word in chat.content.split_inclusive(' ') {
            reply.text(&word.to_uppercase()).await?;
        }
        reply.usage(Usage::new(2, 2)).await?;
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind("127.0.0.1:0", Shout, ServerOptions::default()).await?;
    let (url, handle) = (server.url(), server.handle());
    tokio::spawn(server.run());

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());
    println!("{}", client.chat("hello there").await.finish().await?);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(())
}
