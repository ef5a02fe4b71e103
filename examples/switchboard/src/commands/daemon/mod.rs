//! `switchboard daemon`: its subcommands, and what its help says.

mod agreed;
mod chat;
mod serve;
mod status;
mod tool_options;

use clap::Subcommand;

use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Try it: a scripted model in this folder; nothing leaves this machine:
    switchboard daemon serve --workspace .
  Give it a task from another terminal:
    switchboard daemon run --yes '/call shell-run {\"command\": \"ls\"}'  # without --yes, it asks first
    switchboard daemon chat
  What the scripted model understands (anything else it repeats):
    count to 5                show markdown                !slow 20 500
    !call file-find {\"glob\": \"*.rs\"}
  In a script: the answer to standard output, or every event as a line of JSON:
    answer=$(switchboard daemon run 'read VERSION') || echo failed: $?
    switchboard daemon run 'run make, and then make test' --yes --json
  With an API key, which both sides read from the environment:
    ACOLYTE_API_KEY=secret switchboard daemon serve
    ACOLYTE_API_KEY=secret switchboard daemon run 'list files' --sse
  A real model:
    ANTHROPIC_API_KEY=.. switchboard daemon serve --provider anthropic

Environment variables: ACOLYTE_URL, ACOLYTE_API_KEY, and those of the language model at its options.";

/// Serves a coding agent for one folder over Acolyte, and talks to this or any other Acolyte server.
///
/// The agent reads, searches, edits and runs commands in its workspace and nowhere else. Ctrl-C lets it finish
/// what is running; a second Ctrl-C ends at once.
#[derive(Debug, Subcommand)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) enum Command {
    /// Serves a coding agent that works in one folder.
    Serve(Box<serve::Args>),
    /// Gives an agent one task, shows its progress, and prints its answer.
    Run(Box<chat::RunArgs>),
    /// Chats with an agent.
    Chat(Box<chat::Args>),
    /// Puts back the last change of a file that nobody has touched since.
    Undo(Box<chat::UndoArgs>),
    /// Prints the status of a server, or of a task.
    Status(Box<status::Args>),
}

pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::serve(&args).await,
        Command::Run(args) => chat::run(*args).await,
        Command::Chat(args) => chat::chat(&args.chat, None, args.history.clone()).await,
        Command::Undo(args) => chat::undo(*args).await,
        Command::Status(args) => status::status(&args).await,
    }
}
