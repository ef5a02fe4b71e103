//! [`ChatLoop`]: takes lines, hands them to the agent, and shows what it does.

mod events;

use std::collections::VecDeque;
use std::path::PathBuf;

use connectonion_proto::client::{ClientEvent, Taken};
use connectonion_proto::frame::{ErrorFrame, Mode};
use connectonion_proto::net::{Client, Events, Run, RunEvent};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::{CallError, Refused};
use serde_json::json;
use switchboard::cli::{self, Failure, Urls, complain};
use switchboard::screen::printable;
use switchboard::terminal::{self, ChatEvent, ChatView, Input, Output, Terminal, help};
use tokio::task::JoinSet;

use super::attach::Attachments;
use super::last_session::LastSession;
use super::line::{HELP, Line};
use super::question::Question;
use super::show::Show;
use super::steps::Steps;

/// What an interjection came to.
type Said = Result<Taken, CallError<ErrorFrame>>;

/// How it is talked.
#[derive(Debug)]
pub(crate) struct Manner {
    /// One prompt, whose answer is the end.
    pub(crate) prompt: Option<String>,
    /// An invite code is offered before anybody is asked for one.
    pub(crate) offers_code: bool,
    /// Every tool may run.
    pub(crate) allow_all: bool,
    /// The mode to begin with.
    pub(crate) mode: Option<Mode>,
    /// A file for what is written at a terminal.
    pub(crate) history: Option<PathBuf>,
}

/// Where lines go.
enum Voice {
    /// To people at a terminal.
    View(ChatView),
    /// To a pipe, in order.
    Lines(Output),
    /// The answer to standard output, the rest to standard error.
    Once,
}

/// A conversation.
pub(crate) struct ChatLoop {
    agent: Client,
    /// Where it should be.
    url: Urls,
    events: Events,
    show: Show,
    steps: Steps,
    keeper: LastSession,
    manner: Manner,
    voice: Voice,
    /// Opened when somebody is to be asked, if there is one prompt only.
    input: Option<Input<Line>>,
    /// No more lines come.
    is_silent: bool,
    /// A line from a pipe, until the agent is done.
    held: Option<Line>,
    along: Attachments,
    /// What is listened to: the run of this user's prompt, or whatever runs.
    run: Run,
    /// The agent has let this user in.
    is_in: bool,
    /// Somebody works, as far as is known.
    is_busy: bool,
    /// The run is this user's.
    is_own: bool,
    /// The run was asked to stop.
    is_stopped: bool,
    questions: VecDeque<Question>,
    /// An invite code is wanted.
    is_gated: bool,
    /// Something was asked, and nobody was there to answer.
    is_declined: bool,
    /// Prompts that have no answer.
    failed: usize,
    said: JoinSet<Said>,
    /// The wish to end. One for all the time, so that none is missed.
    end: BoxFuture<'static, ()>,
}

/// What the loop does next.
enum Happened {
    Line(Option<Line>),
    Run(Box<RunEvent>),
    /// What is listened to has ended.
    Ended,
    Event(Option<Box<LinkEvent<ClientEvent>>>),
    Said(Box<Said>),
    Signal,
}

impl ChatLoop {
    pub(crate) fn new(
        (agent, url): (Client, Urls),
        events: Events,
        show: Show,
        keeper: LastSession,
        manner: Manner,
        along: Attachments,
    ) -> Result<Self, Failure> {
        let (input, voice) = match manner.prompt {
            Some(_) if !show.is_json() && terminal::is_watched() => {
                (None, Voice::View(ChatView::new(None)))
            }
            Some(_) => (None, Voice::Once),
            None => {
                let input = terminal::open(manner.history.as_deref())?;
                let above = input.terminal.as_ref().map(Terminal::above);
                let voice = match above {
                    Some(view) if !show.is_json() => Voice::View(view),
                    above => Voice::Lines(Output::new(above)),
                };
                (Some(input), voice)
            }
        };
        Ok(Self {
            run: agent.attach(),
            agent,
            url,
            events,
            show,
            steps: Steps::default(),
            keeper,
            manner,
            voice,
            input,
            is_silent: false,
            held: None,
            along,
            is_in: false,
            is_busy: false,
            is_own: false,
            is_stopped: false,
            questions: VecDeque::new(),
            is_gated: false,
            is_declined: false,
            failed: 0,
            said: JoinSet::new(),
            end: cli::end_signal().boxed(),
        })
    }

    fn is_terminal(&self) -> bool {
        let input = self.input.as_ref();
        input.is_some_and(|input| input.terminal.is_some())
    }

    const fn is_once(&self) -> bool {
        self.manner.prompt.is_some()
    }

    /// Shows something in the view, if people watch.
    async fn view(&self, events: impl IntoIterator<Item = ChatEvent>) {
        if let Voice::View(view) = &self.voice {
            for event in events {
                view.show(event).await;
            }
        }
    }

    const fn is_viewed(&self) -> bool {
        matches!(self.voice, Voice::View(_))
    }

    /// Tells that the agent is at work.
    async fn view_work(&self) {
        self.view([ChatEvent::Activity("thinking".to_owned())])
            .await;
    }

