//! A SmartHole router that people can talk to, and a small client for one.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod choose;
mod client;
mod console;
mod desktop;
mod http;
mod input;
mod json;
mod serve;
mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use examples::cli;

const EXAMPLES: &str = "\
Examples ('router' stands for 'cargo run -p examples --bin router --'):
  Try it, in three terminals; nothing leaves this machine:
    router
    router client --name notes --description 'Keeps notes and shopping lists.'
    router client --name lights --description 'Switches lamps.' --reject 'The bulb is broken.'
  Then write to the first one:
    remember to buy milk
    lights: on, please
  From a script, or from a program that understands speech:
    curl -d 'notes: buy milk' -H 'content-type: text/plain' 'http://127.0.0.1:9473/input?wait=1'
    curl -H 'content-type: application/json' http://127.0.0.1:9473/input \\
      -d '{\"text\": \"buy milk\", \"inputMethod\": \"voice\", \"confidence\": 0.93}'
    echo 'notes: buy milk' | router --clients 1 --once --json
  With a language model that chooses (add '--features llm' before '--bin'):
    ANTHROPIC_API_KEY=.. router --model anthropic --model-name NAME
    OPENAI_API_KEY=any router --model openai --model-url http://127.0.0.1:11434/v1 \\
      --model-name llama3.2
  With notifications on the desktop: add '--features desktop' before '--bin', and
    router --desktop

The environment: ANTHROPIC_API_KEY and OPENAI_API_KEY; a server that wants no key takes any.

Exit codes: 0 ended as asked, 1 failed, 2 called in a wrong way.";

/// A SmartHole router: takes what you write, and what programs post to /input, and hands it to the
/// client that can deal with it.
///
/// It shows who got a message and why, what they answered, and what they have to tell. 'NAME: TEXT' goes to
/// the client of this name; for everything else a few rules choose by the words of the clients'
/// descriptions, or a language model does. Lines are read from the terminal, or from a pipe, whose end
/// does not end the router unless you say --once. Ctrl-C lets clients answer for a second; a second one
/// ends at once.
#[derive(Debug, Parser)]
#[command(
    name = "router",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the router; the same as no command.
    Serve(serve::Args),
    /// Runs a client that keeps notes in a file.
    Client(client::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::finish(match cli.command {
        Some(Command::Serve(args)) => serve::serve(args).await,
        Some(Command::Client(args)) => client::run(args).await,
        None => serve::serve(cli.serve).await,
    })
}
