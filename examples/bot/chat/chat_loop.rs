//! [`ChatLoop`]: posts lines, and shows what is said in the channels.

use std::collections::VecDeque;
use std::fmt::Display;
use std::future::{Future, pending};
use std::time::Duration;

use examples::cli::{self, Failure};
use examples::screen::{Colour, printable, printable_lines};
use examples::terminal::{Input, Output, Terminal};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::{CallError, CloseReason, Delivery, Str};
use serde_json::{Value, json};
use snek_proto::client::{ClientEvent, Ready};
use snek_proto::error::RpcError;
use snek_proto::frame::{Channel, Final, Message};
use snek_proto::net::{Client, Events};
use tokio::time::{Instant, sleep_until, timeout};

use super::Args;
use super::growing::{Entry, Growing};
use super::line::{HELP, Line};

/// How long the server may take for what a command asks.
const ASKED: Duration = Duration::from_secs(5);
/// Most own messages that are looked for among those of the server.
const OWN: usize = 64;
/// The longest name of a channel in the prompt, in characters.
const LABEL: usize = 24;

type Posted = Result<(), CallError<RpcError>>;

/// A message to post: the channel's uid and the text.
type Post = (Str, String);

/// A conversation.
pub(super) struct ChatLoop {
    client: Client,
    events: Events,
    input: Input<Line>,
    output: Output,
    args: Args,
    me: Str,
    channels: Vec<Channel>,
    current: Option<Channel>,
    is_in: bool,
    was_in: bool,
    growing: Growing,
    /// The texts that wait to be posted, and the one on its way.
    waiting: VecDeque<Post>,
    sending: Option<BoxFuture<'static, (Post, Posted)>>,
    /// What was posted and has not come back.
    own: VecDeque<Post>,
    posted: usize,
    answered: usize,
    failed: usize,
    /// No more lines come.
    is_silent: bool,
    /// When the answers are given up that nobody sits and waits for.
    deadline: Option<Instant>,
    /// The wish to end. One for all the time, so that none is missed.
    end: BoxFuture<'static, ()>,
}

/// What happens next.
enum Happened {
    Event(Box<Option<LinkEvent<ClientEvent>>>),
    Posted(Post, Posted),
    Line(Option<Line>),
    Due,
    Signal,
}

impl ChatLoop {
    pub(super) fn new(client: Client, events: Events, input: Input<Line>, args: Args) -> Self {
        let above = input.terminal.as_ref().map(Terminal::above);
        Self {
            client,
            events,
            input,
            output: Output::new(above),
            is_silent: args.text.is_some(),
            args,
            me: Str::default(),
            channels: Vec::new(),
            current: None,
            is_in: false,
            was_in: false,
            growing: Growing::default(),
            waiting: VecDeque::new(),
            sending: None,
            own: VecDeque::new(),
            posted: 0,
            answered: 0,
            failed: 0,
            deadline: None,
            end: cli::end_signal().boxed(),
        }
    }

    const fn is_terminal(&self) -> bool {
        self.input.terminal.is_some()
    }

    /// Whether there is one text, and only its answer is printed.
    const fn is_once(&self) -> bool {
        self.args.text.is_some()
    }

    /// Tells of an event: in JSON, or in words to people who want remarks.
    async fn tell(&self, event: &str, mut about: Value, words: impl Display) {
        if self.args.json {
            about["event"] = event.into();
            self.output.line(about.to_string()).await;
        } else if !self.is_terminal() {
            cli::complain(words);
        } else if !cli::is_quiet() {
            let words = words.to_string();
            self.output.line(self.paint(Colour::Dim, &words)).await;
        }
    }

    /// Tells of what could not be done, quiet or not.
    async fn wrong(&mut self, event: &str, mut about: Value, words: impl Display) {
        self.failed += usize::from(!self.is_terminal());
        if self.args.json {
            about["event"] = event.into();
            self.output.line(about.to_string()).await;
        } else if self.is_terminal() {
            self.output.line(words.to_string()).await;
        } else {
            cli::ask(words);
        }
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        match self.is_terminal() && cli::wants_colour(&std::io::stdout()) {
            true => colour.paint(text),
            false => text.to_owned(),
        }
    }

