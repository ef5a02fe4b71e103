//! [`ChatLoop`]: takes lines, hands them to the agent, and shows what it does.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::SystemTime;

use acolyte_proto::client::{ChatUpdate, Outcome};
use acolyte_proto::frame::{ChatRequest, HistoryItem, Role};
use acolyte_proto::id::{MessageId, SessionId, TaskId};
use acolyte_proto::limits::MAX_HISTORY;
use acolyte_proto::net::Chat;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use rpc_core::net::entropy;
use rpc_core::{Delivery, Refused};
use switchboard::cli::{self, Failure};
use switchboard::screen::printable_lines;
use switchboard::terminal::{ChatEvent, ChatView, Input, Output, Terminal, help};

use super::line::{HELP, Line};
use crate::daemon::asking::{self, ALLOW, MAY_WORK, NOBODY};
use crate::daemon::connection::{Connection, Server, Wishes};
use crate::daemon::show::{self, Piece, Show, words};
use crate::daemon::status;

/// Most of what was said that goes along.
const SAID: usize = 100;

/// Where everything is shown.
enum Voice {
    /// To people at a terminal.
    View(ChatView),
    /// To a pipe, or to programs.
    Lines(Output),
}

/// A conversation.
pub(super) struct ChatLoop<'a> {
    server: &'a Server,
    connection: Connection,
    /// The server may work without asking.
    may_work: bool,
    wishes: &'a Wishes,
    show: Show,
    input: Input<Line>,
    voice: Voice,
    session: SessionId,
    /// What was said, oldest first.
    said: VecDeque<HistoryItem>,
    /// The chats that run or wait, oldest first.
    running: VecDeque<Running>,
    /// What is asked for after them, at most what is typed meanwhile.
    waiting: VecDeque<String>,
    /// How many there were.
    number: u64,
    /// No more lines come.
    is_silent: bool,
    /// A line from a pipe, until the agent is done.
    held: Option<Line>,
    /// What did not go well.
    failed: usize,
    /// The last answer asks whether a step is allowed.
    is_asked: bool,
    /// The wish to end. One for all the time, so that none is missed.
    end: BoxFuture<'static, ()>,
}

/// A chat that runs or waits.
struct Running {
    chat: Chat,
    number: u64,
    text: String,
    /// Starts once more if the connection turns out to have ended before it was sent.
    may_repeat: bool,
    /// The beginning of a line of the answer.
    line: String,
}

/// What happens next.
enum Happened {
    Line(Option<Line>),
    Update(usize, Box<ChatUpdate>),
    Signal,
}

impl<'a> ChatLoop<'a> {
    pub(super) fn new(
        server: &'a Server,
        connection: Connection,
        wishes: &'a Wishes,
        show: Show,
        input: Input<Line>,
    ) -> Self {
        let voice = match input.terminal.as_ref().map(Terminal::above) {
            Some(view) if !show.is_json() => Voice::View(view),
            above => Voice::Lines(Output::new(above)),
        };
        Self {
            server,
            connection,
            may_work: wishes.yes,
            wishes,
            show,
            input,
            voice,
            session: wishes
                .session
                .clone()
                .unwrap_or_else(|| SessionId::random(entropy())),
            said: VecDeque::new(),
            running: VecDeque::new(),
            waiting: VecDeque::new(),
            number: 0,
            is_silent: false,
            held: None,
            failed: 0,
            is_asked: false,
            end: cli::end_signal().boxed(),
        }
    }

    const fn is_terminal(&self) -> bool {
        self.input.terminal.is_some()
    }

    /// Shows events to people at a terminal.
    async fn view(&self, events: impl IntoIterator<Item = ChatEvent>) {
        if let Voice::View(view) = &self.voice {
            for event in events {
                view.show(event).await;
            }
        }
    }

    /// Writes a line to a pipe, or to programs.
    async fn say(&self, line: String) {
        if let Voice::Lines(output) = &self.voice {
            output.line(line).await;
        }
    }

