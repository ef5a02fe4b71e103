//! [`run`]: a conversation at a terminal, in a pipe or with one text, the same for all protocols; a [`Peer`] is
//! the client of one of them.

pub(crate) mod agent;
pub(crate) mod bot;
pub(crate) mod daemon;
pub(crate) mod gateway;
mod line;
mod out;
pub(crate) mod router;
pub mod terminal;

use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::Events;
use serde_json::json;
use tokio::time::sleep;

use self::terminal::{ChatEvent, Command, Input, Line, Waits};
use crate::cli::{self, Failure};

pub use line::help;
pub use out::{Out, frame, telling};

/// What can be answered to a step that needs leave. Enter alone refuses it.
pub(crate) const ALLOW: &str = "Allow? y/N/always, or say what to do instead:";

/// When it is reported that a server does not answer in its protocol.
const SLOW: Duration = Duration::from_secs(4);

/// Waits for an event of a connection that `pick` takes, for ever once the connection has ended.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn wait_for<E, T>(events: &mut Events<E>, pick: impl Fn(E) -> Option<T>) -> T {
    while let Some(event) = events.next().await {
        if let Some(picked) = pick(event) {
            return picked;
        }
    }
    pending().await
}

/// Whether something can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not now: there is no connection.
    Away,
    /// Nothing runs.
    Idle,
    /// Something runs.
    Busy,
    /// The user is asked something: the next text is the answer, which may be empty.
    Asking,
}

/// The client of a protocol, for a [conversation](run).
#[allow(async_fn_in_trait, reason = "conversations run in one task")]
pub trait Peer {
    /// What happens, until it is [handled](Self::handle).
    type Event;

    /// What is talked to, such as `gateway`: lines are kept under this name.
    const NAME: &'static str;
    /// What `/help` says first.
    const INTRO: &'static str;
    /// The longest text, in bytes.
    const MAX_BYTES: usize;
    /// Whether what runs can be stopped.
    const STOPS: bool = true;
    /// How long [`leave`](Self::leave) may take.
    const GOODBYE: Duration = Duration::from_secs(2);

    /// Returns the commands beyond `/stop`, `/help` and `/quit`.
    fn commands(&self) -> Vec<Command>;

    /// Returns whether something can be said.
    fn state(&self) -> State;

    /// Returns whether all that was said has ended. Default: nothing runs.
    fn is_done(&self) -> bool {
        self.state() == State::Idle
    }

    /// Returns whether it goes on when no more lines come, until a signal. Default: no.
    fn serves(&self) -> bool {
        false
    }

    /// Returns whether texts go out at once while something runs. Default: they wait for its end.
    fn takes_more(&self) -> bool {
        false
    }

    /// Begins, when there is a connection for the first time.
    async fn begin(&mut self, _out: &Out) {}

    /// Returns what is talked to, for the first line at a terminal: the model, as far as it is known, and the
    /// conversation or the folder. Default: nothing.
    async fn about(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes in that no more lines come.
    async fn silence(&mut self) {}

    /// Waits for what happens next.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn next(&mut self) -> Self::Event;

    /// Handles what has happened.
    ///
    /// # Errors
    /// [`Failure`] if the conversation cannot go on. What has failed otherwise goes to [`Out::wrong`].
    async fn handle(&mut self, event: Self::Event, out: &Out) -> Result<(), Failure>;

    /// Sends a text that was written, or answers with it.
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure>;

    /// Does what one of the [commands](Self::commands) asks for.
    ///
    /// # Errors
    /// Why it cannot be done.
    async fn command(&mut self, name: &str, rest: &str, out: &Out) -> Result<(), String>;

    /// Begins to stop what runs, without waiting for its end.
    async fn stop(&mut self, _out: &Out) {}

    /// Declines what is asked, because no one is there to answer.
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    async fn decline(&mut self, _out: &Out) -> Result<(), Failure> {
        Ok(())
    }

    /// Says goodbye: the conversation has ended, whatever runs. Dropped if it takes too long.
    async fn leave(&mut self, _out: &Out) {}
}

/// How to converse.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Say this only, and end with the answer. Default: lines are read.
    pub once: Option<String>,
    /// Print a JSON object for each event.
    pub json: bool,
    /// A file that keeps the lines that are written at a terminal. Default: one among the state of the
    /// user's programs.
    pub history: Option<PathBuf>,
    /// The name of the server, for the user.
    pub place: String,
}

