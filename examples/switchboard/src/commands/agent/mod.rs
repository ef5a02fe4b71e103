//! `switchboard agent`: its subcommands, and what its help says.

mod chat;
mod home;
mod host;

use clap::Subcommand;

use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Try it: a scripted model, a page in the browser, nothing leaves this machine:
    switchboard agent host
  Talk to it from another terminal, or to any other ConnectOnion agent:
    switchboard agent chat http://127.0.0.1:8000
    switchboard agent chat http://127.0.0.1:8000 'count to 5'
  What the scripted model understands, such as a call that needs approval:
    count to 5                show markdown                !slow 20 500
    !call list_files          !call write_file {\"path\": \"a.txt\", \"text\": \"milk\"}
  Only for people with an invite code, who are remembered:
    switchboard agent host --trust careful --invite 'red onion'
    switchboard agent chat http://127.0.0.1:8000 --invite 'red onion'
  For a network, with TLS (or without, behind a proxy that adds it); callers must sign then:
    switchboard agent host --public --listen 0.0.0.0:8000 --trust careful \\
      --allow-host agent.example.com --tls-cert cert.pem --tls-key key.pem
  Three hosts of one agent, behind any load balancer (build with '--features nats'):
    nats-server -js &
    for port in 8001 8002 8003; do
      switchboard agent host --nats nats://127.0.0.1:4222 --listen 127.0.0.1:$port &
    done
  A real model:
    ANTHROPIC_API_KEY=.. switchboard agent host --provider anthropic

Environment variables: AGENT_HOME, AGENT_INVITE, and those of the language model at its options.";

/// Serves an agent with tools over ConnectOnion, with a page for the browser, and chats with this or any other
/// agent.
///
/// Keys, lists and sessions are kept in ~/.agent. Ctrl-C lets an agent finish its runs; a second Ctrl-C ends
/// at once.
#[derive(Debug, Subcommand)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) enum Command {
    /// Serves an agent with tools: a clock, dice, and files in its own folder. It asks for
    /// approval before it writes a file.
    Host(Box<host::Args>),
    /// Chats with an agent: this one, or any other that speaks ConnectOnion.
    Chat(Box<chat::Args>),
}

pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Host(args) => Box::pin(host::host(&args)).await,
        Command::Chat(args) => chat::chat(*args).await,
    }
}
