//! `switchboard wire top`: frames at a terminal.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use switchboard::cli::{Failure, Signals};
use switchboard::wire::Protocol;
use switchboard::wire::top::{Stop, Top, run as show};
use switchboard::wire::view::{Lines, Shared, open};

use super::page::{input, name};

/// Shows a recording at the terminal: frames, calls, and what went wrong.
///
/// Keys: arrows, n and p for the next and the previous problem, / for a filter such as 'kind:chat.* dir:c2s',
/// Enter for what is in a frame, Tab for the next list, q to leave.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The recording.
    file: PathBuf,
    /// The protocol. Default: the one that the recording names, or its frames show.
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Show passwords, tokens, signatures and the like.
    #[arg(long)]
    show_secrets: bool,
}

pub(super) async fn run(args: Args) -> Result<(), Failure> {
    is_possible()?;
    let (file, view) = (input(&args.file)?, Shared::default());
    let lines = Lines::new(args.protocol, args.show_secrets);
    let top = Top::new(Arc::clone(&view), name(&args.file), None);
    let filled = tokio::task::spawn_blocking(move || open(file, lines, &view));
    shown(top, Signals::listen()).await?;
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("{}: {error}", args.file.display()))
    };
    // Who leaves early need not wait.
    if !filled.is_finished() {
        return Ok(());
    }
    let filled = filled.await.map_err(|error| wrong(&error))?;
    filled.map_err(|error| wrong(&error))
}

/// Fails where there is no terminal.
pub(super) fn is_possible() -> Result<(), Failure> {
    match std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(Failure::usage(
            "this needs a terminal: use `switchboard wire decode` for pipes",
        )),
    }
}

/// Shows a screen until the user or a signal ends it.
pub(super) async fn shown(top: Top, mut signals: Signals) -> Result<(), Failure> {
    let stop = Stop::default();
    let mut shown = tokio::task::spawn_blocking({
        let stop = stop.clone();
        move || show(top, &stop)
    });
    let shown = tokio::select! {
        shown = &mut shown => shown,
        () = signals.asked() => {
            stop.stop();
            shown.await
        }
    };
    let shown = shown.map_err(Failure::new)?;
    shown.map_err(|error| Failure::new(format_args!("the terminal: {error}")))
}
