//! [`Daemon`]: a coding agent behind Acolyte in a conversation.

mod connection;
mod show;

use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, SystemTime};

use acolyte_proto::client::{ChatUpdate, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, HistoryItem, Role, Status};
use acolyte_proto::id::{MessageId, SessionId, TaskId};
use acolyte_proto::limits::{MAX_HISTORY, MAX_MESSAGE_UNITS};
use acolyte_proto::net::Chat;
use rpc_core::net::entropy;
use rpc_core::{Delivery, Refused};
use serde_json::json;

use self::connection::Connection;
use self::show::words;
use crate::chat::terminal::{ChatEvent, Command, Waits};
use crate::chat::{ALLOW, Out, Peer, State};
use crate::cli::Failure;
use crate::daemon::ask_first::{ASK_FIRST, AWAITING_INPUT};
use crate::daemon::worker::UNDO;
use crate::text::printable;

pub(crate) use self::connection::{ChatOptions, Server, api_key};
pub(crate) use self::show::status_lines;

/// Most of what was said that goes along.
const SAID: usize = 100;
/// How much of an answer, in bytes, is compared with the whole that ends it.
const MAX_SHOWN: usize = 4 * 1024 * 1024;
/// What the user is asked about a server that cannot be held to asking.
const MAY_WORK: &str =
    "This server may edit files and run commands without asking. Let it work? y/N";
/// Why a chat ends with a question.
const NOBODY: &str =
    "no one could approve this; use --yes to let the server edit and run without asking";

/// An agent in a conversation.
pub(crate) struct Daemon<'a> {
    server: &'a Server,
    wishes: &'a ChatOptions,
    idle: Option<Duration>,
    connection: Connection,
    session: SessionId,
    /// What was said, oldest first.
    history: VecDeque<HistoryItem>,
    running: Option<Running>,
    question: Option<Question>,
    /// The user lets a server work that need not ask.
    may_work: bool,
}

/// What the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Whether a server may work that cannot be held to asking.
    Work,
    /// Whether it may do a step.
    Step,
}

/// The chat that runs.
struct Running {
    chat: Chat,
    text: String,
    /// Starts once more if the connection turns out to have ended before it was sent.
    may_repeat: bool,
    /// What was shown of the answer, up to [`MAX_SHOWN`].
    shown: String,
    /// It is to be aborted.
    aborts: bool,
}

impl<'a> Daemon<'a> {
    pub(crate) async fn open(
        server: &'a Server,
        wishes: &'a ChatOptions,
        idle: Option<Duration>,
    ) -> Result<Self, Failure> {
        let connection = server.open(idle).await?;
        let asks = !wishes.yes && !is_enforced(&connection.status);
        if asks && !io::stdin().is_terminal() {
            return Err(Failure::usage(
                "this server does not ask before it edits or runs; give --yes to allow that",
            ));
        }
        let session = wishes.session.clone();
        Ok(Self {
            server,
            wishes,
            idle,
            connection,
            session: session.unwrap_or_else(|| SessionId::random(entropy())),
            history: VecDeque::new(),
            running: None,
            question: asks.then_some(Question::Work),
            may_work: wishes.yes,
        })
    }

    /// Checks that the server puts files back.
    pub(crate) fn check_undo(&self) -> Result<(), Failure> {
        match is_enforced(&self.connection.status) {
            true => Ok(()),
            false => Err(Failure::refused("this server does not put files back")),
        }
    }

    /// Connects again if the connection has ended: to another node, if there is one.
    async fn reconnect(&mut self, out: &Out) -> Result<(), Failure> {
        if !self.connection.is_over() {
            return Ok(());
        }
        let mut connection = self.server.open(self.idle).await?;
        if !self.may_work && !is_enforced(&connection.status) {
            connection.close().await;
            return Err(not_allowed());
        }
        std::mem::replace(&mut self.connection, connection)
            .close()
            .await;
        out.connected(self.connection.node().as_deref(), true).await;
        Ok(())
    }

    async fn start(&mut self, text: String, may_repeat: bool, out: &Out) {
        if let Err(failure) = self.reconnect(out).await {
            return out.wrong(failure).await;
        }
        let request = match self.request(&text) {
            Ok(request) => request,
            Err(why) => return out.wrong(Failure::new(why)).await,
        };
        let chat = self.connection.start(request).await;
        out.set_settled(false);
        self.running = Some(Running {
            chat,
            text,
            may_repeat,
            shown: String::new(),
            aborts: false,
        });
        out.people([ChatEvent::Activity("thinking".to_owned())])
            .await;
    }

