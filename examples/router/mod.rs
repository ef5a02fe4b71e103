//! A SmartHole router that people can talk to, and a small client for one.

mod choose;
mod client;
mod console;
mod desktop;
mod http;
mod input;
mod json;
mod serve;
mod show;
mod standing;

use clap::Subcommand;
use examples::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p examples --' until it is installed):
  Try it, in three terminals; nothing leaves this machine:
    switchboard router
    switchboard router client --name notes --description 'Keeps notes and shopping lists.'
    switchboard router client --name lights --description 'Switches lamps.' --reject 'The bulb is broken.'
  Then write to the first one:
    remember to buy milk
    lights: on, please
  From a script, or from a program that understands speech:
    curl -d 'notes: buy milk' -H 'content-type: text/plain' 'http://127.0.0.1:9473/input?wait=1'
    curl -H 'content-type: application/json' http://127.0.0.1:9473/input \\
      -d '{\"text\": \"buy milk\", \"inputMethod\": \"voice\", \"confidence\": 0.93}'
    echo 'notes: buy milk' | switchboard router --clients 1 --once --json
  With a language model that chooses (build with '--features llm'):
    ANTHROPIC_API_KEY=.. switchboard router --provider anthropic
    switchboard router --provider ollama --model llama3.2
  With notifications on the desktop (build with '--features desktop'):
    switchboard router --desktop

The environment: that of the language model is at its options.";

/// A SmartHole router: takes what you write, and what programs post to /input, and hands it to the
/// client that can deal with it.
///
/// It shows who got a message and why, what they answered, and what they have to tell. 'NAME: TEXT' goes to
/// the client of this name; for everything else a few rules choose by the words of the clients'
/// descriptions, or a language model does. Lines are read from the terminal, or from a pipe, whose end
/// does not end the router unless you say --once. Ctrl-C lets clients answer for a second; a second one
/// ends at once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
pub(crate) struct RouterArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the router; the same as no command.
    Serve(Box<serve::Args>),
    /// Runs a client that keeps notes in a file.
    Client(Box<client::Args>),
}

pub(crate) async fn run(args: RouterArgs) -> Result<(), Failure> {
    match args.command {
        Some(Command::Serve(args)) => serve::serve(*args).await,
        Some(Command::Client(args)) => client::run(*args).await,
        None => serve::serve(args.serve).await,
    }
}
