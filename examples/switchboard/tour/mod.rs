//! The tour: the protocols at work in one process, over real WebSockets on this machine.
//!
//! `story/` is one story with all five, a file for each hop; begin with `story/mod.rs`.

#[cfg(feature = "nats")]
mod cluster;
mod patience;
mod story;
mod temp_dir;

use std::io::{self, Write};
use std::time::Duration;

use clap::Subcommand;
use switchboard::cli::{self, Failure};
use switchboard::screen::Screen;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  switchboard
  NO_COLOR=1 switchboard tour | less";

/// Runs one story with all five protocols and prints a line for each frame.
///
/// A person speaks to a SmartHole router, which passes the message to a ConnectOnion agent. The agent asks an
/// Exoclaw gateway, which gives the work to an Acolyte coding agent and lets a Snek bot announce the result in
/// a channel. Meanwhile the connection to the agent is cut, and nothing is lost.
///
/// Everything runs on this machine, without an account or a key. The models are scripted.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TourArgs {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows one chat on three servers that share a NATS server, while some of them are killed.
    ///
    /// Needs nats-server on the path.
    #[cfg(feature = "nats")]
    Cluster,
}

/// A tour that takes longer than this hangs. Its parts have deadlines of their own, which say more.
const DEADLINE: Duration = Duration::from_secs(100);

pub(crate) async fn run(args: TourArgs) -> Result<(), Failure> {
    let late = || Failure::new(format_args!("the tour takes longer than {DEADLINE:?}"));
    let told = tokio::time::timeout(DEADLINE, tour(args)).await;
    told.unwrap_or_else(|_| Err(late()))
}

async fn tour(TourArgs { command }: TourArgs) -> Result<(), Failure> {
    let colour = cli::wants_colour(&io::stdout());
    let out: Box<dyn Write + Send> = match cli::is_quiet() {
        true => Box::new(io::sink()),
        false => Box::new(cli::Stdout),
    };
    let screen = match command {
        None => {
            let screen = Screen::with_names(out, colour, story::LONGEST_NAME);
            story::tell(&screen, story::POEM).await?;
            screen
        }
        #[cfg(feature = "nats")]
        Some(Command::Cluster) => {
            let screen = Screen::new(out, colour);
            cluster::tell(&screen).await?;
            screen
        }
    };
    screen.note("next: cargo run -p switchboard -- bot --help");
    screen.note("      cargo run -p switchboard -- gateway");
    screen.note("      cargo run -p switchboard -- router --help");
    screen.note("      cargo run -p switchboard -- agent --help");
    screen.note("      cargo run -p switchboard -- daemon --help");
    Ok(())
}
