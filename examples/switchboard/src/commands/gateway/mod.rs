//! `switchboard gateway`: its subcommands, and what its help says.

mod chat;
mod serve;
mod usage;

use clap::Subcommand;

use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Try it: a scripted model, a page in the browser, nothing leaves this machine:
    switchboard gateway
  Talk to it from another terminal:
    switchboard gateway chat 'hello there'
    switchboard gateway chat --guild acme --team support 'hello there'
  With 'extensions = true' in its configuration, ask what it remembers:
    switchboard gateway chat --history
    switchboard gateway chat --search name
    switchboard gateway chat --budget
    switchboard gateway chat --clear
  A real model of your own machine:
    switchboard gateway --provider ollama --model llama3.2
  Everything in a file; examples/switchboard/gateway.toml shows every key:
    ANTHROPIC_API_KEY=.. switchboard gateway --config gateway.toml
  Tools in WebAssembly: build with '--features wasm'. A plugin that is a channel adapter
  is reached by its chat service at POST /webhook/NAME, with the secret in one of the headers
  'Authorization: Bearer SECRET', X-Webhook-Secret and X-Telegram-Bot-Api-Secret-Token:
    EXOCLAW_WEBHOOK_SECRET=.. switchboard gateway --config gateway.toml
  For a network, with TLS; behind a proxy that adds it, leave both options out, and --listen too if the
  proxy is on this machine, and list its name under allowed_hosts:
    EXOCLAW_TOKEN=.. switchboard gateway --listen 0.0.0.0:7200 --tls-cert cert.pem --tls-key key.pem
  Several nodes with one memory and one budget: build with '--features nats', start nats-server -js, and on
  each machine the same configuration with
    switchboard gateway --config gateway.toml --nats nats://10.0.0.1:4222
  Check a configuration, and print the tokens used so far:
    switchboard gateway check --config gateway.toml
    switchboard gateway usage --config gateway.toml

Environment variables: EXOCLAW_CONFIG, EXOCLAW_TOKEN, EXOCLAW_WEBHOOK_SECRET; OPENAI_API_KEY, ANTHROPIC_API_KEY and
VLLM_API_KEY, or a file credentials/PROVIDER.key beside the configuration; OPENAI_BASE_URL, ANTHROPIC_BASE_URL and
OLLAMA_HOST for other servers with the same interface, which need no key.";

/// Runs a gateway between chat programs and a language model, with sessions, memory, tools, token budgets and a
/// chat page.
///
/// One TOML file configures everything: --config, else the environment variable EXOCLAW_CONFIG, else
/// ~/.exoclaw/config.toml. Without a file, the gateway uses a scripted model, accepts connections from this
/// machine only, and keeps its data in ~/.exoclaw. Ctrl-C lets replies finish; a second Ctrl-C ends at once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the gateway; the same as no command.
    #[command(alias = "gateway")]
    Serve(Box<serve::Args>),
    /// Checks a configuration with its plugins, keys and data folder, and prints a summary. Fails if every chat
    /// would fail, a plugin cannot be loaded, data cannot be stored or NATS is not there. Asks no model.
    Check(Box<serve::CheckArgs>),
    /// Prints the tokens that each reply has used, as lines of JSON, the latest last. Also works while a gateway
    /// with the same data is running (not on Windows).
    Usage(Box<usage::Args>),
    /// Sends a message to a gateway and prints the reply as it arrives: text to standard output, tools
    /// to standard error. Also prints what the gateway remembers.
    Chat(Box<chat::Args>),
}

pub(crate) async fn run(args: GatewayArgs) -> Result<(), Failure> {
    let (outcome, json) = match args.command {
        None => (Box::pin(serve::serve(args.serve)).await, false),
        Some(Command::Serve(args)) => (Box::pin(serve::serve(*args)).await, false),
        Some(Command::Check(args)) => (serve::check(&args).await, args.json),
        Some(Command::Usage(args)) => (usage::usage(&args).await, args.json),
        // It tells of its failures itself.
        Some(Command::Chat(args)) => (chat::chat(&args).await, false),
    };
    outcome.inspect_err(|failure| failure.report(json))
}