    /// Remarks on something.
    async fn note(&self, words: &str) {
        self.say(self.show.note(words)).await;
        self.view([ChatEvent::Note(words.trim_start().to_owned())])
            .await;
    }

    /// Shows what was asked for.
    async fn answer(&self, words: &str) {
        self.say(self.show.note(words)).await;
        self.view([ChatEvent::Info(words.to_owned())]).await;
    }

    /// Leaves the server, and the terminal as it was.
    pub(super) async fn finish(self) {
        let Self {
            input,
            voice,
            connection,
            ..
        } = self;
        connection.close().await;
        drop(input);
        match voice {
            Voice::View(view) => view.finish().await,
            Voice::Lines(output) => output.finish().await,
        }
    }

    /// Asks whether a server that cannot be held to asking may work.
    pub(super) async fn may_work(&mut self) -> bool {
        self.say(MAY_WORK.to_owned()).await;
        self.view([ChatEvent::Question(MAY_WORK.to_owned())]).await;
        let line = tokio::select! {
            line = self.input.lines.recv() => line,
            () = &mut self.end => None,
        };
        self.view([ChatEvent::Ended]).await;
        self.may_work = matches!(line, Some(Line::Text(text)) if asking::is_yes(&text));
        self.may_work
    }

    /// Talks until it is enough.
    pub(super) async fn work(&mut self) -> Result<(), Failure> {
        if self.server.url.are_several() {
            self.tell_node(false).await;
        }
        let welcome = "write what you want done, or /help";
        self.view([ChatEvent::Note(welcome.to_owned())]).await;
        let is_interrupted = self.run_until_done().await;
        self.abort().await;
        match self.failed {
            _ if is_interrupted => Err(Failure::aborted()),
            _ if self.is_asked && !self.is_terminal() => Err(Failure::new(NOBODY)),
            0 => Ok(()),
            1 => Err(Failure::new("something went wrong on the way")),
            failed => Err(Failure::new(format_args!(
                "{failed} things went wrong on the way"
            ))),
        }
    }

    async fn tell_node(&self, again: bool) {
        let node = self.connection.node();
        self.say(self.show.connected(node.as_deref(), again)).await;
        let words = show::connected(node.as_deref(), again);
        self.view([ChatEvent::Note(words)]).await;
    }

    /// Connects again if the connection has ended: to another node, if there is one.
    async fn reconnect(&mut self) -> Result<(), Failure> {
        if !self.connection.is_over() {
            return Ok(());
        }
        let connection = self.server.open(None).await?;
        if !self.may_work && asking::needs_leave(self.wishes, &connection.status)? {
            connection.close().await;
            return Err(asking::not_allowed());
        }
        std::mem::replace(&mut self.connection, connection)
            .close()
            .await;
        self.tell_node(true).await;
        Ok(())
    }

    /// Whether it was interrupted while something ran.
    async fn run_until_done(&mut self) -> bool {
        loop {
            // From a pipe one comes after the other; who sits at a terminal has a queue.
            let waits = !self.is_terminal() && !self.running.is_empty();
            match self.held.take() {
                Some(line) if waits && line != Line::Abort => self.held = Some(line),
                Some(line) => {
                    if self.line(line).await {
                        return false;
                    }
                    continue;
                }
                None if self.is_silent && self.running.is_empty() => return false,
                None => {}
            }
            match self.next().await {
                Happened::Signal => return !self.running.is_empty(),
                Happened::Line(Some(line)) => self.held = Some(line),
                // At a terminal that is the end; from a pipe, all was said.
                Happened::Line(None) if self.is_terminal() => return false,
                Happened::Line(None) => self.is_silent = true,
                Happened::Update(at, update) => self.update(at, *update).await,
            }
        }
    }

    async fn next(&mut self) -> Happened {
        // A line that has to wait holds up those behind it.
        let reads = !self.is_silent && self.held.is_none();
        tokio::select! {
            line = self.input.lines.recv(), if reads => Happened::Line(line),
            (at, update) = next_update(&mut self.running) => Happened::Update(at, Box::new(update)),
            () = &mut self.end => Happened::Signal,
        }
    }

