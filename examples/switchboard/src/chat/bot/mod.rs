//! [`Channel`]: the channels of a Snek server in a conversation.

mod channels;
mod connection;
mod events;
mod growing;

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::net::LinkEvent;
use rpc_core::{CallError, CloseReason, Delivery, Str};
use serde_json::json;
use snek_proto::client::ClientEvent;
use snek_proto::error::RpcError;
use snek_proto::frame::Final;
use snek_proto::net::{Client, Events};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::channels::Channels;
use self::growing::Growing;
use crate::chat::terminal::{self, ChatEvent, Command};
use crate::chat::{Out, Peer, State};
use crate::cli::Failure;

pub(crate) use self::connection::{PASSWORD, Server, open};

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

/// The channels of a server in a conversation.
pub(crate) struct Channel {
    client: Client,
    events: Events,
    connection: JoinHandle<CloseReason>,
    args: Server,
    /// There is one text, and only its answer is printed.
    is_once: bool,
    me: Str,
    channels: Channels,
    is_in: bool,
    was_in: bool,
    /// The user was last shown that the connection is there.
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
    /// Who gives the only answer, and what is printed of it.
    printed: Option<(Str, Str)>,
    /// No more texts come.
    is_silent: bool,
    /// When to give up waiting for answers or for the server, unless a person is at the terminal.
    deadline: Option<Instant>,
}

/// What happens.
pub(crate) enum PeerEvent {
    Event(Box<Option<LinkEvent<ClientEvent>>>),
    Posted(Post, Posted),
    Due,
}

impl Channel {
    /// Whether the only answer is printed piece by piece, as where nothing can be drawn twice.
    fn streams(&self) -> bool {
        self.is_once && !terminal::is_watched()
    }

    /// Shows the channel in the prompt, and above it who writes what there.
    async fn draw(&mut self, out: &Out) {
        let current = self.channels.current.as_deref();
        let name = current.map(|uid| self.channels.name(uid));
        let name: String = name.unwrap_or_default().chars().take(LABEL).collect();
        let here = current.map(|uid| self.growing.shown_in(uid));
        let mut here = here.unwrap_or_default();
        // Its one answer grows as it is.
        here.retain(|_| !self.streams());
        let is_gone = |drawn: &&(Str, Str)| !here.iter().any(|(nick, _)| *nick == drawn.0);
        let gone = self.drawn.iter().filter(is_gone);
        let gone = gone.map(|(from, _)| ChatEvent::Gone(from.to_string()));
        let partials = here.iter().map(|(nick, text)| ChatEvent::Partial {
            from: nick.to_string(),
            text: text.to_string(),
        });
        let prompt = ChatEvent::Prompt(format!("{name}> "));
        out.people([prompt].into_iter().chain(gone).chain(partials))
            .await;
        self.drawn = here;
    }

    /// Whether there is an answer to whatever was posted, as far as can be counted.
    fn has_answers(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_none() && self.answered >= self.posted
    }

    fn wait_for_answers(&mut self) {
        self.deadline = Some(Instant::now() + self.args.within);
    }

    /// The time is over: for who writes no more, or for everything.
    async fn due(&mut self, out: &Out) -> Result<(), Failure> {
        let expired = self.growing.expire();
        self.broken_off(expired, out).await;
        if out.is_terminal() || self.deadline.is_none_or(|at| at > Instant::now()) {
            return Ok(());
        }
        let within = self.args.within;
        if !self.is_in {
            let url = &self.args.url;
            return Err(Failure::new(format_args!(
                "no connection to {url} within {within:?}"
            )));
        }
        if self.posted > 0 && self.answered == 0 {
            return Err(Failure::new(format_args!(
                "no answer within {within:?}: --within waits longer"
            )));
        }
        // That is all that can be expected.
        (self.posted, self.deadline) = (self.answered, None);
        Ok(())
    }

