//! A bot for any Snek server, and a Snek server to try it on.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod run;
mod serve;
mod think;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use examples::cli;

const EXAMPLES: &str = "\
Examples ('bot' stands for 'cargo run -p examples --bin bot --'):
  Try it on this machine, in two terminals:
    bot serve --open
    SNEK_PASSWORD=secret bot --url ws://127.0.0.1:8080 --username mybot
  A real server, and an answer whenever somebody says good morning:
    bot --url wss://snek.example.com --username mybot --trigger '(?i)good morning'
  With a language model, and images (add '--features llm,fetch' before '--bin'):
    OPENAI_API_KEY=.. bot --url wss://snek.example.com --username mybot \\
      --model openai --model-name NAME
    bot .. --model openai --model-url http://127.0.0.1:11434/v1 --model-name llama3.2
  In a script, with a time limit:
    bot --url ws://127.0.0.1:8080 --username mybot --once --within 30s

Exit codes: 0 ended as asked, 1 failed, 2 called in a wrong way.";

/// A bot that answers pings, a few words (help, time, dice, echo), and anything with a language
/// model: a scripted one unless you name another. Answers grow while they are thought of.
///
/// It logs in, comes back when the line is lost, and finishes what it does when it is ended with
/// Ctrl-C. In a public channel it speaks after somebody has said `@NAME join`.
#[derive(Debug, Parser)]
#[command(
    name = "bot",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a Snek server that keeps everything in memory.
    Serve(serve::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::finish(match cli.command {
        Some(Command::Serve(args)) => serve::serve(args).await,
        None => run::run(cli.run).await,
    })
}
