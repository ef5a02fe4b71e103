//! A plugin: a program that gets messages from a router, with one handler for all of them. The
//! router sends it two; it takes one and rejects the other.
//!
//! ```sh
//! cargo run -p smarthole-proto --example plugin
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::hub::Input;
use smarthole_proto::net::{InboundMessage, Server, ServerOptions};
use smarthole_proto::plugin::{AppError, Context, Handler, Plugin, PluginConfig};
use smarthole_proto::router::Keywords;

struct Notes;

impl Handler for Notes {
    async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
        if message.text.len() > 20 {
            return Err(AppError::rejected("that is too long for a note"));
        }
        println!("note: {}", message.text);
        message.notify(Notification::new("noted")).await?;
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::default();
    let server = Server::bind("127.0.0.1:0", Keywords::new(), options).await?;
    let (url, runtime) = (server.url(), server.runtime());
    tokio::spawn(server.run());

    let config = PluginConfig::new(Registration::new(
        "notes",
        "I keep notes and shopping lists.",
    ))?;
    let plugin = Plugin::new(&url, config, Notes)?;
    let client = plugin.client();
    // The plugin reconnects and runs until this ends; in a real program Ctrl-C, or a signal.
    let ended = plugin.run_until(async move {
        if client.ready().await.is_err() {
            return;
        }
        for text in ["notes: buy milk", "notes: the whole of War and Peace"] {
            println!("{text}: {:?}", runtime.ask(Input::text(text)).await);
        }
    });
    println!("{}", ended.await);
    Ok(())
}
