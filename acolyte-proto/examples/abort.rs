//! Aborts a chat that would go on for ever. The agent is told, stops its work, and the chat ends.
//!
//! ```sh
//! cargo run -p acolyte-proto --example abort
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use acolyte_proto::client::{ChatUpdate, ClientConfig};
use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{self, Agent, ChatReply, Server, ServerOptions};

struct Endless;

impl Agent for Endless {
    async fn run(&self, run: ChatReply, _: ChatRequest) -> Result<Reply, AppError> {
        while run.text("and on ").await.is_ok() {
            tokio::select! {
                () = run.cancelled() => println!("the agent stops"),
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
            }
        }
        Ok(Reply::new("stopped", "endless"))
    }

    async fn status(&self) -> Status {
        Status::new("endless", "")
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind("127.0.0.1:0", Endless, ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());

    let mut chat = client.chat(ChatRequest::new("go on", "endless")).await;
    while let Some(update) = chat.next().await {
        println!("{update:?}");
        if matches!(update, ChatUpdate::Event(Event::TextDelta(_))) {
            break;
        }
    }
    println!("aborted: {}", chat.abort().await?);
    println!("{}", chat.finish().await);
    Ok(())
}