    fn request(&self, text: &str) -> Result<ChatRequest, Refused> {
        let mut request = self.wishes.request(text, &self.connection.status);
        // One task is remembered if an answer may have to find it.
        if self.idle.is_none() || !self.wishes.yes {
            request.session_id = Some(self.session.clone());
        }
        for item in &self.history {
            request = request.with_history_item(item)?;
        }
        Ok(request)
    }

    async fn ended(&mut self, running: Running, outcome: &Outcome, out: &Out) {
        if running.may_repeat && was_not_sent(outcome) {
            return Box::pin(self.start(running.text, false, out)).await;
        }
        out.set_settled(true);
        let task_id = running.chat.task_id().map(TaskId::as_str);
        out.line(show::ended_json(outcome, task_id)).await;
        let reply = show::reply_of(outcome);
        let state = reply.and_then(|reply| reply.state.as_deref());
        let asks = state == Some(AWAITING_INPUT) && is_enforced(&self.connection.status);
        let unshown = reply.and_then(|reply| match reply.output_streamed {
            Some(false) => Some(reply.output.to_string()),
            _ if running.shown.len() > MAX_SHOWN => None,
            _ => missing(&running.shown, &reply.output),
        });
        if let Some(text) = unshown {
            let text = match asks {
                true => ChatEvent::Preview(text),
                false => ChatEvent::Text(text),
            };
            out.people([text]).await;
        }
        out.people([ChatEvent::Ended]).await;
        if asks {
            self.question = Some(Question::Step);
            out.people([ChatEvent::Question(ALLOW.to_owned())]).await;
        }
        match outcome {
            Outcome::Done(reply) => {
                self.remember(Role::User, running.text);
                self.remember(Role::Assistant, reply.output.to_string());
            }
            Outcome::Aborted { .. } if out.is_terminal() => out.note(&words(outcome)).await,
            Outcome::Aborted { .. } => out.failed(Failure::aborted_with(words(outcome))).await,
            other if !other.may_have_run() => out.failed(Failure::refused(words(other))).await,
            other => out.failed(Failure::new(words(other))).await,
        }
    }

    fn remember(&mut self, role: Role, text: String) {
        // The only task is the last one, unless it asks.
        if self.idle.is_some() && self.question.is_none() {
            return;
        }
        let id = MessageId::random(entropy());
        self.history
            .push_back(HistoryItem::new(id, role, text, SystemTime::now()));
        while self.history.len() > SAID.min(MAX_HISTORY) {
            self.history.pop_front();
        }
    }
}

/// Whether a server asks by itself, whatever its model does.
fn is_enforced(status: &Status) -> bool {
    status.capability_words().any(|word| word == ASK_FIRST)
}

/// What is still to be shown of a whole answer, whose last part or all of it may be shown already. Blanks do not count.
fn missing(shown: &str, whole: &str) -> Option<String> {
    let visible = |c: &char| !c.is_whitespace();
    let mut end = shown.chars().rev().filter(visible);
    let mut all = whole.chars().rev().filter(visible);
    let is_shown = all.all(|c| end.next() == Some(c));
    match whole.strip_prefix(shown) {
        _ if is_shown => None,
        Some(rest) => Some(rest.to_owned()),
        None => Some(format!("\n\n{whole}")),
    }
}

fn not_allowed() -> Failure {
    Failure::new("nothing was done, because you did not allow it")
}

/// Whether the connection had ended before the chat was sent.
fn was_not_sent(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::NotSent(Refused::Closed)
            | Outcome::Closed {
                delivery: Delivery::NotSent,
                ..
            }
    )
}

