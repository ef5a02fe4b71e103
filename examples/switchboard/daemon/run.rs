//! `switchboard daemon run`: gives an agent something to do, and prints its answer.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use acolyte_proto::client::{ChatUpdate, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::id::SessionId;
use acolyte_proto::limits::{CHAT_IDLE_TIMEOUT, MAX_TOOL_CALLS};
use acolyte_proto::net::Chat;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::entropy;
use switchboard::cli::{self, Failure, Stdout, complain};
use switchboard::daemon::ask_first::AWAITING_INPUT;
use switchboard::screen::printable_lines;
use switchboard::terminal::{self, ChatEvent, ChatView};

use super::asking::{self, ALLOW, Answers, MAY_WORK, NOBODY};
use crate::daemon::connection::{Connection, Server, Wishes};
use crate::daemon::show::{self, Piece, Show, Style, words};

/// The longest prompt from standard input, in bytes.
const MAX_PROMPT: usize = 512 * 1024;
/// How often it is told that a tool still runs.
const STILL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; '-' reads it from standard input.
    prompt: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    wishes: Wishes,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let prompt = match args.prompt.as_str() {
        "-" => terminal::read_all(MAX_PROMPT)?,
        prompt => prompt.to_owned(),
    };
    let mut end = cli::end_signal().boxed();
    let mut answers = Answers::default();
    let connection = tokio::select! {
        connection = args.server.open(Some(CHAT_IDLE_TIMEOUT)) => {
            connection.inspect_err(|failure| Show::new(style(args)).failed(failure))?
        }
        () = &mut end => return Err(Failure::aborted()),
    };
    if asking::needs_leave(&args.wishes, &connection.status)? {
        cli::ask(MAY_WORK);
        let allowed = tokio::select! {
            answer = answers.next() => answer.is_some_and(|text| asking::is_yes(&text)),
            () = &mut end => return Err(Failure::aborted()),
        };
        if !allowed {
            return Err(asking::not_allowed());
        }
    }
    if args.server.url.are_several() {
        let (show, node) = (Show::new(style(args)), connection.node());
        let line = show.connected(node.as_deref(), false);
        match args.json {
            true => cli::say(line),
            false => complain(line),
        }
    }
    let ended = converse(args, &connection, prompt, answers, end).await;
    connection.close().await;
    ended
}

/// Has a chat, and answers what it asks with another one of the same session.
async fn converse(
    args: &Args,
    connection: &Connection,
    mut prompt: String,
    mut answers: Answers,
    mut end: BoxFuture<'static, ()>,
) -> Result<(), Failure> {
    let session = SessionId::random(entropy());
    loop {
        let mut request = args.wishes.request(&prompt, &connection.status);
        if !args.wishes.yes {
            request.session_id.get_or_insert_with(|| session.clone());
        }
        let chat = tokio::select! {
            chat = connection.start(request) => chat,
            () = &mut end => return Err(Failure::aborted()),
        };
        let mut running = Running::new(args, chat, &mut end);
        let is_viewed = running.view.is_some();
        let outcome = running.follow().await;
        running.leave().await;
        let outcome = outcome?;
        if !asking::is_question(&outcome, &connection.status) {
            return finish(&outcome);
        }
        if !args.json {
            let question = outcome.reply().filter(|_| !is_viewed);
            if let Some(reply) = question {
                cli::ask(printable_lines(&reply.output));
            }
            cli::ask(ALLOW);
        }
        prompt = tokio::select! {
            answer = answers.next() => answer.ok_or_else(|| Failure::new(NOBODY))?,
            () = &mut end => return Err(Failure::aborted()),
        };
    }
}

fn style(args: &Args) -> Style {
    match args.json {
        true => Style::Json,
        false => Style::People {
            colour: cli::wants_colour(&io::stderr()),
        },
    }
}

/// What scripts are told.
fn finish(outcome: &Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Done(_) => Ok(()),
        Outcome::Aborted { .. } => Err(Failure::aborted()),
        other if !other.may_have_run() => Err(Failure::refused(words(other))),
        other => Err(Failure::new(words(other))),
    }
}

/// A chat that is followed to its end.
struct Running<'a> {
    chat: Chat,
    show: Show,
    /// Shows everything, if people watch both outputs.
    view: Option<ChatView>,
    is_quiet: bool,
    /// The answer is shown as it comes.
    is_live: bool,
    /// The line that is being written to standard output has no end yet.
    is_open: bool,
    /// The calls that have no result yet, by id and name. The first one runs.
    calls: VecDeque<(String, String)>,
    /// Since when it runs.
    since: Instant,
    /// A line that goes away again is shown.
    is_told: bool,
    end: &'a mut BoxFuture<'static, ()>,
}

