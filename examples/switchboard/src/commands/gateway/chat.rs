//! `switchboard gateway chat`: talks to a gateway, or asks what it remembers.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::ArgGroup;

use crate::chat::gateway::{Connected, Gateway, MAX_TEXT, Query, Server, ask, explain};
use crate::chat::{self, Options, terminal};
use crate::cli::{self, Failure, print_line};

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what"))]
pub(crate) struct Args {
    /// The message to send; '-' reads it from standard input. Default: a dialogue at a terminal, else standard
    /// input.
    #[arg(group = "what")]
    text: Option<String>,
    /// Print the last turns of the conversation, oldest first. This and what follows works with a
    /// gateway that has 'extensions = true'.
    #[arg(long, group = "what", value_name = "COUNT", num_args = 0..=1, require_equals = true,
          default_missing_value = "10")]
    history: Option<u64>,
    /// Forget the conversation: its turns, and what the gateway knows from them.
    #[arg(long, group = "what")]
    clear: bool,
    /// Print what the gateway knows or was told about these words.
    #[arg(long, group = "what", value_name = "WORDS")]
    search: Option<String>,
    /// Print what the gateway knows from the conversation, as 'SUBJECT, RELATION: VALUE'.
    #[arg(long, group = "what")]
    memory: bool,
    /// Forget what '--memory' prints before a colon.
    #[arg(long, group = "what", value_name = "SUBJECT, RELATION")]
    forget: Option<String>,
    /// Print how many tokens are used.
    #[arg(long, group = "what")]
    budget: bool,
    #[command(flatten)]
    server: Server,
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    history_file: Option<PathBuf>,
    /// Print one JSON object for each event of the reply, the last with the event 'done' or 'error'; or
    /// for each turn, or for what else is asked.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    fn query(&self) -> Option<Query> {
        if let Some(limit) = self.history {
            return Some(Query::History(limit));
        }
        if let Some(words) = &self.search {
            return Some(Query::Search(words.clone()));
        }
        if let Some(name) = &self.forget {
            return Some(Query::Forget(name.clone()));
        }
        let asked = [
            (self.clear, Query::Clear),
            (self.memory, Query::Search(String::new())),
            (self.budget, Query::Budget),
        ];
        let asked = asked.into_iter().find(|(is_asked, _)| *is_asked);
        asked.map(|(_, query)| query)
    }
}

pub(crate) async fn chat(args: &Args) -> Result<(), Failure> {
    if let Some(query) = args.query() {
        return run_query(args, query)
            .await
            .inspect_err(|failure| failure.report(args.json));
    }
    let piped = || (!io::stdin().is_terminal()).then(|| "-".to_owned());
    let once = terminal::only(args.text.clone().or_else(piped), MAX_TEXT, args.json)?;
    let peer = Gateway::open(&args.server).await;
    let mut peer = peer.inspect_err(|failure| failure.report(args.json))?;
    let options = Options {
        once,
        json: args.json,
        history: args.history_file.clone(),
        place: args.server.url.to_string(),
    };
    chat::run(&mut peer, options).await
}

/// Prints what the gateway remembers.
async fn run_query(args: &Args, query: Query) -> Result<(), Failure> {
    let connected = Connected::open(&args.server).await?;
    let session = args.server.message("").session;
    let lines = tokio::select! {
        lines = ask(&connected.client, session, args.json, query) => lines,
        () = cli::end_signal() => return Err(Failure::aborted()),
    };
    let lines = lines.map_err(|error| explain(error, false))?;
    if lines.is_empty() && !cli::is_quiet() {
        cli::complain("nothing is kept of that");
    }
    lines.iter().for_each(print_line);
    connected.close().await
}