    /// Does what a line asks for; `true` to end.
    async fn line(&mut self, line: Line) -> bool {
        match line {
            Line::Text(text) => self.begin(text).await,
            Line::Interrupt if self.running.is_empty() => return true,
            Line::Abort if self.running.is_empty() && self.is_asked && self.is_terminal() => {
                self.begin("no".to_owned()).await;
            }
            Line::Abort | Line::Interrupt => {
                if self.running.is_empty() {
                    self.note("nothing runs").await;
                }
                self.abort().await;
            }
            Line::Status => {
                if let Err(failure) = self.tell_status().await {
                    self.wrong(&failure.to_string()).await;
                }
            }
            Line::New => {
                self.said.clear();
                self.session = SessionId::random(entropy());
                self.note("another conversation").await;
            }
            Line::Help => self.answer(&help::<Line>(HELP)).await,
            Line::Wrong(why) => self.wrong(&why).await,
            Line::Quit => return true,
        }
        false
    }

    async fn tell_status(&mut self) -> Result<(), Failure> {
        self.reconnect().await?;
        let status = self.connection.ask().await.map_err(Failure::new)?;
        for line in status::lines(&status) {
            self.answer(&line).await;
        }
        Ok(())
    }

    async fn wrong(&mut self, why: &str) {
        self.failed += usize::from(!self.is_terminal());
        self.say(self.show.wrong(why)).await;
        self.view([ChatEvent::Error(why.to_owned())]).await;
    }

    /// Starts a chat, or lets it wait: an answer to a question that may come has to be the next one.
    async fn begin(&mut self, text: String) {
        if self.wishes.yes || self.running.is_empty() {
            return self.start(text, true).await;
        }
        self.waiting.push_back(text);
        let place = self.waiting.len();
        self.note(&format!("  waiting, place {place}")).await;
    }

    /// Starts what waits, unless the user is asked something.
    async fn go_on(&mut self) {
        if self.is_asked {
            let left = std::mem::take(&mut self.waiting).len();
            if left > 0 {
                self.note("what waited is not done: answer first").await;
            }
        } else if self.running.is_empty()
            && let Some(text) = self.waiting.pop_front()
        {
            self.start(text, true).await;
        }
    }

    async fn start(&mut self, text: String, may_repeat: bool) {
        if let Err(failure) = self.reconnect().await {
            return self.wrong(&failure.to_string()).await;
        }
        match self.request(&text) {
            Ok(request) => {
                let chat = self.connection.start(request).await;
                if self.running.is_empty() {
                    self.view_work("thinking").await;
                }
                self.number += 1;
                self.running.push_back(Running {
                    chat,
                    number: self.number,
                    text,
                    may_repeat,
                    line: String::new(),
                });
            }
            Err(why) => self.wrong(&why.to_string()).await,
        }
    }

    async fn view_work(&self, what: &str) {
        self.view([ChatEvent::Activity(what.to_owned())]).await;
    }

    fn request(&self, text: &str) -> Result<ChatRequest, Refused> {
        let mut request = self.wishes.request(text, &self.connection.status);
        request.session_id = Some(self.session.clone());
        for item in &self.said {
            request = request.with_history_item(item)?;
        }
        Ok(request)
    }

    /// Aborts everything, what waits first, so that nothing of it begins. What the others say
    /// meanwhile is taken, or it would stand in the way of the answer.
    async fn abort(&mut self) {
        self.waiting.clear();
        if !self.running.is_empty() {
            self.view_work("stopping").await;
        }
        for running in &mut self.running {
            running.may_repeat = false;
        }
        let mut ending = VecDeque::new();
        while let Some(mut last) = self.running.pop_back() {
            {
                let mut aborted = pin!(last.chat.abort());
                loop {
                    tokio::select! {
                        // The chat itself tells what came of it.
                        _ = &mut aborted => break,
                        (at, update) = next_update(&mut self.running) => self.update(at, update).await,
                    }
                }
            }
            ending.push_front(last);
        }
        self.running = ending;
        while !self.running.is_empty() {
            let (at, update) = next_update(&mut self.running).await;
            self.update(at, update).await;
        }
    }

