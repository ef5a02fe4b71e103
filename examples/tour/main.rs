//! The tour: the protocols at work in one process, over real WebSockets on this machine.
//!
//! Each act is a folder with a story that can be read from top to bottom: `snek/`, `gateway/`,
//! `smarthole/`, `connectonion/`, `acolyte/`.

mod acolyte;
mod connectonion;
mod gateway;
mod patience;
mod smarthole;
mod snek;

use std::process::ExitCode;

use clap::Parser;
use examples::cli::{self, Failure};
use examples::screen::Screen;

/// Shows five protocols at work, frame by frame: a Snek server, a bot and a user; an Exoclaw
/// gateway with its clients; a SmartHole router with its clients; a ConnectOnion agent with those
/// who talk to it; and an Acolyte coding agent with somebody who gives it work.
///
/// Everything happens on this machine: no account, no key, no arguments. Models follow a script.
/// The bot calls a tool, sees a picture, loses its connection once and comes back by itself; the
/// gateway asks for a token, remembers, keeps sessions and budgets apart; the router finds a client for
/// each message, and another one when the first rejects it or is late; the agent asks, waits for leave,
/// and goes on while the line is cut; the coding agent changes a file, stays in its folder, and is
/// aborted in the middle of a command. Exit code 0 if all went as it should, else 1.
#[derive(Debug, Parser)]
#[command(
    name = "tour",
    version,
    after_help = "Examples:\n  cargo run -p examples\n  NO_COLOR=1 cargo run -p examples > conversation.txt"
)]
struct Cli {}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    cli::finish(tour().await)
}

async fn tour() -> Result<(), Failure> {
    let stdout = std::io::stdout();
    let colour = cli::wants_colour(&stdout);
    let screen = Screen::new(stdout, colour);
    let acts = [
        snek::act(&screen).await?,
        gateway::act(&screen).await?,
        smarthole::act(&screen).await?,
        Box::pin(connectonion::act(&screen)).await?,
        Box::pin(acolyte::act(&screen)).await?,
    ];
    screen.title(&format!(
        "All as expected: {} frames in {:.1} s.",
        screen.frames(),
        screen.elapsed(),
    ));
    for seen in acts {
        screen.note(&seen);
    }
    screen.note("next: cargo run -p examples --bin bot -- --help");
    screen.note("      cargo run -p examples --bin gateway");
    screen.note("      cargo run -p examples --bin router -- --help");
    screen.note("      cargo run -p examples --bin agent -- --help");
    screen.note("      cargo run -p examples --bin daemon -- --help");
    Ok(())
}
