//! A client of a router in the same process: registers, takes a message, and says what it did.
//!
//! ```sh
//! cargo run -p smarthole-proto --example client
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::hub::Input;
use smarthole_proto::net::{self, Event, Server, ServerOptions};
use smarthole_proto::router::Keywords;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::default();
    let server = Server::bind("127.0.0.1:0", Keywords::new(), options).await?;
    let (url, runtime) = (server.url(), server.runtime());
    tokio::spawn(server.run());

    let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
    let (client, mut events, connection) = net::connect(&url, config).await?;
    tokio::spawn(connection.run()); // you spawn it: there are no hidden tasks

    // What a user says to the router. It names the client.
    let asked = tokio::spawn(async move { runtime.ask(Input::text("notes: buy milk")).await });
    while let Some(event) = events.next().await {
        if let Event::Message(message) = event {
            println!("message: {} ({:?} left)", message.text, message.time_left());
            message.ack().await?;
            message.notify(Notification::new("noted")).await?;
            client.close();
        }
    }
    println!("the router: {:?}", asked.await??.outcomes);
    Ok(())
}
