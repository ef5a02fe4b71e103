//! A server with an agent of its own, which repeats what it is told word by word. One client chats;
//! then the server drains: it lets open chats finish and closes every connection.
//!
//! ```sh
//! cargo run -p acolyte-proto --example server
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use acolyte_proto::client::ClientConfig;
use acolyte_proto::error::AppError;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{self, Agent, ChatReply, Server, ServerOptions};

struct Echo;

impl Agent for Echo {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        for word in request.message.split_inclusive(' ') {
            if run.text(word).await.is_err() {
                break; // aborted, or the client has left
            }
        }
        Ok(Reply {
            output_streamed: Some(true),
            ..Reply::new(request.message, "echo")
        })
    }

    async fn status(&self) -> Status {
        Status::new("echo", "")
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind("127.0.0.1:0", Echo, ServerOptions::default()).await?;
    let (url, handle) = (server.url(), server.handle());
    tokio::spawn(server.run());

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());
    let request = ChatRequest::new("hello there", "echo");
    let outcome = client.chat(request).await.finish().await;
    println!(
        "{outcome}: {:?}",
        outcome.reply().map(|reply| &reply.output)
    );

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(())
}
