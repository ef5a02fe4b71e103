//! An agent that speaks ConnectOnion, and a terminal to talk to one.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod chat;
mod home;
mod host;
mod lists;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use examples::cli;

const EXAMPLES: &str = "\
Examples ('agent' stands for 'cargo run -p examples --bin agent --'):
  Try it: a scripted model, a page in the browser, nothing leaves this machine:
    agent host
  Talk to it from another terminal; to any other agent of the network, too:
    agent chat http://127.0.0.1:8000
    agent chat http://127.0.0.1:8000 'What is 6 * 7?'
  What the scripted model understands, with a question, a file, and your leave to write it:
    What is 2 * (3 + 4)?      Ask me which colour (red, green)
    List your files           Write buy milk to notes.txt
    Read notes.txt            !slow 20 500
  Only for those who know a code, and remembered for the next time:
    agent host --trust careful --invite 'red onion'
    agent chat http://127.0.0.1:8000 --invite 'red onion'
  For a network, behind a proxy that adds TLS; callers have to sign there:
    agent host --public --listen 0.0.0.0:8000 --trust careful --allow-host agent.example.com
  A real model (add '--features llm' before '--bin'):
    ANTHROPIC_API_KEY=.. agent host --model anthropic --model-name NAME

The environment: AGENT_HOME, AGENT_INVITE; ANTHROPIC_API_KEY and OPENAI_API_KEY; a server that wants
no key takes any.

Exit codes: 0 ended as asked, 1 failed, 2 called in a wrong way.";

/// An agent with tools, served over ConnectOnion with a page in the browser, and a terminal to talk to
/// this or any other agent.
///
/// Keys, lists and sessions are kept in ~/.agent. Ctrl-C lets an agent finish what it is at; a second
/// one ends at once.
#[derive(Debug, Parser)]
#[command(name = "agent", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves an agent with tools: a clock, dice, a calculator, files in a folder of its own. It asks
    /// before it writes one.
    Host(Box<host::Args>),
    /// Talks to an agent: this one, or any other that speaks ConnectOnion.
    Chat(Box<chat::Args>),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::finish(match cli.command {
        Command::Host(args) => host::host(&args).await,
        Command::Chat(args) => chat::chat(*args).await,
    })
}
