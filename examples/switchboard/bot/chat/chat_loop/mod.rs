//! [`ChatLoop`]: posts lines, and shows what is said in the channels.

mod events;

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::LinkEvent;
use rpc_core::{CallError, Delivery, Str};
use serde_json::json;
use snek_proto::client::ClientEvent;
use snek_proto::error::RpcError;
use snek_proto::frame::Final;
use snek_proto::net::{Client, Events};
use switchboard::cli::{self, Failure};
use switchboard::terminal::{self, ChatEvent, ChatView, Input};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Args;
use super::channels::Channels;
use super::growing::Growing;
use super::line::{HELP, Line};
use super::show::Show;

/// How long the server may take for what a command asks.
const ASKED: Duration = Duration::from_secs(5);
/// How long the last messages may take when the chat ends.
const LAST: Duration = Duration::from_secs(1);
/// Most own messages that are looked for among those of the server.
const OWN: usize = 64;
/// The longest name of a channel in the prompt, in characters.
const LABEL: usize = 24;

type Posted = Result<(), CallError<RpcError>>;

/// A message to post: the channel's uid and the text.
type Post = (Str, String);

/// A conversation.
pub(in crate::bot::chat) struct ChatLoop {
    client: Client,
    events: Events,
    input: Input<Line>,
    show: Show,
    args: Args,
    me: Str,
    channels: Channels,
    is_in: bool,
    was_in: bool,
    /// The last that the user was told of the connection is that it is there.
    is_told_in: bool,
    growing: Growing,
    /// Who is shown to write what.
    drawn: Vec<(Str, Str)>,
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
    /// When to give up waiting for answers, after the last line of a pipe.
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
    pub(in crate::bot::chat) fn new(
        client: Client,
        events: Events,
        input: Input<Line>,
        args: Args,
    ) -> Self {
        let terminal = input.terminal.as_ref();
        Self {
            client,
            events,
            show: Show {
                view: match args.json && terminal.is_none() {
                    true => ChatView::plain(),
                    false => ChatView::new(terminal),
                },
                is_terminal: input.terminal.is_some(),
                json: args.json,
            },
            input,
            is_silent: args.text.is_some(),
            args,
            me: Str::default(),
            channels: Channels::default(),
            is_in: false,
            was_in: false,
            is_told_in: false,
            growing: Growing::default(),
            drawn: Vec::new(),
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

    /// Whether there is one text, and only its answer is printed.
    const fn is_once(&self) -> bool {
        self.args.text.is_some()
    }

    /// Shows the channel in the prompt, and above it who writes what there.
    async fn draw(&mut self) {
        if self.show.json {
            return;
        }
        let current = self.channels.current.as_deref();
        let name = current.map(|uid| self.channels.name(uid));
        let name: String = name.unwrap_or_default().chars().take(LABEL).collect();
        let view = &self.show.view;
        view.show(ChatEvent::Prompt(format!("{name}> "))).await;
        let here = current.map(|uid| self.growing.shown_in(uid));
        let here = here.unwrap_or_default();
        for (from, _) in &self.drawn {
            if !here.iter().any(|(nick, _)| nick == from) {
                view.show(ChatEvent::Gone(from.to_string())).await;
            }
        }
        for (nick, text) in &here {
            let (from, text) = (nick.to_string(), text.to_string());
            view.show(ChatEvent::Partial { from, text }).await;
        }
        self.drawn = here;
    }

    /// Leaves the terminal as it was.
    pub(in crate::bot::chat) async fn finish(self) {
        let Self { input, show, .. } = self;
        drop(input);
        show.view.finish().await;
    }

    /// Talks until it is enough.
    pub(in crate::bot::chat) async fn work(&mut self) -> Result<(), Failure> {
        while !self.is_done() {
            self.post_next();
            match self.next().await {
                Happened::Event(event) => self.happened(*event).await?,
                Happened::Posted(post, result) => self.posted(post, result).await,
                Happened::Line(Some(Line::Quit)) => break,
                Happened::Line(Some(line)) => self.line(line).await,
                // At a terminal that is the end; from a pipe, all was said.
                Happened::Line(None) if self.show.is_terminal => break,
                Happened::Line(None) => {
                    self.is_silent = true;
                    self.wait_for_answers();
                }
                Happened::Due => {
                    let expired = self.growing.expire();
                    self.broken_off(expired).await;
                }
                Happened::Signal if self.show.is_terminal || self.has_answers() => break,
                Happened::Signal => return Err(Failure::aborted()),
            }
            self.draw().await;
        }
        self.post_last().await;
        for post in std::mem::take(&mut self.waiting) {
            self.not_posted(&post, "the chat ended first").await;
        }
        let within = self.args.within;
        match self.failed {
            _ if self.show.is_terminal => Ok(()),
            0 if self.posted == 0 || self.answered > 0 => Ok(()),
            0 => Err(Failure::new(format_args!("no answer within {within:?}"))),
            failed => Err(Failure::new(format_args!(
                "lines not carried out: {failed}"
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

    fn wait_for_answers(&mut self) {
        self.deadline = Some(Instant::now() + self.args.within);
    }

    async fn next(&mut self) -> Happened {
        // From a pipe nothing is read that cannot be posted yet.
        let can_post = self.is_in && self.waiting.is_empty() && self.sending.is_none();
        let reads = !self.is_silent && (can_post || self.show.is_terminal);
        let deadline = self.deadline.filter(|_| self.is_silent);
        let due = self.growing.due().into_iter().chain(deadline).min();
        let due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
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
            event = self.events.next_link() => Happened::Event(Box::new(event)),
            (post, result) = sending => {
                self.sending = None;
                Happened::Posted(post, result)
            }
            () = due => Happened::Due,
            line = self.input.lines.recv(), if reads => Happened::Line(line),
        }
    }

    /// Does what a line asks for.
    async fn line(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.say(text).await,
            Line::Channels => {
                self.ask_channels().await;
                let (about, list) = (self.channels.json(), self.channels.list());
                self.show.answer("channels", about, list).await;
            }
            Line::Join(wanted) => {
                if !self.channels.choose(&wanted) {
                    self.ask_channels().await;
                    if !self.channels.choose(&wanted) {
                        let why = format!("there is no channel {wanted}: see /channels");
                        self.wrong(&why).await;
                    }
                }
            }
            Line::Who(name) => match ask(self.client.get_user(name.as_deref())).await {
                Ok(user) => {
                    let words = format!("{} is {}", user.username, user.nick);
                    let about = json!({ "username": user.username, "nick": user.nick });
                    self.show.answer("user", about, words).await;
                }
                Err(why) => self.wrong(&why).await,
            },
            Line::Help => {
                let help = terminal::help::<Line>(HELP);
                let about = json!({ "text": help });
                self.show.answer("help", about, help).await;
            }
            Line::Wrong(why) => self.wrong(&why).await,
            Line::Quit => {}
        }
    }

    async fn wrong(&mut self, why: &str) {
        self.failed += 1;
        let about = json!({ "message": why });
        self.show.wrong("error", about, why).await;
    }

    /// Asks for the channels anew; without an answer the old ones stay.
    async fn ask_channels(&mut self) {
        match ask(self.client.get_channels()).await {
            Ok(channels) => self.channels.all = channels,
            Err(why) => self.wrong(&why).await,
        }
    }

    async fn say(&mut self, text: String) {
        let channel = self.channels.current.clone();
        let post = (channel.clone().unwrap_or_default(), text);
        if channel.is_none() {
            self.not_posted(&post, "there is no channel").await;
        } else if !self.is_in && self.show.is_terminal {
            self.not_posted(&post, "there is no connection").await;
        } else {
            self.waiting.push_back(post);
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

    /// Waits a moment for what is on its way when the chat ends.
    async fn post_last(&mut self) {
        let late = sleep(LAST);
        tokio::pin!(late);
        while let Some(mut sending) = self.sending.take() {
            tokio::select! {
                (post, result) = &mut sending => self.posted(post, result).await,
                () = &mut late => {
                    let why = "no answer came in time; it may have been posted all the same";
                    if let Some(post) = self.own.pop_back() {
                        self.not_posted(&post, why).await;
                    }
                    return;
                }
            }
            self.post_next();
        }
    }

    async fn posted(&mut self, post: Post, result: Posted) {
        let Err(error) = result else {
            self.posted += 1;
            return self.wait_for_answers();
        };
        self.own.retain(|own| *own != post);
        let is_unsent = error.delivery() == Delivery::NotSent && error.is_retryable();
        if is_unsent && !self.client.state().is_ready() && !self.show.is_terminal {
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
        self.failed += 1;
        let about = json!({ "channel": channel, "text": text, "message": why });
        let words = format!("not posted: {text}: {why}");
        self.show.wrong("not_posted", about, words).await;
    }
}

/// What the server answers, if it does soon.
async fn ask<T>(call: impl Future<Output = Result<T, CallError<RpcError>>>) -> Result<T, String> {
    match timeout(ASKED, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer came in time".to_owned()),
    }
}