    async fn say(&self, line: String) {
        match &self.voice {
            Voice::View(view) => view.show(ChatEvent::Line(line)).await,
            Voice::Lines(output) => output.line(line).await,
            Voice::Once if self.show.is_json() => cli::say(line),
            Voice::Once => complain(line),
        }
    }

    /// Says what the user has to know.
    async fn ask(&self, line: String) {
        match &self.voice {
            Voice::Once if !self.show.is_json() => cli::ask(line),
            _ => self.say(line).await,
        }
    }

    async fn note(&self, name: &str, about: serde_json::Value, words: &str) {
        self.say(self.show.note(name, about, words)).await;
    }

    /// Tells of something that went wrong; with one prompt, that is the end.
    async fn wrong(&mut self, message: &str) -> Result<(), Failure> {
        if self.is_once() {
            return Err(Failure::new(message));
        }
        self.failed += usize::from(!self.is_terminal());
        self.say(self.show.error(message)).await;
        Ok(())
    }

    /// Talks until it is enough.
    pub(crate) async fn work(&mut self) -> Result<(), Failure> {
        let worked = self.run_until_done().await;
        if let Err(failure) = &worked
            && self.show.is_json()
        {
            self.say(self.show.error(&failure.to_string())).await;
        }
        self.keeper.keep(self.agent.session());
        if self.is_busy && worked.as_ref().err().is_none_or(Failure::is_abort) {
            let words = "the agent goes on; come back to it with --resume";
            match self.voice {
                // Below the answer as far as it came.
                Voice::View(_) if !cli::is_quiet() => {
                    self.view([ChatEvent::Note(words.to_owned())]).await;
                }
                _ => complain(words),
            }
        }
        worked?;
        if self.is_declined {
            return Err(Failure::new(
                "the agent asked something, and nobody was here to answer",
            ));
        }
        match self.failed {
            0 => Ok(()),
            1 => Err(Failure::new("something went wrong on the way")),
            failed => Err(Failure::new(format_args!(
                "{failed} things went wrong on the way"
            ))),
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) async fn finish(self) {
        let Self { voice, input, .. } = self;
        drop(input);
        match voice {
            Voice::View(view) => view.finish().await,
            Voice::Lines(output) => output.finish().await,
            Voice::Once => {}
        }
    }

    async fn run_until_done(&mut self) -> Result<(), Failure> {
        loop {
            if self.is_in || self.is_gated {
                if let Some(line) = self.ripe() {
                    if self.line(line).await? {
                        return Ok(());
                    }
                    continue;
                }
                let is_idle = !self.is_busy && self.said.is_empty();
                if self.is_silent && is_idle && !self.is_once() {
                    return Ok(());
                }
            }
            match self.next().await {
                Happened::Signal if self.is_once() => return Err(Failure::aborted()),
                Happened::Signal | Happened::Event(None) => return Ok(()),
                Happened::Line(Some(line)) => self.held = Some(line),
                // At a terminal that is the end; from a pipe, all was said.
                Happened::Line(None) if self.is_terminal() => return Ok(()),
                Happened::Line(None) => self.silence().await?,
                Happened::Run(event) => self.run_event(*event).await?,
                Happened::Ended => {
                    if self.ended().await? {
                        return Ok(());
                    }
                }
                Happened::Said(said) => self.interjected(*said).await?,
                Happened::Event(Some(event)) => {
                    if ends_line(&event) && self.catch_up().await? {
                        return Ok(());
                    }
                    let begins = !self.is_in
                        && matches!(&*event, LinkEvent::Event(ClientEvent::Connected(_)));
                    self.link_event(*event).await?;
                    if begins {
                        self.is_in = true;
                        self.begin().await?;
                    }
                }
            }
        }
    }

    async fn next(&mut self) -> Happened {
        // A line that has to wait holds up those behind it.
        let asked = self.is_in && !self.questions.is_empty() || self.is_gated;
        let reads = !self.is_silent
            && self.held.is_none()
            && if self.is_once() {
                asked
            } else {
                self.is_in || self.is_gated
            };
        if reads && self.input.is_none() {
            self.input = Some(terminal::plain());
        }
        let input = self.input.as_mut();
        // In this order: that the connection is back is told before the steps that come over it.
        tokio::select! {
            biased;
            () = &mut self.end => Happened::Signal,
            Some(Ok(said)) = self.said.join_next() => Happened::Said(Box::new(said)),
            event = self.events.next_link() => Happened::Event(event.map(Box::new)),
            line = read(input), if reads => Happened::Line(line),
            event = self.run.next() => match event {
                Some(Ok(event)) => Happened::Run(Box::new(event)),
                Some(Err(_)) | None => Happened::Ended,
            },
        }
    }

    /// Shows what came before the connection was lost; `true` if that is enough.
    async fn catch_up(&mut self) -> Result<bool, Failure> {
        while let Some(event) = self.run.next().now_or_never() {
            match event {
                Some(Ok(event)) => self.run_event(event).await?,
                Some(Err(_)) | None => return self.ended().await,
            }
        }
        Ok(false)
    }

    /// The line that waits, if it can be dealt with now.
    fn ripe(&mut self) -> Option<Line> {
        let waits = match &self.held {
            Some(Line::Text(_)) => self.is_busy && self.questions.is_empty() && !self.is_terminal(),
            Some(Line::File(_) | Line::Image(_) | Line::New) => self.is_busy,
            Some(_) => false,
            None => true,
        };
        if waits { None } else { self.held.take() }
    }

    /// The first thing to do when the client is let in.
    async fn begin(&mut self) -> Result<(), Failure> {
        self.is_gated = false;
        if let Some(mode) = self.manner.mode.clone() {
            let set = self.agent.set_mode(mode, None).await;
            set.map_err(Failure::new)?;
        }
        if let Some(prompt) = self.manner.prompt.clone() {
            return self.prompt(&prompt).await;
        }
        if self.is_terminal() && !self.show.is_json() {
            self.say("write what you want of the agent, or /help".to_owned())
                .await;
        }
        Ok(())
    }

    /// Nobody writes any more.
    async fn silence(&mut self) -> Result<(), Failure> {
        self.is_silent = true;
        if self.is_gated {
            return Err(Failure::refused(
                "this agent wants an invite code: give it with --invite",
            ));
        }
        self.decline().await
    }

    /// Declines what is asked, because nobody is there.
    async fn decline(&mut self) -> Result<(), Failure> {
        while let Some(question) = self.questions.pop_front() {
            self.is_declined = true;
            self.note("declined", json!({}), "nobody is here to answer")
                .await;
            let declined = question.decline().map_err(Failure::new)?;
            self.agent.respond(declined).await.map_err(Failure::new)?;
        }
        Ok(())
    }

    async fn prompt(&mut self, text: &str) -> Result<(), Failure> {
        let input = self.along.input(text).map_err(Failure::new)?;
        let run = self.agent.send(input).await;
        let mut before = std::mem::replace(&mut self.run, run);
        // What was told before this is shown before it. It may have heard of the new run, too.
        while let Some(Some(Ok(event))) = before.next().now_or_never() {
            if let RunEvent::Step(step) = &event
                && events::is_between_runs(&step.event.kind)
            {
                self.run_event(event).await?;
            }
        }
        (self.is_busy, self.is_own) = (true, true);
        self.view_work().await;
        Ok(())
    }

    /// Does what a line asks for; `true` to end.
    async fn line(&mut self, line: Line) -> Result<bool, Failure> {
        match line {
            Line::Text(text) if !self.questions.is_empty() => self.answer(&text).await?,
            Line::Text(text) if text.is_empty() => {}
            Line::Text(text) if self.is_gated => self.onboard(&text).await?,
            Line::Text(text) if !self.is_busy => self.prompt(&text).await?,
            Line::Text(text) | Line::Say(text) => {
                let agent = self.agent.clone();
                self.said.spawn(async move { agent.interject(text).await });
            }
            Line::Cancel if !self.is_busy || self.is_stopped => return Ok(true),
            Line::Interrupt | Line::Cancel => {
                self.is_stopped = self.is_busy;
                let sent = self.agent.interrupt().await;
                self.order(sent).await?;
            }
            Line::Mode(mode, turns) => {
                let sent = self.agent.set_mode(mode, turns).await;
                self.order(sent).await?;
            }
            Line::File(path) => {
                let taken = self.along.file(&path);
                self.took(taken).await?;
            }
            Line::Image(path) => {
                let taken = self.along.image(&path);
                self.took(taken).await?;
            }
            Line::New => {
                self.agent.new_session(false).await.map_err(Failure::new)?;
                self.note("new", json!({}), "another conversation").await;
            }
            Line::Help => self.note("help", json!({}), &help::<Line>(HELP)).await,
            Line::Wrong(why) => self.wrong(&why).await?,
            Line::Quit => return Ok(true),
        }
        Ok(false)
    }

    async fn took(&mut self, taken: Result<(), String>) -> Result<(), Failure> {
        match taken {
            Ok(()) => Ok(()),
            Err(why) => self.wrong(&why).await,
        }
    }

    async fn order(&mut self, sent: Result<(), Refused>) -> Result<(), Failure> {
        match sent {
            Ok(()) => Ok(()),
            Err(refused) => self.wrong(&refused.to_string()).await,
        }
    }

    async fn onboard(&mut self, code: &str) -> Result<(), Failure> {
        match self.agent.onboard(code).await {
            Ok(success) => {
                self.is_gated = false;
                let words = success.message.as_deref().unwrap_or("you are let in");
                self.note("onboarded", json!({ "message": words }), &printable(words))
                    .await;
            }
            Err(error) => {
                self.say(self.show.error(&events::words(&error))).await;
            }
        }
        Ok(())
    }
}

/// The next line; none comes from an input that is not open.
fn ends_line(event: &LinkEvent<ClientEvent>) -> bool {
    match event {
        LinkEvent::State(LinkState::Lost { .. }) => true,
        LinkEvent::State(state) => state.ended().is_some(),
        _ => false,
    }
}

async fn read(input: Option<&mut Input<Line>>) -> Option<Line> {
    input?.lines.recv().await
}
