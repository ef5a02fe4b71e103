//! `switchboard router`: its subcommands, and what its help says.

mod client;
mod model;
mod serve;

use clap::Subcommand;

use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Try it, in three terminals; nothing leaves this machine:
    switchboard router
    switchboard router client
    switchboard router client --name lights --description 'Switches lamps.' --reject 'The bulb is broken.'
  Then write to the first one:
    remember to buy milk
    lights: on, please
  From a script, or from a program for speech recognition:
    curl -d 'notes: buy milk' -H 'content-type: text/plain' 'http://127.0.0.1:9473/input?wait=1'
    curl -H 'content-type: application/json' http://127.0.0.1:9473/input \\
      -d '{\"text\": \"buy milk\", \"inputMethod\": \"voice\", \"confidence\": 0.93}'
    echo 'notes: buy milk' | switchboard router --clients 1 --once --json
  With a language model that chooses:
    ANTHROPIC_API_KEY=.. switchboard router --provider anthropic
    switchboard router --provider ollama --model llama3.2

Environment variables: see the options of the language model.";

/// Runs a SmartHole router: it passes what you write, and what programs post to /input, to the client that can
/// handle it.
///
/// It shows which client got a message and why, and what the client answered. 'NAME: TEXT' goes to the client of
/// this name. For everything else, the words of the clients' descriptions decide, or a language model does. Lines
/// are read from the terminal or from a pipe; the end of a pipe ends the router only with --once. Ctrl-C gives
/// clients a second to answer; a second Ctrl-C ends at once.
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
    /// Runs a client that keeps notes, and shows them if the message is the word 'list'.
    Client(Box<client::Args>),
}

pub(crate) async fn run(args: RouterArgs) -> Result<(), Failure> {
    match args.command {
        Some(Command::Serve(args)) => serve::serve(*args).await,
        Some(Command::Client(args)) => client::run(*args).await,
        None => serve::serve(args.serve).await,
    }
}