    /// Draws the prompt with the channel, and above it who types what.
    async fn draw(&self) {
        let (label, status) = match &self.current {
            None => ("> ".to_owned(), String::new()),
            Some(channel) => {
                let name: String = name_of(channel).chars().take(LABEL).collect();
                let status = self.growing.shown_in(channel.uid.as_str());
                (format!("{name}> "), status)
            }
        };
        let status = if self.args.json { "".into() } else { status };
        self.output.status(label, status).await;
    }

    /// Leaves the terminal as it was.
    pub(super) async fn finish(self) {
        let Self { input, output, .. } = self;
        drop(input);
        output.finish().await;
    }

    /// Talks until it is enough.
    pub(super) async fn work(&mut self) -> Result<(), Failure> {
        while !self.is_done() {
            self.post_next();
            match self.next().await {
                Happened::Event(event) => match *event {
                    Some(LinkEvent::Event(event)) => self.event(event).await?,
                    Some(LinkEvent::State(state)) => self.state(state).await?,
                    Some(LinkEvent::Lagged(events)) => {
                        let words = format!("too slow, {events} events were dropped");
                        self.tell("lagged", json!({ "events": events }), words)
                            .await;
                    }
                    Some(_) => {}
                    None => return Err(Failure::new("the connection has ended")),
                },
                Happened::Posted(post, result) => self.posted(post, result).await,
                Happened::Line(Some(line)) => {
                    if self.line(line).await {
                        break;
                    }
                }
                // At a terminal that is the end; from a pipe, all was said.
                Happened::Line(None) if self.is_terminal() => break,
                Happened::Line(None) => {
                    self.is_silent = true;
                    self.wait_on();
                }
                Happened::Due => {
                    let expired = self.growing.expire();
                    self.broken_off(expired).await;
                    self.draw().await;
                }
                Happened::Signal if self.is_terminal() || self.has_answers() => break,
                Happened::Signal => return Err(Failure::aborted()),
            }
        }
        let left = self.sending.take().is_some();
        for post in std::mem::take(&mut self.waiting) {
            self.not_posted(&post, "it was too late").await;
        }
        let within = self.args.within;
        match self.failed {
            _ if left => Err(Failure::new("the last line may not be posted")),
            0 if self.is_terminal() || self.has_answers() || self.answered > 0 => Ok(()),
            0 => Err(Failure::new(format_args!("no answer within {within:?}"))),
            1 => Err(Failure::new("a line was not carried out")),
            failed => Err(Failure::new(format_args!(
                "{failed} lines were not carried out"
            ))),
        }
    }

    /// Whether there is an answer to whatever was posted, as far as can be counted.
    fn has_answers(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_none() && self.answered >= self.posted
    }

    fn is_done(&self) -> bool {
        let is_late = || self.deadline.is_some_and(|at| at <= Instant::now());
        let is_complete = || self.growing.is_empty() || self.is_once();
        self.was_in && self.is_silent && (self.has_answers() && is_complete() || is_late())
    }

    /// Waits for answers from now on.
    fn wait_on(&mut self) {
        self.deadline = (!self.is_terminal()).then(|| Instant::now() + self.args.within);
    }

