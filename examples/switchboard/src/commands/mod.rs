//! The command line: the options that all commands share, and a folder for each command.

mod agent;
mod bot;
mod cluster;
mod daemon;
mod gateway;
mod health;
mod logging;
mod manual;
mod router;
mod store;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use futures_util::FutureExt as _;
use tokio::runtime::Builder;

use self::logging::Verbosity;
use crate::cli::{self, EXIT_CODES, Failure};

const SETTINGS: &str = "\
A setting comes from its option, else from its environment variable, else from a file, else from its
default.";

/// The version, and the features of this build.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("fetch", cfg!(feature = "fetch")),
        ("nats", cfg!(feature = "nats")),
        ("otlp", cfg!(feature = "otlp")),
        ("wasm", cfg!(feature = "wasm")),
    ];
    let names = features.into_iter().filter(|(_, is_on)| *is_on);
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    format!("{} (features: {names})", env!("CARGO_PKG_VERSION"))
});

/// Clients and servers for Snek, Exoclaw, SmartHole, ConnectOnion and Acolyte.
///
/// No command needs an account. Answers come from a scripted model unless you configure a real one.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard",
    version = VERSION.as_str(),
    after_help = format!("{SETTINGS}\n\n{EXIT_CODES}"),
    arg_required_else_help = true,
    subcommand_required = true
)]
struct Cli {
    #[command(flatten)]
    verbosity: Verbosity,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bot(Box<bot::BotArgs>),
    Gateway(Box<gateway::GatewayArgs>),
    Router(Box<router::RouterArgs>),
    #[command(subcommand)]
    Agent(agent::Command),
    #[command(subcommand)]
    Daemon(daemon::Command),
    Wire(switchboard_wire::command::WireArgs),
    #[command(subcommand)]
    Store(store::Command),
    Health(HealthArgs),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// Checks the health of a server: succeeds if the URL answers with a status from 200 to 299 within 5 s.
/// Meant for the health checks of containers.
#[derive(Debug, clap::Args)]
struct HealthArgs {
    /// The URL to request, such as http://127.0.0.1:7200/health.
    url: String,
}

/// Reads one of these words: each has its help, and what it means.
fn choice<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let known = words.clone();
    let known = known.map(|(word, help, _)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(known).try_map(move |given| {
        let found = words.iter().find(|(word, ..)| *word == given);
        found.map(|(.., meant)| meant.clone()).ok_or("unknown")
    })
}

/// Runs the command of this process's command line.
#[must_use]
pub fn main() -> ExitCode {
    let Cli { verbosity, command } = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let mut runtime = Builder::new_multi_thread();
    if let Command::Bot(args) = &command
        && let Some(workers) = args.workers()
    {
        runtime.worker_threads(workers.get());
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let message = format!("threads cannot be started: {error}");
            return cli::finish(Err(Failure::new(message)));
        }
    };
    runtime.block_on(async {
        cli::outlive_file_limits();
        verbosity.start(true);
        let outcome = run(command).await;
        #[cfg(feature = "otlp")]
        logging::otlp::flush();
        cli::finish(outcome)
    })
}

async fn run(command: Command) -> Result<(), Failure> {
    // In boxes: the largest of them is large.
    match command {
        Command::Bot(args) => bot::run(*args).boxed_local().await,
        Command::Gateway(args) => gateway::run(*args).boxed_local().await,
        Command::Router(args) => router::run(*args).boxed_local().await,
        Command::Agent(args) => agent::run(args).boxed_local().await,
        Command::Daemon(args) => daemon::run(args).boxed_local().await,
        Command::Wire(args) => switchboard_wire::command::run(args).boxed_local().await,
        Command::Store(args) => store::run(args).boxed_local().await,
        Command::Health(args) => health::health(&args.url).await,
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}
