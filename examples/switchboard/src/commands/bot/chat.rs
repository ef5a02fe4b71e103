//! `switchboard bot chat`: a chat in the channels of a Snek server.

use std::path::PathBuf;

use crate::chat::bot::{Channel, Server, open};
use crate::chat::{self, Options, Peer as _, terminal};
use crate::cli::{EXIT_CODES, Failure};

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  A dialogue, with the server of 'switchboard bot serve --open':
    switchboard bot chat
  One question, and the answer of whoever is first:
    switchboard bot chat '@mybot count to 5'
  Lines from a pipe, each of them posted, and all events in JSON:
    printf '@mybot time\\n@mybot count to 3\\n' | switchboard bot chat --json
  A real server:
    SNEK_PASSWORD=.. switchboard bot chat --url wss://snek.example.com --username ann --channel General";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Args {
    /// What to post, '-' for all of standard input. Prints the next message of another user in the channel
    /// and ends; without it, lines are read.
    text: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Print one JSON object for each event: connected, message, typing, lost and so on.
    #[arg(long)]
    json: bool,
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

pub(crate) async fn chat(args: Args) -> Result<(), Failure> {
    let options = Options {
        once: terminal::only(args.text.clone(), Channel::MAX_BYTES, args.json)?,
        json: args.json,
        history: args.history.clone(),
        place: args.server.url.to_string(),
    };
    let peer = open(args.server, options.once.is_some());
    let mut peer = peer.inspect_err(|failure| failure.report(options.json))?;
    chat::run(&mut peer, options).await
}
