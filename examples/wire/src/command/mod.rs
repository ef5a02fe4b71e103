//! `switchboard wire`: tools for the protocols.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod check;
mod decode;
mod load;
mod page;
mod proxy;
mod replay;

use std::fs::File;
use std::path::Path;

use crate::cli::{EXIT_CODES, Failure};
use clap::Subcommand;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  switchboard wire proxy --to ws://127.0.0.1:7200 --record run.jsonl
  switchboard wire decode run.jsonl
  switchboard wire replay run.jsonl --as client ws://127.0.0.1:7200
  switchboard wire decode --problems run.jsonl
  switchboard wire page run.jsonl
  switchboard wire decode --json run.jsonl.gz";

/// Sees, and judges, what passes between clients and servers of the five protocols.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct WireArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<check::CheckArgs>),
    Decode(decode::Args),
    Load(Box<load::Args>),
    Page(page::Args),
    Proxy(Box<proxy::Args>),
    Replay(Box<replay::Args>),
}

/// Opens a file that is read.
fn open(file: &Path) -> Result<File, Failure> {
    let wrong = |error| Failure::usage(format_args!("{}: {error}", file.display()));
    File::open(file).map_err(wrong)
}

/// Runs a command.
///
/// # Errors
/// [`Failure`] if it did not do what it should.
///
/// # Cancel safety
/// Dropping the future ends what it does.
pub async fn run(args: WireArgs) -> Result<(), Failure> {
    match args.command {
        Command::Check(args) => check::check(*args).await,
        Command::Decode(args) => decode::run(&args),
        Command::Load(args) => load::run(*args).await,
        Command::Page(args) => page::run(args).await,
        Command::Proxy(args) => proxy::run(*args).await,
        Command::Replay(args) => replay::run(*args).await,
    }
}