impl<'a> Running<'a> {
    fn new(args: &Args, chat: Chat, end: &'a mut BoxFuture<'static, ()>) -> Self {
        let is_quiet = cli::is_quiet() && !args.json;
        let is_viewed = !args.json && terminal::is_watched();
        Self {
            chat,
            show: Show::new(style(args)),
            view: is_viewed.then(|| ChatView::new(None)),
            is_quiet,
            is_live: !args.json && io::stdout().is_terminal(),
            is_open: false,
            calls: VecDeque::new(),
            since: Instant::now(),
            is_told: false,
            end,
        }
    }

    async fn follow(&mut self) -> Result<Outcome, Failure> {
        self.view([ChatEvent::Activity("thinking".to_owned())])
            .await;
        let mut still = tokio::time::interval(STILL);
        loop {
            tokio::select! {
                update = self.chat.next() => match update {
                    Some(ChatUpdate::Ended(outcome)) => {
                        self.ended(&outcome).await;
                        return Ok(outcome);
                    }
                    Some(update) => self.update(&update).await,
                    // The end was read before.
                    None => return Err(Failure::new("the chat has no end")),
                },
                () = &mut *self.end => {
                    // Before it is said that a second one ends it.
                    let mut second = cli::second_signal().boxed();
                    self.aborting().await;
                    tokio::select! {
                        // Its end tells what came of it.
                        _ = self.chat.abort() => *self.end = second,
                        () = &mut second => return Err(Failure::aborted()),
                    }
                }
                _ = still.tick() => self.still(),
            }
        }
    }

    /// Shows events in the view, if there is one.
    async fn view(&self, events: impl IntoIterator<Item = ChatEvent>) {
        if let Some(view) = &self.view {
            for event in events {
                view.show(event).await;
            }
        }
    }

    /// Leaves the terminal as it was.
    async fn leave(self) {
        if let Some(view) = self.view {
            view.finish().await;
        }
    }

    async fn aborting(&mut self) {
        let words = "aborting; once more ends at once";
        if self.view.is_some() {
            return self.view([ChatEvent::Note(words.to_owned())]).await;
        }
        self.clear();
        self.close_line();
        self.line(&self.show.note(words));
    }

    async fn update(&mut self, update: &ChatUpdate) {
        if self.view.is_some() {
            return self.view(show::events(update, 1)).await;
        }
        match update {
            ChatUpdate::Event(Event::ToolCall(call)) if self.calls.len() < MAX_TOOL_CALLS => {
                if self.calls.is_empty() {
                    self.since = Instant::now();
                }
                let call = (call.id.to_string(), call.name.to_string());
                self.calls.push_back(call);
            }
            ChatUpdate::Event(Event::ToolResult(result)) => {
                self.calls.retain(|(id, _)| *result.id != **id);
                self.since = Instant::now();
            }
            _ => {}
        }
        if self.is_quiet {
            return;
        }
        for piece in self.show.update(update, None) {
            match piece {
                Piece::Text(text) if self.is_live => {
                    self.clear();
                    // Between two answers there is a line's end, which nothing may have come before.
                    if text != "\n" || self.is_open {
                        write(&text);
                        self.is_open = !text.ends_with('\n');
                    }
                }
                Piece::Text(_) => {}
                Piece::Line(line) => {
                    self.clear();
                    self.close_line();
                    self.line(&line);
                }
            }
        }
    }

    /// A line about how it gets on: for programs that is all there is, for people it is beside the answer.
    fn line(&self, line: &str) {
        match self.show.is_json() {
            true => cli::say(line),
            false => complain(line),
        }
    }

    /// Tells at a terminal that a tool still runs.
    fn still(&mut self) {
        let Some((_, name)) = self.calls.front() else {
            return;
        };
        let seconds = self.since.elapsed().as_secs();
        let stderr = io::stderr();
        if seconds == 0 || self.is_quiet || self.show.is_json() || !stderr.is_terminal() {
            return;
        }
        let name = switchboard::screen::printable(name);
        let words = self.show.note(&format!("  {name} runs for {seconds} s"));
        let _ = write!(stderr.lock(), "\r\x1b[K{words}");
        self.is_told = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_told) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn close_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            write("\n");
        }
    }

    async fn ended(&mut self, outcome: &Outcome) {
        if self.view.is_some() {
            // Why it failed is told at the end of the program.
            let events = show::ended(outcome).into_iter();
            let shown = events.take_while(|event| *event != ChatEvent::Ended);
            return self.view(shown).await;
        }
        self.clear();
        if self.show.is_json() {
            let task_id = self.chat.task_id().map(acolyte_proto::id::TaskId::as_str);
            cli::say(Show::ended_json(outcome, task_id, None));
            return;
        }
        self.close_line();
        if let Some(reply) = show::said(outcome) {
            let is_seen = self.is_live && !self.is_quiet && reply.output_streamed != Some(false);
            // A question is no answer.
            let is_question = reply.state.as_deref() == Some(AWAITING_INPUT);
            if !is_seen && !is_question && !reply.output.is_empty() {
                cli::say(printable_lines(&reply.output));
            }
        }
    }
}

fn write(text: &str) {
    let written = Stdout.write_all(text.as_bytes());
    let _ = written.and_then(|()| Stdout.flush());
}