impl Peer for Daemon<'_> {
    type Event = ChatUpdate;

    const NAME: &'static str = "daemon";
    const INTRO: &'static str = "Write what you want done. While the agent works you can ask for more, which \
        waits for its turn.";
    /// No character has more than three bytes for each unit.
    const MAX_BYTES: usize = 3 * MAX_MESSAGE_UNITS;

    fn commands(&self) -> Vec<Command> {
        vec![
            Command::new("new", "", "begin a new conversation"),
            Command::new("status", "", "show the tasks of the server").waits(Waits::InPipe),
            Command::new(
                "undo",
                "",
                "put back the file that was changed last, unless you have changed it since",
            ),
        ]
    }

    fn state(&self) -> State {
        match (self.question, &self.running) {
            // It is not asked before it can be answered.
            (Some(_), _) => State::Asking,
            (None, Some(_)) => State::Busy,
            (None, None) => State::Idle,
        }
    }

    async fn next(&mut self) -> ChatUpdate {
        let Some(running) = &mut self.running else {
            return pending().await;
        };
        if running.aborts {
            // The chat itself tells what came of it.
            let _ = running.chat.abort().await;
            running.aborts = false;
        }
        tokio::select! {
            biased;
            warning = self.connection.warning() => ChatUpdate::Warning(warning),
            Some(update) = running.chat.next() => update,
        }
    }

    async fn handle(&mut self, update: ChatUpdate, out: &Out) -> Result<(), Failure> {
        if let ChatUpdate::Ended(outcome) = update {
            if let Some(running) = self.running.take() {
                self.ended(running, &outcome, out).await;
            }
            return Ok(());
        }
        if let ChatUpdate::Event(Event::TextDelta(text)) = &update
            && let Some(running) = &mut self.running
            && running.shown.len() <= MAX_SHOWN
        {
            running.shown.push_str(text);
        }
        if let Some(line) = show::json(&update) {
            out.line(line).await;
        }
        out.people(show::events(&update)).await;
        Ok(())
    }

    async fn about(&self) -> Vec<String> {
        let model = &*self.connection.status.model;
        let model = (!model.is_empty()).then(|| format!("model {}", printable(model)));
        let folder = self.wishes.workspace();
        let folder = folder.map(|folder| format!("folder {}", printable(folder)));
        let session = format!("session {}", self.session);
        model.into_iter().chain(folder).chain([session]).collect()
    }

    async fn begin(&mut self, out: &Out) {
        if self.question == Some(Question::Work) {
            out.people([ChatEvent::Question(MAY_WORK.to_owned())]).await;
        }
        if self.server.url.are_several() {
            out.connected(self.connection.node().as_deref(), false)
                .await;
        }
    }

    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure> {
        match self.question.take() {
            Some(Question::Work) => {
                out.people([ChatEvent::Ended]).await;
                let is_yes = ["y", "yes"].contains(&&*text.to_lowercase());
                self.may_work = is_yes;
                return is_yes.then_some(()).ok_or_else(not_allowed);
            }
            Some(Question::Step) if text.is_empty() => self.start("no".to_owned(), true, out).await,
            _ => self.start(text, true, out).await,
        }
        Ok(())
    }

    async fn command(&mut self, name: &str, _: &str, out: &Out) -> Result<(), String> {
        if name == "new" {
            self.history.clear();
            let before = std::mem::replace(&mut self.session, SessionId::random(entropy()));
            let words =
                format!("a new conversation; --session {before} comes back to the one before");
            out.report("new", json!({ "before": before.as_str() }), &words)
                .await;
            return Ok(());
        }
        self.reconnect(out).await.map_err(|it| it.to_string())?;
        if name == "undo" {
            self.check_undo().map_err(|it| it.to_string())?;
            self.start(UNDO.to_owned(), true, out).await;
            return Ok(());
        }
        let status = self.connection.ask().await.map_err(|it| it.to_string())?;
        let about = serde_json::to_value(&*status).unwrap_or_default();
        let lines = status_lines(&status).join("\n");
        out.answer("status", about, &lines).await;
        Ok(())
    }

    async fn stop(&mut self, out: &Out) {
        if let Some(running) = &mut self.running {
            (running.aborts, running.may_repeat) = (true, false);
        } else if self.question.take() == Some(Question::Step) {
            self.start("no".to_owned(), true, out).await;
        }
    }

    async fn decline(&mut self, _: &Out) -> Result<(), Failure> {
        Err(Failure::new(NOBODY))
    }

    async fn leave(&mut self, out: &Out) {
        if self.running.is_some() {
            out.note("aborting; once more ends at once").await;
            self.stop(out).await;
        }
        while self.running.is_some() {
            let update = self.next().await;
            let _ = self.handle(update, out).await;
        }
        self.connection.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_whole_and_once() {
        for (shown, whole, expected) in [
            ("one two", "one two", None),
            ("Let me look. one\n two", "one two\n", None),
            ("", "", None),
            ("one ", "one two", Some("two")),
            ("", "one", Some("one")),
            ("one t", "one two", Some("wo")),
            ("x", "member", Some("\n\nmember")),
            ("one ee", "one three", Some("\n\none three")),
        ] {
            assert_eq!(
                missing(shown, whole).as_deref(),
                expected,
                "{shown:?} {whole:?}"
            );
        }
    }
}
