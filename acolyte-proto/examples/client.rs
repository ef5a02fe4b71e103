//! A client of an agent in the same process: shows its key, asks what the server is, and follows a
//! chat.
//!
//! ```sh
//! cargo run -p acolyte-proto --example client
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ChatUpdate, ClientConfig};
use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{self, Agent, ChatReply, Server, ServerOptions};

struct Greeter;

impl Agent for Greeter {
    async fn run(&self, run: ChatReply, _: ChatRequest) -> Result<Reply, AppError> {
        // Fails once the client has aborted the chat or left; then the reply goes nowhere.
        let _ = run.text("hello there").await;
        Ok(Reply {
            output_streamed: Some(true),
            ..Reply::new("hello there", "greeter")
        })
    }

    async fn status(&self) -> Status {
        Status::new("greeter", "")
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::new(Auth::key(ApiKey::new("secret")?));
    let server = Server::bind("127.0.0.1:0", Greeter, options).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let config = ClientConfig::new(ApiKey::new("secret")?);
    let (client, _events, connection) = net::connect(&url, config).await?;
    tokio::spawn(connection.run()); // you spawn it: there are no hidden tasks
    println!("{:?}", client.status().await?);

    let mut chat = client.chat(ChatRequest::new("hi", "greeter")).await;
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(Event::TextDelta(text)) => println!("text: {text}"),
            other => println!("{other:?}"),
        }
    }
    Ok(())
}
