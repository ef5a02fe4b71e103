//! The tour: the protocols at work in one process, over real WebSockets on this machine.
//!
//! `story/` is one story with all five, a file for each hop; begin with `story/mod.rs`. `chapters/` shows
//! more of each protocol alone.

mod chapters;
mod patience;
mod story;
mod temp_dir;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use examples::cli::{self, Failure};
use examples::screen::Screen;

use self::chapters::Act;

/// Tells one story with five protocols, a line for each frame: a person speaks to a SmartHole router,
/// which hands it to a ConnectOnion agent, which asks an Exoclaw gateway, which gives the work to an
/// Acolyte coding agent and has a Snek bot tell of it in a channel. The line to the agent is cut
/// meanwhile, and nothing is lost.
///
/// Everything happens on this machine: no account, no key, no arguments. Models follow a script. Exit
/// code 0 if all went as it should, else 1.
#[derive(Debug, Parser)]
#[command(
    name = "tour",
    version,
    after_help = "Examples:\n  cargo run -p examples\n  NO_COLOR=1 cargo run -p examples > conversation.txt\n  \
        cargo run -p examples -- chapters\n  cargo run -p examples -- chapters snek acolyte"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows more of each protocol, one after the other: refusals, budgets, questions to a human, lost
    /// lines, and much more.
    Chapters {
        /// Which protocols; all, if none is named.
        #[arg(value_enum)]
        protocols: Vec<Act>,
    },
}

/// A tour that takes longer than this hangs. Its parts have deadlines of their own, which say more.
const DEADLINE: Duration = Duration::from_secs(100);

fn main() -> ExitCode {
    // The agent of the tour runs commands, too.
    examples::daemon::command::supervise().unwrap_or_else(watched)
}

#[tokio::main]
async fn watched() -> ExitCode {
    let tour = tokio::time::timeout(DEADLINE, tour(Cli::parse())).await;
    let late = || Failure::new(format_args!("the tour takes longer than {DEADLINE:?}"));
    cli::finish(tour.unwrap_or_else(|_| Err(late())))
}

async fn tour(Cli { command }: Cli) -> Result<(), Failure> {
    let stdout = std::io::stdout();
    let colour = cli::wants_colour(&stdout);
    let screen = match command {
        None => {
            let screen = Screen::with_names(stdout, colour, story::LONGEST_NAME);
            story::tell(&screen, story::POEM).await?;
            screen.note("more: cargo run -p examples -- chapters");
            screen
        }
        Some(Command::Chapters { protocols }) => {
            let screen = Screen::new(stdout, colour);
            chapters::play(&screen, &protocols).await?;
            screen
        }
    };
    screen.note("next: cargo run -p examples --bin bot -- --help");
    screen.note("      cargo run -p examples --bin gateway");
    screen.note("      cargo run -p examples --bin router -- --help");
    screen.note("      cargo run -p examples --bin agent -- --help");
    screen.note("      cargo run -p examples --bin daemon -- --help");
    Ok(())
}