    async fn update(&mut self, at: usize, update: ChatUpdate) {
        let Some(running) = self.running.get_mut(at) else {
            return;
        };
        if let ChatUpdate::Ended(outcome) = update {
            match self.running.remove(at) {
                Some(running) if running.may_repeat && was_not_sent(&outcome) => {
                    self.start(running.text, false).await;
                }
                Some(running) => {
                    self.ended(running, &outcome).await;
                    self.go_on().await;
                }
                None => {}
            }
            return;
        }
        if matches!(self.voice, Voice::View(_)) {
            let events = show::events(&update, running.number);
            return self.view(events).await;
        }
        let number = (self.number > 1).then_some(running.number);
        let mut lines = Vec::new();
        for piece in self.show.update(&update, number) {
            match piece {
                Piece::Text(text) => {
                    running.line.push_str(&text);
                    // Above a line that is being edited only whole ones can be written.
                    while let Some((line, rest)) = running.line.split_once('\n') {
                        lines.push(line.to_owned());
                        running.line = rest.to_owned();
                    }
                }
                Piece::Line(line) => {
                    lines.extend(
                        Some(std::mem::take(&mut running.line)).filter(|it| !it.is_empty()),
                    );
                    lines.push(line);
                }
            }
        }
        for line in lines {
            self.say(line).await;
        }
    }

    async fn ended(&mut self, running: Running, outcome: &Outcome) {
        let asks = asking::is_question(outcome, &self.connection.status);
        self.is_asked = asks;
        match &self.voice {
            Voice::View(_) => self.view_end(outcome).await,
            Voice::Lines(_) => self.say_end(&running, outcome).await,
        }
        let Some(reply) = outcome.reply() else {
            self.failed += usize::from(!self.is_terminal());
            return;
        };
        self.remember(Role::User, running.text);
        self.remember(Role::Assistant, reply.output.to_string());
    }

    async fn view_end(&self, outcome: &Outcome) {
        self.view(show::ended(outcome)).await;
        if self.is_asked {
            self.view([ChatEvent::Question(ALLOW.to_owned())]).await;
        } else if !self.running.is_empty() {
            self.view_work("thinking").await;
        }
    }

    async fn say_end(&self, running: &Running, outcome: &Outcome) {
        if self.show.is_json() {
            let number = (self.number > 1).then_some(running.number);
            let task_id = running.chat.task_id().map(TaskId::as_str);
            return self.say(Show::ended_json(outcome, task_id, number)).await;
        }
        if !running.line.is_empty() {
            self.say(running.line.clone()).await;
        }
        match (outcome.reply(), outcome) {
            (Some(reply), _) if reply.output_streamed == Some(false) => {
                self.say(printable_lines(&reply.output)).await;
            }
            (Some(_), _) => {}
            (None, Outcome::Aborted { .. }) => self.note("aborted").await,
            (None, other) => self.say(self.show.wrong(&words(other))).await,
        }
        if self.is_asked {
            self.say(ALLOW.to_owned()).await;
        }
    }

    fn remember(&mut self, role: Role, text: String) {
        let id = MessageId::random(entropy());
        self.said
            .push_back(HistoryItem::new(id, role, text, SystemTime::now()));
        while self.said.len() > SAID.min(MAX_HISTORY) {
            self.said.pop_front();
        }
    }
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

/// What the next of them tells that has something to tell.
async fn next_update(running: &mut VecDeque<Running>) -> (usize, ChatUpdate) {
    poll_fn(|cx| {
        for (at, running) in running.iter_mut().enumerate() {
            if let Poll::Ready(Some(update)) = running.chat.poll_next_unpin(cx) {
                return Poll::Ready((at, update));
            }
        }
        Poll::Pending
    })
    .await
}