    /// Asks for the channels again; without an answer the old ones stay.
    async fn ask_channels(&mut self) -> Result<(), String> {
        self.channels.all = ask(self.client.get_channels()).await?;
        Ok(())
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
    async fn post_last(&mut self, out: &Out) {
        let late = sleep(LAST);
        tokio::pin!(late);
        while let Some(mut sending) = self.sending.take() {
            tokio::select! {
                (post, result) = &mut sending => self.posted(post, result, out).await,
                () = &mut late => {
                    let why = "no answer came in time; it may have been posted nevertheless";
                    if let Some(post) = self.own.pop_back() {
                        not_posted(&post, why, out).await;
                    }
                    return;
                }
            }
            self.post_next();
        }
    }

    async fn posted(&mut self, post: Post, result: Posted, out: &Out) {
        let Err(error) = result else {
            self.posted += 1;
            self.wait_for_answers();
            return;
        };
        self.own.retain(|own| *own != post);
        let is_unsent = error.delivery() == Delivery::NotSent && error.is_retryable();
        if is_unsent && !self.client.state().is_ready() && !out.is_terminal() {
            // It waits for the next connection.
            self.is_in = false;
            return self.waiting.push_front(post);
        }
        let why = match error.delivery() {
            Delivery::Unknown => format!("{error}; it may have been posted nevertheless"),
            _ => error.to_string(),
        };
        not_posted(&post, &why, out).await;
    }
}

async fn not_posted((channel, text): &Post, why: &str, out: &Out) {
    let about = json!({ "channel": channel, "text": text, "message": why });
    let failure = Failure::new(format_args!("not sent: {text}: {why}"));
    out.wrong_as("not_posted", about, failure).await;
}

/// What the server answers, if it does soon.
async fn ask<T>(call: impl Future<Output = Result<T, CallError<RpcError>>>) -> Result<T, String> {
    match timeout(ASKED, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer came in time".to_owned()),
    }
}

impl Peer for Channel {
    type Event = PeerEvent;

    const NAME: &'static str = "bot";
    const INTRO: &'static str =
        "Write a message to everyone in the channel. A bot answers when it is called: @mybot help";
    /// Fits into a frame, whatever has to be escaped.
    const MAX_BYTES: usize = 512 * 1024;
    const STOPS: bool = false;

    fn commands(&self) -> Vec<Command> {
        vec![
            Command::new("channels", "", "list the channels"),
            Command::new("join", "NAME", "write to this channel from now on"),
            Command::new(
                "who",
                "[NAME]",
                "show who has this login name, or who you are",
            ),
        ]
    }

    fn state(&self) -> State {
        match self.is_in {
            false => State::Away,
            true if self.waiting.is_empty() && self.sending.is_none() => State::Idle,
            true => State::Busy,
        }
    }

    fn is_done(&self) -> bool {
        self.has_answers() && (self.growing.is_empty() || self.is_once)
    }

    fn takes_more(&self) -> bool {
        true
    }

    async fn about(&self) -> Vec<String> {
        let current = self.channels.current.as_deref();
        let channel = current.map(|uid| format!("channel {}", self.channels.name(uid)));
        channel.into_iter().collect()
    }

    async fn silence(&mut self) {
        self.is_silent = true;
        self.wait_for_answers();
    }

    async fn next(&mut self) -> PeerEvent {
        let due = self.growing.due().into_iter().chain(self.deadline).min();
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
            event = self.events.next_link() => PeerEvent::Event(Box::new(event)),
            (post, result) = sending => PeerEvent::Posted(post, result),
            () = due => PeerEvent::Due,
        }
    }

    async fn handle(&mut self, event: PeerEvent, out: &Out) -> Result<(), Failure> {
        match event {
            PeerEvent::Event(event) => self.happened(*event, out).await?,
            PeerEvent::Posted(post, result) => {
                self.sending = None;
                self.posted(post, result, out).await;
            }
            PeerEvent::Due => self.due(out).await?,
        }
        self.post_next();
        self.draw(out).await;
        Ok(())
    }

    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure> {
        match self.channels.current.clone() {
            Some(channel) => self.waiting.push_back((channel, text)),
            None => not_posted(&(Str::default(), text), "there is no channel", out).await,
        }
        self.post_next();
        Ok(())
    }

    async fn command(&mut self, name: &str, rest: &str, out: &Out) -> Result<(), String> {
        match (name, rest) {
            ("channels", _) => {
                self.ask_channels().await?;
                let (about, list) = (self.channels.json(), self.channels.list());
                out.answer("channels", about, &list).await;
            }
            ("join", "") => return Err("/join needs the name of a channel".to_owned()),
            ("join", wanted) => {
                if !self.channels.choose(wanted) {
                    self.ask_channels().await?;
                    if !self.channels.choose(wanted) {
                        return Err(format!("there is no channel {wanted}: see /channels"));
                    }
                }
                self.draw(out).await;
            }
            (_, name) => {
                let name = Some(name).filter(|name| !name.is_empty());
                let user = ask(self.client.get_user(name)).await?;
                let words = format!("{} is {}", user.username, user.nick);
                let about = json!({ "username": user.username, "nick": user.nick });
                out.answer("user", about, &words).await;
            }
        }
        Ok(())
    }

    async fn leave(&mut self, out: &Out) {
        self.post_last(out).await;
        for post in std::mem::take(&mut self.waiting) {
            not_posted(&post, "the chat ended first", out).await;
        }
        self.client.close();
        let _ = (&mut self.connection).await;
    }
}
