//! The chapters: each protocol alone, and more of it than the story needs.
//!
//! Each is a folder that can be read from top to bottom: `snek/`, `gateway/`, `smarthole/`,
//! `connectonion/`, `acolyte/`.

mod acolyte;
mod connectonion;
mod gateway;
mod smarthole;
mod snek;

use std::sync::Arc;

use clap::ValueEnum;
use switchboard::cli::Failure;
use switchboard::screen::Screen;

/// A protocol's chapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Act {
    /// A chat server, a bot and a user.
    Snek,
    /// An AI gateway and its clients.
    Exoclaw,
    /// A router and its clients.
    Smarthole,
    /// An agent and those who talk to it.
    Connectonion,
    /// A coding agent and somebody who gives it work.
    Acolyte,
}

/// Plays these, or all of them.
pub(crate) async fn play(screen: &Arc<Screen>, acts: &[Act]) -> Result<(), Failure> {
    let acts = match acts {
        [] => Act::value_variants(),
        some => some,
    };
    let mut seen = Vec::new();
    for act in acts {
        seen.push(match act {
            Act::Snek => snek::act(screen).await?,
            Act::Exoclaw => gateway::act(screen).await?,
            Act::Smarthole => smarthole::act(screen).await?,
            Act::Connectonion => Box::pin(connectonion::act(screen)).await?,
            Act::Acolyte => Box::pin(acolyte::act(screen)).await?,
        });
    }
    screen.title(&format!(
        "All as expected: {} frames in {:.1} s.",
        screen.frames(),
        screen.elapsed(),
    ));
    for seen in seen {
        screen.note(&seen);
    }
    Ok(())
}
