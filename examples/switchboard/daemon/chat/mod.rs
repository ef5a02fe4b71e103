//! `switchboard daemon chat`: talks to an agent, line by line.

mod chat_loop;
mod line;

use std::io;
use std::path::PathBuf;

use switchboard::cli::{self, Failure};
use switchboard::terminal;

use self::chat_loop::ChatLoop;
use crate::daemon::asking;
use crate::daemon::connection::{Server, Wishes};
use crate::daemon::show::{Show, Style};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    wishes: Wishes,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
    /// A file that keeps the lines that were written in the terminal.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

pub(crate) async fn chat(args: &Args) -> Result<(), Failure> {
    let style = match args.json {
        true => Style::Json,
        false => Style::People {
            colour: cli::wants_colour(&io::stdout()),
        },
    };
    // Somebody sits there: the agent may think as long as it likes.
    let show = Show::new(style);
    let connection = args.server.open(None).await;
    let connection = connection.inspect_err(|failure| show.failed(failure))?;
    let needs_leave = asking::needs_leave(&args.wishes, &connection.status);
    let needs_leave = needs_leave.inspect_err(|failure| show.failed(failure))?;
    let input = terminal::open(args.history.as_deref())?;
    let mut chat = ChatLoop::new(&args.server, connection, &args.wishes, show, input);
    let worked = match needs_leave && !chat.may_work().await {
        true => Err(asking::not_allowed()),
        false => chat.work().await,
    };
    chat.finish().await;
    worked
}
