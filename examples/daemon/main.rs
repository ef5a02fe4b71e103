//! A coding agent that speaks Acolyte, and the command line for it.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod chat;
mod connection;
mod run;
mod serve;
mod show;
mod status;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use examples::cli;
use examples::daemon::command;

const EXAMPLES: &str = "\
Examples ('daemon' stands for 'cargo run -p examples --bin daemon --'):
  Try it: a scripted model on this folder, nothing leaves this machine:
    daemon serve --workspace .
  Give it something to do from another terminal:
    daemon run 'search name'
    daemon chat
  What the scripted model understands; anything else it says back:
    read README.md                search fn main       list files
    create a.txt: hello           edit a.txt: hello -> goodbye
    run cargo --version           plan: read a.txt; run ls
    !tool file-find {\"glob\": \"*.rs\"}                !slow 20 500
  A real model (add '--features llm' before '--bin'):
    ANTHROPIC_API_KEY=.. daemon serve --model anthropic --model-name NAME
  With a key, which both sides take from the environment:
    ACOLYTE_API_KEY=secret daemon serve
    ACOLYTE_API_KEY=secret daemon run 'list files' --sse
  In a script: the answer to standard output, or every event as a line of JSON:
    answer=$(daemon run 'read VERSION') || echo failed: $?
    daemon run 'plan: run make; run make test' --json

The environment: ACOLYTE_URL, ACOLYTE_API_KEY; ANTHROPIC_API_KEY and OPENAI_API_KEY; a server that
wants no key takes any.

Exit codes: 0 done, 1 failed, 2 called in a wrong way, 3 no server or refused by it: nothing was
done, 130 aborted.";

/// A coding agent on one folder, served over Acolyte, and a command line for this or any other Acolyte
/// server.
///
/// It reads, searches, edits and runs commands in its workspace and nowhere else. Ctrl-C aborts what runs; a
/// second one ends at once.
#[derive(Debug, Parser)]
#[command(name = "daemon", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves a coding agent on a folder.
    Serve(Box<serve::Args>),
    /// Gives an agent something to do, shows how it gets on, and prints its answer.
    Run(Box<run::Args>),
    /// Talks to an agent, line by line.
    Chat(Box<chat::Args>),
    /// Tells what a server is and what it has to do, or what became of a task.
    Status(Box<status::Args>),
}

fn main() -> ExitCode {
    command::supervise().unwrap_or_else(command_line)
}

#[tokio::main]
async fn command_line() -> ExitCode {
    let cli = Cli::parse();
    cli::finish(match cli.command {
        Command::Serve(args) => serve::serve(&args).await,
        Command::Run(args) => run::run(&args).await,
        Command::Chat(args) => chat::chat(&args).await,
        Command::Status(args) => status::status(&args).await,
    })
}
