//! `switchboard daemon chat` and `switchboard daemon run`: talk to an agent, or give it one task.

use std::path::PathBuf;
use std::time::Duration;

use acolyte_proto::id::SessionId;
use acolyte_proto::limits::CHAT_IDLE_TIMEOUT;

use crate::chat::daemon::{ChatOptions, Daemon, Server};
use crate::chat::{self, Options, terminal};
use crate::cli::Failure;
use crate::daemon::worker::UNDO;

/// The longest prompt from standard input, in bytes.
const MAX_PROMPT: usize = 512 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wishes: ChatOptions,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) chat: Common,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The task; '-' reads it from standard input.
    prompt: String,
    #[command(flatten)]
    chat: Common,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    server: Server,
    /// The conversation whose last change is put back, as sess_NAME. Default: the last change of any.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn undo(args: UndoArgs) -> Result<(), Failure> {
    let mut wishes = ChatOptions::default();
    (wishes.session, wishes.yes) = (args.session, true);
    let UndoArgs { server, json, .. } = args;
    let args = Common {
        json,
        wishes,
        server,
    };
    chat(&args, Some(UNDO.to_owned()), None).await
}

pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let prompt = terminal::only(Some(args.prompt), MAX_PROMPT, args.chat.json)?;
    chat(&args.chat, prompt, None).await
}

/// Converses, or gives one task.
pub(crate) async fn chat(
    args: &Common,
    once: Option<String>,
    history: Option<PathBuf>,
) -> Result<(), Failure> {
    // Who sits there lets the agent think as long as it likes.
    let idle: Option<Duration> = once.is_some().then_some(CHAT_IDLE_TIMEOUT);
    let mut peer = Daemon::open(&args.server, &args.wishes, idle).await;
    if let (Ok(daemon), Some(UNDO)) = (&peer, once.as_deref()) {
        peer = daemon.check_undo().and(peer);
    }
    let mut peer = peer.inspect_err(|failure| failure.report(args.json))?;
    let options = Options {
        once,
        json: args.json,
        history,
        place: args.server.url.to_string(),
    };
    chat::run(&mut peer, options).await
}
