//! A bot that greets whoever mentions it. Alice does, the bot replies, and the bot shuts down.
//!
//! ```sh
//! cargo run -p snek-proto --example bot
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use snek_proto::bot::{Bot, BotConfig, Context, Handler, State};
use snek_proto::error::BotError;
use snek_proto::frame::{Final, Message};
use snek_proto::net::{MemoryBackend, Server, ServerOptions};
use tokio::sync::Notify;

struct Greeter {
    done: Arc<Notify>,
}

impl Handler for Greeter {
    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        println!("{}: {}", message.user_nick, message.message);
        cx.reply(format!("hi {}", message.user_nick)).await?;
        Ok(())
    }

    async fn on_own_message(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        println!("{}: {}", message.user_nick, message.message);
        self.done.notify_one();
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("alice", "wonderland", "Alice")
        .with_user("greeter", "secret", "Greeter");
    let backend = Arc::new(backend);
    let server = Server::bind("127.0.0.1:0", backend.clone(), ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let done = Arc::new(Notify::new());
    let handler = Greeter { done: done.clone() };
    let bot = Bot::new(&url, BotConfig::new("greeter", "secret"), handler)?;
    let mut state = bot.lifecycle();
    let bot = tokio::spawn(bot.run_until(done.notified_owned()));

    state.wait_for(|state| *state == State::Running).await?;
    backend.post("alice", "general", "@greeter good morning", Final::Yes)?;
    println!("{:?}", bot.await??); // in a real program: until Ctrl-C, a signal, a timer
    Ok(())
}