/// Converses until the user leaves, the input has ended and everything is answered, or a signal comes.
///
/// # Errors
/// [`Failure`] if something went wrong that the user has not seen at a terminal.
pub async fn run<P: Peer>(peer: &mut P, options: Options) -> Result<(), Failure> {
    let end = cli::end_signal().boxed();
    let mut commands = peer.commands();
    line::add_common::<P>(&mut commands);
    let input = match options.once {
        Some(_) => None,
        None => Some(terminal::open(&terminal::Settings {
            max_bytes: P::MAX_BYTES,
            history: options.history,
            name: P::NAME,
            commands: commands.clone(),
            can_stop: P::STOPS,
        })?),
    };
    let editor = input.as_ref().and_then(|input| input.terminal.as_ref());
    let mut chat = Conversation {
        out: Out::new(editor, options.json, options.once.is_some()),
        is_terminal: editor.is_some(),
        input,
        commands,
        place: options.place,
        is_once: options.once.is_some(),
        once: options.once,
        waiting: VecDeque::new(),
        was_in: false,
        is_silent: false,
        is_stopped: false,
        is_declined: false,
        is_interrupted: false,
        end,
    };
    let mut talked = chat.talk(peer).await;
    // Before the goodbye: from now on a signal is the second one.
    let second = cli::second_signal();
    tokio::select! {
        () = peer.leave(&chat.out) => {}
        () = second => {
            let cut = Failure::aborted_with("ended before everything was finished");
            talked = talked.and(Err(cut));
        }
        () = sleep(P::GOODBYE) => {}
    }
    // What ran has ended meanwhile, in its own way, which programs know.
    let is_over = chat.is_interrupted && chat.out.is_settled();
    if is_over {
        talked = Err(chat.interrupted());
    }
    if let (Err(failure), false) = (&talked, is_over) {
        let about = json!({ "message": failure.to_string() });
        chat.out.program("error", about).await;
    }
    let outcome = talked.and_then(|()| chat.verdict(peer.serves()));
    // The editor ends before what it shows.
    drop(chat.input);
    chat.out.finish().await;
    outcome
}

struct Conversation {
    out: Out,
    /// Opened when a person has to be asked, if there is one text only.
    input: Option<Input>,
    commands: Vec<Command>,
    place: String,
    is_terminal: bool,
    is_once: bool,
    /// The only text, until it is said.
    once: Option<String>,
    /// What was read and waits for its turn; from a pipe at most one line.
    waiting: VecDeque<Line>,
    /// There was a connection.
    was_in: bool,
    /// No more lines come.
    is_silent: bool,
    /// What runs was asked to stop.
    is_stopped: bool,
    /// Something was asked, and no one was there to answer.
    is_declined: bool,
    /// A signal has ended it while something ran.
    is_interrupted: bool,
    /// The wish to end. One for all the time, so that none is missed.
    end: BoxFuture<'static, ()>,
}

enum Next<E> {
    Line(Option<Line>),
    Event(E),
    Slow,
    Signal,
}

impl Conversation {
    async fn talk<P: Peer>(&mut self, peer: &mut P) -> Result<(), Failure> {
        let mut slow = Box::pin(sleep(SLOW));
        let mut is_slow = false;
        loop {
            if self.out.has_failure() {
                return Ok(());
            }
            let state = peer.state();
            self.is_stopped &= state != State::Idle;
            if !self.was_in && state != State::Away {
                self.was_in = true;
                peer.begin(&self.out).await;
                let somebody_writes = !self.is_once && io::stdin().is_terminal();
                if somebody_writes {
                    let mut greeting = peer.about().await;
                    greeting.push("write a message, or /help".to_owned());
                    let greeting = ChatEvent::Note(greeting.join(" · "));
                    self.out.people([greeting]).await;
                }
            }
            if self.was_in
                && let Some(line) = self.ripe(peer)
            {
                if self.line(line, peer).await? {
                    return Ok(());
                }
                continue;
            }
            if self.was_in
                && state == State::Idle
                && let Some(text) = self.once.take()
            {
                peer.submit(text, &self.out).await?;
                peer.silence().await;
                continue;
            }
            let is_all = self.is_once || self.is_silent && !peer.serves();
            if self.is_silent && state == State::Asking {
                self.is_declined = true;
                peer.decline(&self.out).await?;
                continue;
            }
            let is_said = self.once.is_none() && self.waiting.is_empty();
            if self.was_in && is_all && is_said && peer.is_done() {
                return Ok(());
            }
            // From a pipe one line after the other; with one text, only answers.
            let reads = !self.is_silent
                && (self.is_terminal
                    || self.waiting.is_empty() && (!self.is_once || state == State::Asking));
            if reads && self.input.is_none() {
                self.input = Some(terminal::plain(P::MAX_BYTES));
            }
            let input = self.input.as_mut();
            let happened = tokio::select! {
                biased;
                () = &mut self.end => Next::Signal,
                event = peer.next() => Next::Event(event),
                line = next_line(input), if reads => Next::Line(line),
                () = &mut slow, if !self.was_in && !is_slow => Next::Slow,
            };
            match happened {
                Next::Signal
                    if self.is_terminal || self.was_in && peer.is_done() || peer.serves() =>
                {
                    return Ok(());
                }
                Next::Signal => {
                    self.is_interrupted = true;
                    return Err(Failure::aborted());
                }
                Next::Event(event) => peer.handle(event, &self.out).await?,
                Next::Line(Some(Line::Interrupt)) if !self.was_in => return Ok(()),
                Next::Line(Some(line)) => self.take(line, peer).await,
                // At a terminal that is the end; from a pipe, all was said.
                Next::Line(None) if self.is_terminal => return Ok(()),
                Next::Line(None) => {
                    self.is_silent = true;
                    peer.silence().await;
                }
                Next::Slow => {
                    is_slow = true;
                    let words = format!(
                        "no answer from {} yet: it may speak another protocol",
                        self.place
                    );
                    self.out.warn(&words).await;
                }
            }
        }
    }

