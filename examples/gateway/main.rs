//! An AI gateway that speaks Exoclaw, and a client for one.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod chat;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use examples::cli;

const EXAMPLES: &str = "\
Examples ('gateway' stands for 'cargo run -p examples --bin gateway --'):
  Try it: a scripted model, a page in the browser, nothing leaves this machine:
    gateway
  Talk to it from another terminal:
    gateway chat 'hello there'
  A real model (add '--features llm' before '--bin'), with the configuration in a file:
    ANTHROPIC_API_KEY=.. gateway --config gateway.toml
  For a network, behind a proxy that adds TLS:
    EXOCLAW_TOKEN=.. gateway --bind 0.0.0.0
  Look whether a configuration is right:
    gateway check --config gateway.toml

Exit codes: 0 ended as asked, 1 failed, 2 called in a wrong way.";

/// A gateway between chat programs and a language model: sessions, memory, tools, token budgets,
/// and a page to talk to it.
///
/// Everything is set in one TOML file: --config, else the environment variable EXOCLAW_CONFIG, else
/// ~/.exoclaw/config.toml. Without a file it runs with a scripted model. Ctrl-C lets replies finish.
#[derive(Debug, Parser)]
#[command(
    name = "gateway",
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
    /// Runs the gateway; the same as no command.
    #[command(alias = "gateway")]
    Serve(serve::Args),
    /// Checks a configuration and says what it means.
    Check(serve::CheckArgs),
    /// Says something to a gateway and prints the reply as it comes.
    Chat(chat::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::finish(match cli.command {
        Some(Command::Serve(args)) => serve::serve(args).await,
        Some(Command::Check(args)) => serve::check(&args),
        Some(Command::Chat(args)) => chat::chat(args).await,
        None => serve::serve(cli.serve).await,
    })
}
