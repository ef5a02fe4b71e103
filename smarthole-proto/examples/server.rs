//! A server with a router of its own, which chooses the client that registered last. One client
//! connects and gets a message; then the server drains: it lets clients answer and closes every
//! connection.
//!
//! ```sh
//! cargo run -p smarthole-proto --example server
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use smarthole_proto::frame::Registration;
use smarthole_proto::hub::Input;
use smarthole_proto::net::{Server, ServerOptions};
use smarthole_proto::plugin::{Plugin, PluginConfig, handler_fn};
use smarthole_proto::router::{Choice, RouteRequest, Router, RouterError};

struct Newest;

impl Router for Newest {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        let newest = request.candidates.last();
        let choice = newest.map(|it| Choice {
            reason: Some("the newest one".into()),
            ..Choice::new(it.name.clone())
        });
        Ok(choice.into_iter().collect())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind("127.0.0.1:0", Newest, ServerOptions::default()).await?;
    let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
    tokio::spawn(server.run());

    let config = PluginConfig::new(Registration::new("notes", "I keep notes."))?;
    let plugin = Plugin::new(&url, config, handler_fn(|_, _| async { Ok(()) }))?;
    tokio::spawn(plugin.run());
    println!("{:?}", runtime.registered("notes").await);

    let settled = runtime.ask(Input::text("buy milk")).await?;
    for one in settled.outcomes {
        println!("{}: {:?}", one.client, one.outcome);
    }
    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(())
}
