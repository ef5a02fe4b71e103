//! `switchboard wire`: tools for the protocols.

mod check;

use clap::Subcommand;
use examples::cli::Failure;

/// Sees, and judges, what passes between clients and servers of the five protocols.
#[derive(Debug, clap::Args)]
pub(crate) struct WireArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<check::CheckArgs>),
}

pub(crate) async fn run(args: WireArgs) -> Result<(), Failure> {
    match args.command {
        Command::Check(args) => check::check(*args).await,
    }
}