    async fn next(&mut self) -> Happened {
        // From a pipe nothing is read that cannot be posted yet.
        let can_post = self.is_in && self.waiting.is_empty() && self.sending.is_none();
        let reads = !self.is_silent && (can_post || self.is_terminal());
        let deadline = self.deadline.filter(|_| self.is_silent);
        let due = self.growing.due().into_iter().chain(deadline).min();
        let sending = async {
            match &mut self.sending {
                Some(sending) => sending.await,
                None => pending().await,
            }
        };
        tokio::select! {
            // What was said before an answer is known before it.
            biased;
            () = &mut self.end => Happened::Signal,
            event = self.events.next() => Happened::Event(Box::new(event)),
            (post, result) = sending => {
                self.sending = None;
                Happened::Posted(post, result)
            }
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                Happened::Due
            }
            line = self.input.lines.recv(), if reads => Happened::Line(line),
        }
    }

    /// Posts one text after the other, so that they keep their order.
    fn post_next(&mut self) {
        if self.sending.is_some() || !self.is_in {
            return;
        }
        let Some(post) = self.waiting.pop_front() else {
            return;
        };
        self.own.push_back(post.clone());
        if self.own.len() > OWN {
            self.own.pop_front();
        }
        let client = self.client.clone();
        let sending = async move {
            let (channel, text) = &post;
            let sent = client.send_message(&**channel, text, Final::Yes).await;
            (post, sent.map(drop))
        };
        self.sending = Some(sending.boxed());
    }

    async fn posted(&mut self, post: Post, result: Posted) {
        let Err(error) = result else {
            self.posted += 1;
            return self.wait_on();
        };
        self.own.retain(|own| *own != post);
        let is_unsent = error.delivery() == Delivery::NotSent;
        let has_line = self.client.state().is_ready();
        if is_unsent && error.is_retryable() && !has_line && !self.is_terminal() {
            // It waits for the next connection.
            self.is_in = false;
            return self.waiting.push_front(post);
        }
        let why = match error.delivery() {
            Delivery::Unknown => format!("{error}; it may have been posted all the same"),
            _ => error.to_string(),
        };
        self.not_posted(&post, &why).await;
    }

    async fn not_posted(&mut self, (channel, text): &Post, why: &str) {
        let about = json!({ "channel": channel, "text": text, "message": why });
        let words = format!("not posted: {}: {}", printable(text), printable(why));
        self.wrong("not_posted", about, words).await;
    }

    async fn state(&mut self, state: LinkState) -> Result<(), Failure> {
        let (cause, retry_in) = match state {
            LinkState::Lost {
                cause, retry_in, ..
            } => (cause, Some(retry_in)),
            LinkState::GaveUp { cause } | LinkState::Closed { reason: cause } => (cause, None),
            _ => return Ok(()),
        };
        let url = &self.args.url;
        let Some(retry_in) = retry_in.filter(|_| self.was_in) else {
            let hint = match cause {
                CloseReason::Authentication { .. } => "; check --username and the password",
                _ => " ('switchboard bot serve --open' starts a server)",
            };
            return Err(match self.was_in {
                true => Failure::new(cause),
                false => Failure::refused(format_args!("no connection to {url}: {cause}{hint}")),
            });
        };
        // Told once, however many attempts fail.
        if std::mem::take(&mut self.is_in) || self.args.json {
            let about = json!({ "message": cause.to_string(), "retryInMs": retry_in.as_millis() });
            let words = format!("connection lost: {cause}; trying again");
            self.tell("lost", about, printable(&words)).await;
        }
        let cut = self.growing.clear();
        self.broken_off(cut).await;
        self.draw().await;
        Ok(())
    }

    async fn event(&mut self, event: ClientEvent) -> Result<(), Failure> {
        match event {
            ClientEvent::Ready(ready) => return self.ready(*ready).await,
            ClientEvent::Message(message) => self.message(message).await,
            ClientEvent::SetTyping(typing) => {
                let channel = typing.channel_uid.unwrap_or_default();
                let username = typing.username.unwrap_or_default();
                let nick = typing.user_nick.filter(|nick| !nick.is_empty());
                let nick = nick.unwrap_or_else(|| username.clone());
                if username == self.me || nick.is_empty() {
                    return Ok(());
                }
                if self.args.json {
                    let about = json!({ "channel": channel, "username": username, "nick": nick });
                    self.tell("typing", about, "").await;
                }
                self.growing.add(&channel, &username, &nick, None);
            }
            ClientEvent::Joined(joined) => self.moved("joined", joined.channel_uid.as_str()).await,
            ClientEvent::Left(left) => self.moved("left", left.channel_uid.as_str()).await,
            ClientEvent::Warning(warning) => {
                let message = warning.to_string();
                let words = format!("warning: {message}");
                let about = json!({ "message": message });
                self.tell("warning", about, printable(&words)).await;
            }
            _ => {}
        }
        self.draw().await;
        Ok(())
    }

    async fn ready(&mut self, ready: Ready) -> Result<(), Failure> {
        let (user, is_first) = (ready.user, !self.was_in);
        (self.me, self.channels) = (user.username.clone(), ready.channels);
        (self.is_in, self.was_in) = (true, true);
        if is_first {
            self.current = match &self.args.channel {
                None => self.channels.first().cloned(),
                Some(wanted) => Some(self.find(wanted).ok_or_else(|| {
                    let names: Vec<_> = self.channels.iter().map(name_of).collect();
                    let names = names.join(", ");
                    Failure::usage(format_args!("--channel {wanted}: there are only: {names}"))
                })?),
            };
            if let Some(text) = self.args.text.clone() {
                self.say(text).await;
            }
        }
        let current = self.current.as_ref().map(|channel| channel.uid.as_str());
        let about = json!({ "username": user.username, "nick": user.nick, "channel": current,
            "channels": self.channels });
        let words = match is_first {
            true => format!("connected as {}; write a message, or /help", user.username),
            false => "connected again".to_owned(),
        };
        if self.is_terminal() || self.args.json || !is_first {
            self.tell("connected", about, printable(&words)).await;
        }
        if is_first && self.is_terminal() && !self.args.json {
            self.list().await;
        }
        self.draw().await;
        Ok(())
    }

    async fn message(&mut self, message: Message) {
        let (channel, username) = (&message.channel_uid, &message.username);
        let nick = match &*message.user_nick {
            "" => username,
            _ => &message.user_nick,
        };
        let (text, is_own) = (&message.message, *username == self.me);
        if self.args.json {
            let about = json!({ "channel": channel, "username": username, "nick": nick,
                "text": text, "final": message.is_final, "own": is_own });
            self.tell("message", about, "").await;
        }
        if !message.is_final {
            return self.growing.add(channel, username, nick, Some(text));
        }
        self.growing.remove(channel, username);
        let is_it = |own: &Post| own.0 == *channel && own.1 == **text;
        let own = self.own.iter().position(is_it).filter(|_| is_own);
        if let Some(at) = own {
            self.own.remove(at);
        }
        let is_here = self
            .current
            .as_ref()
            .is_some_and(|it| it.uid.as_str() == &**channel);
        // Known to be posted by its answer to the call, or because it came back.
        let was_said = self.posted > 0 || self.sending.is_some() && self.own.is_empty();
        let is_answer = !is_own && is_here && was_said;
        self.answered += usize::from(is_answer);
        // At a terminal, one's own line stands there already.
        let is_known = own.is_some() && self.is_terminal();
        let is_more = self.is_once() && !(is_answer && self.answered == 1);
        if self.args.json || is_known || is_more {
            return;
        }
        let line = match self.is_once() {
            true => printable_lines(text),
            false => self.chat_line(channel, nick, "", text),
        };
        self.output.line(line).await;
    }

    /// A message as a line of chat. What follows a line's end is no message of its own.
    fn chat_line(&self, channel: &str, nick: &str, mark: &str, text: &str) -> String {
        let is_here = self
            .current
            .as_ref()
            .is_some_and(|it| it.uid.as_str() == channel);
        let place = match self.channels.iter().find(|it| it.uid.as_str() == channel) {
            _ if is_here => String::new(),
            Some(channel) => format!("{} ", name_of(channel)),
            None => format!("#{} ", printable(channel)),
        };
        let nick = self.paint(Colour::Cyan, &printable(nick));
        let text = printable_lines(text).replace('\n', "\n  ");
        format!("{place}{nick}{mark}: {text}")
    }

    /// Shows the messages that will not be complete.
    async fn broken_off(&self, entries: Vec<Entry>) {
        if self.args.json || self.is_once() {
            return;
        }
        for Entry {
            channel,
            nick,
            text,
            ..
        } in entries
        {
            if !text.is_empty() && self.is_terminal() {
                let line = self.chat_line(&channel, &nick, " (not complete)", &text);
                self.output.line(line).await;
            }
        }
    }

    /// The user was joined to a channel, or has left one.
    async fn moved(&mut self, event: &str, uid: &str) {
        let old = self.named(uid);
        self.ask_channels().await;
        let is_gone = event == "left"
            && self
                .current
                .as_ref()
                .is_some_and(|it| it.uid.as_str() == uid);
        if is_gone || self.current.is_none() {
            self.current = self.channels.first().cloned();
        }
        let name = if event == "left" {
            old
        } else {
            self.named(uid)
        };
        let words = format!("{event} {name}");
        self.tell(event, json!({ "channel": uid }), words).await;
    }

    fn named(&self, uid: &str) -> String {
        let known = self.channels.iter().find(|it| it.uid.as_str() == uid);
        known.map_or_else(|| printable(uid).into_owned(), name_of)
    }

    /// Asks for the channels anew; without an answer the old ones stay.
    async fn ask_channels(&mut self) -> bool {
        let asked = ask(self.client.get_channels()).await;
        match asked {
            Ok(channels) => self.channels = channels,
            Err(why) => {
                self.wrong("error", json!({ "message": why }), printable(&why))
                    .await;
                return false;
            }
        }
        true
    }

    async fn list(&self) {
        let names = self.channels.iter().map(|channel| {
            let is_current = self
                .current
                .as_ref()
                .is_some_and(|it| it.uid == channel.uid);
            let mark = if is_current { "*" } else { " " };
            format!(
                "{mark} {} ({})",
                name_of(channel),
                printable(channel.uid.as_str())
            )
        });
        let names: Vec<_> = names.collect();
        let about = json!({ "channels": self.channels });
        self.tell("channels", about, names.join("\n")).await;
    }

    /// Finds a channel by its uid or its name.
    fn find(&self, wanted: &str) -> Option<Channel> {
        let wanted = wanted.trim_start_matches(['#', '@']);
        let mut all = self.channels.iter();
        let by_uid = all.clone().find(|it| it.uid.as_str() == wanted);
        let by_name = || all.find(|it| it.name.to_lowercase() == wanted.to_lowercase());
        by_uid.or_else(by_name).cloned()
    }

    /// Does what a line asks for; `true` to end.
    async fn line(&mut self, line: Line) -> bool {
        match line {
            Line::Text(text) => self.say(text).await,
            Line::Channels => {
                if self.ask_channels().await {
                    self.list().await;
                }
            }
            Line::Join(wanted) => {
                if self.find(&wanted).is_none() {
                    self.ask_channels().await;
                }
                match self.find(&wanted) {
                    Some(channel) => {
                        let words = format!("you write to {} now", name_of(&channel));
                        let about = json!({ "channel": channel.uid });
                        self.current = Some(channel);
                        self.tell("channel", about, words).await;
                        self.draw().await;
                    }
                    None => {
                        let why = format!("there is no channel {wanted}: see /channels");
                        self.wrong("error", json!({ "message": why }), printable(&why))
                            .await;
                    }
                }
            }
            Line::Who(name) => match ask(self.client.get_user(name.as_deref())).await {
                Ok(user) => {
                    let words = format!("{} is {}", user.username, user.nick);
                    let about = json!({ "username": user.username, "nick": user.nick });
                    self.tell("user", about, printable(&words)).await;
                }
                Err(why) => {
                    self.wrong("error", json!({ "message": why }), printable(&why))
                        .await
                }
            },
            Line::Help => self.tell("help", json!({ "text": HELP }), HELP).await,
            Line::Wrong(why) => {
                self.wrong("error", json!({ "message": why }), printable(&why))
                    .await
            }
            Line::Quit => return true,
        }
        false
    }

    async fn say(&mut self, text: String) {
        let channel = self.current.as_ref().map(|it| Str::from(it.uid.as_str()));
        let post = (channel.clone().unwrap_or_default(), text);
        if channel.is_none() {
            self.not_posted(&post, "there is no channel").await;
        } else if !self.is_in && self.is_terminal() {
            self.not_posted(&post, "there is no connection").await;
        } else {
            self.waiting.push_back(post);
        }
    }
}

/// What the server answers, if it does soon.
async fn ask<T>(call: impl Future<Output = Result<T, CallError<RpcError>>>) -> Result<T, String> {
    match timeout(ASKED, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer came in time".to_owned()),
    }
}

/// A channel as people see it: `#General`, or `@Bob` for messages between two.
fn name_of(channel: &Channel) -> String {
    let name = match &*channel.name {
        "" => channel.uid.as_str(),
        name => name,
    };
    let mark = if channel.is_dm() { '@' } else { '#' };
    format!("{mark}{}", printable(name))
}