    /// Takes a line in.
    async fn take<P: Peer>(&mut self, line: Line, peer: &P) {
        let state = peer.state();
        let is_waiting = !self.is_ripe(&line, state, peer);
        match &line {
            Line::Text(text) if text.is_empty() && state != State::Asking => return,
            Line::Text(text) if self.is_terminal && self.was_in && state == State::Away => {
                let why = format!("not sent: {text}: there is no connection");
                return self.out.wrong(Failure::new(why)).await;
            }
            _ => {}
        }
        // What need not wait goes before what does.
        match is_waiting {
            true => self.waiting.push_back(line),
            false => return self.waiting.push_front(line),
        }
        if self.is_terminal && self.was_in {
            let place = self.waiting.len();
            self.out.note(&format!("waiting, place {place}")).await;
        }
    }

    /// The next line, if its time has come.
    fn ripe(&mut self, peer: &impl Peer) -> Option<Line> {
        let line = self.waiting.front()?;
        match self.is_ripe(line, peer.state(), peer) {
            true => self.waiting.pop_front(),
            false => None,
        }
    }

    fn is_ripe(&self, line: &Line, state: State, peer: &impl Peer) -> bool {
        match (line, state) {
            // Nothing else would be read.
            (Line::Command(..), State::Asking) if !self.is_terminal => true,
            (Line::Command(name, _), State::Away | State::Busy | State::Asking) => {
                let mut known = self.commands.iter();
                match known.find(|command| command.name == *name) {
                    Some(command) if self.is_terminal => command.waits != Waits::Always,
                    Some(command) => command.waits == Waits::Never,
                    None => self.is_terminal,
                }
            }
            (Line::Text(_), State::Busy) => self.is_terminal && peer.takes_more(),
            (Line::Text(_), State::Away) => false,
            (Line::Wrong(_), State::Away | State::Busy) => self.is_terminal,
            _ => true,
        }
    }

    /// Does what a line asks for; `true` to end.
    async fn line<P: Peer>(&mut self, line: Line, peer: &mut P) -> Result<bool, Failure> {
        let is_idle = peer.state() == State::Idle;
        match line {
            Line::Text(text) => peer.submit(text, &self.out).await?,
            Line::Interrupt if is_idle || self.is_stopped || !P::STOPS => return Ok(true),
            Line::Stop if is_idle => {}
            Line::Stop | Line::Interrupt => self.stop(peer).await,
            Line::Wrong(why) => self.out.wrong(Failure::new(why)).await,
            Line::Command(name, rest) => match &*name {
                "quit" => return Ok(true),
                "help" => {
                    let text = help::<P>(&self.commands);
                    self.out
                        .answer("help", json!({ "text": text }), &text)
                        .await;
                }
                "stop" if is_idle => self.out.note("nothing runs").await,
                "stop" => self.stop(peer).await,
                known if self.commands.iter().any(|command| command.name == known) => {
                    if let Err(why) = peer.command(known, &rest, &self.out).await {
                        self.out.wrong(Failure::new(why)).await;
                    }
                }
                other => {
                    let why = line::unknown(other, &self.commands);
                    self.out.wrong(Failure::new(why)).await;
                }
            },
        }
        Ok(false)
    }

    async fn stop<P: Peer>(&mut self, peer: &mut P) {
        let waiting: Vec<_> = self.waiting.drain(..).filter_map(Line::into_text).collect();
        if !waiting.is_empty() && self.is_terminal {
            let text = waiting.join("\n");
            self.out.people([ChatEvent::Unsent(text)]).await;
        }
        self.is_stopped = true;
        let stopping = ChatEvent::Activity("stopping".to_owned());
        self.out.people([stopping]).await;
        peer.stop(&self.out).await;
    }

    /// What came of what a signal has interrupted.
    fn interrupted(&self) -> Failure {
        match self.out.take_failure() {
            Some(failure) => Failure::aborted_with(failure),
            None if self.out.failures() > 0 => Failure::aborted(),
            None => Failure::aborted_with("interrupted, when the whole answer had come"),
        }
    }

    /// The outcome for scripts.
    fn verdict(&self, serves: bool) -> Result<(), Failure> {
        if let Some(failure) = self.out.take_failure() {
            return Err(failure);
        }
        match self.out.failures() {
            _ if self.is_terminal || serves => Ok(()),
            _ if self.is_declined => Err(Failure::new(
                "a question was asked, and no one could answer it",
            )),
            0 => Ok(()),
            1 => Err(Failure::new("one error was printed above")),
            failed => Err(Failure::new(format_args!(
                "{failed} errors were printed above"
            ))),
        }
    }
}

/// The next line; none comes from an input that is not open.
async fn next_line(input: Option<&mut Input>) -> Option<Line> {
    match input {
        Some(input) => input.lines.recv().await,
        None => pending().await,
    }
}
