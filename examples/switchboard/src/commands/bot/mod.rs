//! `switchboard bot`: its subcommands, and what its help says.

mod answer;
mod chat;
mod model;
#[cfg(feature = "nats")]
mod remove;
mod serve;

use std::num::NonZero;

use clap::Subcommand;

use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Try it on this machine, in three terminals:
    switchboard bot serve --open
    SNEK_PASSWORD=secret switchboard bot --url ws://127.0.0.1:8080 --username mybot
    switchboard bot chat
  A real server, with an answer whenever somebody says good morning:
    SNEK_PASSWORD=.. switchboard bot --url wss://snek.example.com --username mybot \\
      --trigger '(?i)good morning'
  With a language model (and images, if built with '--features fetch'):
    SNEK_PASSWORD=.. OPENAI_API_KEY=.. switchboard bot --url wss://snek.example.com --username mybot \\
      --provider openai --model NAME
    SNEK_PASSWORD=.. switchboard bot --url wss://snek.example.com --username mybot \\
      --provider ollama --model llama3.2
  In a script, for one answer and with a time limit:
    SNEK_PASSWORD=.. switchboard bot --url ws://127.0.0.1:8080 --username mybot --once --within 30s
    switchboard bot chat '@mybot ping'";

/// Runs a Snek bot that answers with a language model, streaming its answers. Also runs a Snek server, and a
/// chat to talk to bots.
///
/// With the scripted model, the bot knows ping, help, time, dice and echo. It reconnects when the connection is
/// lost; Ctrl-C lets it finish the answers in progress. In a public channel it speaks after someone has
/// written `@NAME join`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
pub(crate) struct BotArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    answer: answer::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Chats in the channels of a Snek server: as a dialogue, with one message, or with lines from a pipe.
    Chat(Box<chat::Args>),
    /// Removes users and channels of the Snek servers that share them on NATS.
    #[cfg(feature = "nats")]
    Remove(Box<remove::Args>),
    /// Runs a Snek server that keeps everything in memory, or shares it with others on NATS.
    Serve(Box<serve::Args>),
}

impl BotArgs {
    /// The threads that it runs on, if it says how many.
    pub(crate) fn workers(&self) -> Option<NonZero<usize>> {
        match &self.command {
            Some(Command::Serve(args)) => Some(args.workers),
            _ => None,
        }
    }
}

pub(crate) async fn run(args: BotArgs) -> Result<(), Failure> {
    match args.command {
        Some(Command::Chat(args)) => chat::chat(*args).await,
        #[cfg(feature = "nats")]
        Some(Command::Remove(args)) => remove::remove(*args).await,
        Some(Command::Serve(args)) => serve::serve(*args).await,
        None => answer::answer(args.answer).await,
    }
}
