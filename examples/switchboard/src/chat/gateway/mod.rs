//! [`Gateway`]: a gateway in a conversation.

mod connection;

use std::future::pending;

use exoclaw_proto::DecodeError;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Chat, Client};
use rpc_core::net::entropy;
use rpc_core::{CallError, Delivery, Refused, Str};
use serde_json::json;

use crate::chat::terminal::{ChatEvent, Command};
use crate::chat::{Out, Peer, State};
use crate::cli::Failure;
use crate::text::printable;

pub(crate) use self::connection::{Connected, MAX_TEXT, Query, Server, ask, explain};

/// What is wrong with an answer some of whose frames could not be read.
const GAP: &str = "a part of the answer may be missing";
const NOTHING: &str = "the model has said nothing";

/// Turns that are shown unless the user says how many.
const TURNS: u64 = 10;

/// What can be asked of a gateway: the method that it must have, the command, its argument, and the help.
const QUERIES: &str = "\
session.clear|clear||forget this conversation
chat.history|history|[COUNT]|show the last turns
budget.status|budget||show how many tokens are used
memory.search|search|WORDS|show what the gateway knows or was told about them
memory.search|memory||show what the gateway knows
memory.search|forget|SUBJECT, RELATION|forget that, as /memory shows it before the colon";

/// A gateway in a conversation.
pub(crate) struct Gateway<'a> {
    args: &'a Server,
    /// `None` after a reply was stopped.
    connected: Option<Connected>,
    extensions: Vec<Str>,
    /// The peer of the conversation, if it is another than at the start.
    peer: Option<Str>,
    /// The reply that comes.
    chat: Option<Chat>,
    has_begun: bool,
    /// Whether the answer has any text.
    has_text: bool,
    /// Whether a frame could not be read, so that some of it may be missing.
    has_gap: bool,
    /// What was said last, to be said again if the connection turns out to be over.
    unsent: Option<String>,
    tokens: u64,
}

impl<'a> Gateway<'a> {
    pub(crate) async fn open(args: &'a Server) -> Result<Self, Failure> {
        let connected = Connected::open(args).await?;
        Ok(Self {
            args,
            extensions: connected.extensions.clone(),
            connected: Some(connected),
            peer: None,
            chat: None,
            has_begun: false,
            has_text: false,
            has_gap: false,
            unsent: None,
            tokens: 0,
        })
    }

    /// The connection; a new one if the last has ended.
    async fn connection(&mut self, out: &Out) -> Result<Client, Failure> {
        let ended = self.connected.take_if(|connected| connected.is_over());
        let was_lost = ended.is_some();
        if let Some(ended) = ended {
            let _ = ended.close().await;
        }
        let is_new = self.connected.is_none();
        let connected = match self.connected.take() {
            Some(connected) => connected,
            None => Connected::open(self.args).await?,
        };
        if was_lost || is_new && self.args.url.are_several() {
            out.connected(connected.node().as_deref(), true).await;
        }
        Ok(self.connected.insert(connected).client.clone())
    }

    async fn send(&mut self, text: &str, out: &Out) {
        let mut message = self.args.message(text);
        message.session.peer = self.peer.clone().or(message.session.peer);
        match self.connection(out).await {
            Ok(client) => {
                self.chat = Some(client.chat_send(message).await);
                (self.has_begun, self.has_text, self.has_gap) = (false, false, false);
                self.tokens = 0;
                out.people([ChatEvent::Activity("thinking".to_owned())])
                    .await;
            }
            Err(failure) => out.wrong(failure).await,
        }
    }

    /// What a step shows.
    fn shown(&mut self, event: StreamEvent) -> Option<ChatEvent> {
        Some(match event {
            StreamEvent::Text(text) => ChatEvent::Text(text.to_string()),
            StreamEvent::ToolUse(tool) => ChatEvent::ToolCall {
                id: tool.id.to_string(),
                name: tool.name.to_string(),
                arguments: tool.input.get().to_owned(),
            },
            StreamEvent::ToolResult(result) => {
                let content = result.content.to_string();
                ChatEvent::ToolResult {
                    id: result.tool_use_id.to_string(),
                    outcome: match result.is_error {
                        true => Err(content),
                        false => Ok(content),
                    },
                }
            }
            StreamEvent::Usage(usage) => {
                let used = usage.input_tokens.saturating_add(usage.output_tokens);
                self.tokens = self.tokens.saturating_add(used);
                ChatEvent::Usage(self.tokens)
            }
            _ => return None,
        })
    }
}

fn was_not_sent(error: &CallError<RpcError>) -> bool {
    let is_over = matches!(
        error,
        CallError::Refused(Refused::Closed) | CallError::Closed { .. }
    );
    is_over && error.delivery() == Delivery::NotSent
}

/// What comes from a gateway while it answers.
pub(crate) enum ChatUpdate {
    /// A step of the answer; `None` at its end.
    Step(Option<Result<StreamEvent, CallError<RpcError>>>),
    /// A frame cannot be read.
    Warning(DecodeError),
}

impl Peer for Gateway<'_> {
    type Event = ChatUpdate;

    const NAME: &'static str = "gateway";
    const INTRO: &'static str = "Write a message; the gateway remembers the conversation.";
    const MAX_BYTES: usize = MAX_TEXT;

    fn commands(&self) -> Vec<Command> {
        let new = Command::new("new", "", "begin a new conversation");
        let has = |method: &str| self.extensions.iter().any(|it| it.as_str() == method);
        let known = QUERIES.lines().filter_map(|row| {
            let mut parts = row.split('|');
            let mut next = || parts.next().unwrap_or_default();
            has(next()).then(|| Command::new(next(), next(), next()))
        });
        [new].into_iter().chain(known).collect()
    }

    fn state(&self) -> State {
        match self.chat {
            Some(_) => State::Busy,
            None => State::Idle,
        }
    }

    async fn begin(&mut self, out: &Out) {
        if self.args.url.are_several() {
            let node = self.connected.as_ref().and_then(Connected::node);
            out.connected(node.as_deref(), false).await;
        }
    }

    async fn about(&self) -> Vec<String> {
        let peer = self.peer.as_deref().unwrap_or(&self.args.peer);
        let model = self.args.model().await.map(|name| format!("model {name}"));
        let conversation = format!("conversation {}", printable(peer));
        model.into_iter().chain([conversation]).collect()
    }

    async fn next(&mut self) -> Self::Event {
        match (&mut self.chat, &mut self.connected) {
            (Some(chat), Some(connected)) => tokio::select! {
                biased;
                error = connected.unreadable() => ChatUpdate::Warning(error),
                step = chat.next() => ChatUpdate::Step(step),
            },
            (Some(chat), None) => ChatUpdate::Step(chat.next().await),
            (None, _) => pending().await,
        }
    }

    async fn handle(&mut self, event: Self::Event, out: &Out) -> Result<(), Failure> {
        let step = match event {
            ChatUpdate::Step(step) => step,
            ChatUpdate::Warning(error) => {
                self.has_gap = true;
                out.warn(&format!("a frame cannot be read: {error}")).await;
                return Ok(());
            }
        };
        match step {
            Some(Ok(event)) => {
                self.has_begun = true;
                self.has_text |=
                    matches!(&event, StreamEvent::Text(text) if !text.trim().is_empty());
                if out.is_json() {
                    let line = serde_json::to_string(&event).map_err(Failure::new)?;
                    out.line(line).await;
                }
                out.people(self.shown(event)).await;
                return Ok(());
            }
            Some(Err(error)) => {
                self.chat = None;
                match self.unsent.take().filter(|_| was_not_sent(&error)) {
                    // Once, on a new connection.
                    Some(text) => self.send(&text, out).await,
                    None => {
                        out.people([ChatEvent::Ended]).await;
                        out.wrong(explain(error, self.has_begun)).await;
                    }
                }
            }
            None => {
                self.chat = None;
                out.people([ChatEvent::Ended]).await;
                match (self.has_gap, self.has_text) {
                    (true, _) => out.wrong(Failure::new(GAP)).await,
                    (false, true) => out.program("done", json!({})).await,
                    (false, false) => out.wrong(Failure::new(NOTHING)).await,
                }
            }
        }
        Ok(())
    }

    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure> {
        self.send(&text, out).await;
        self.unsent = Some(text);
        Ok(())
    }

    async fn command(&mut self, name: &str, rest: &str, out: &Out) -> Result<(), String> {
        let query = match (name, rest) {
            ("new", _) => {
                let peer = format!("{}-{:08x}", self.args.peer, entropy() >> 32);
                let before = self.peer.as_deref().unwrap_or(&self.args.peer);
                let words = format!(
                    "a new conversation; --peer {peer} comes back to it, --peer {before} to the one before"
                );
                out.report("new", json!({ "peer": peer }), &words).await;
                self.peer = Some(peer.into());
                return Ok(());
            }
            ("history", "") => Query::History(TURNS),
            ("history", count) => {
                let count = count.parse();
                Query::History(count.map_err(|_| "/history needs a number of turns")?)
            }
            ("search", "") => return Err("/search needs words to look for".to_owned()),
            ("search", words) => Query::Search(words.to_owned()),
            ("memory", _) => Query::Search(String::new()),
            ("forget", "") => {
                return Err("/forget needs what /memory shows before a colon".to_owned());
            }
            ("forget", name) => Query::Forget(name.to_owned()),
            ("clear", _) => Query::Clear,
            _ => Query::Budget,
        };
        let client = self.connection(out).await.map_err(|it| it.to_string())?;
        let mut session = self.args.message("").session;
        session.peer = self.peer.clone().or(session.peer);
        let answers = ask(&client, session, out.is_json(), query).await;
        let answers = answers.map_err(|error| explain(error, false).to_string())?;
        match out.is_json() {
            true => {
                for answer in answers {
                    out.line(answer).await;
                }
            }
            false if answers.is_empty() => out.note("nothing").await,
            false => out.people(answers.into_iter().map(ChatEvent::Info)).await,
        }
        Ok(())
    }

    /// The protocol cannot cancel, but a gateway may stop when its client leaves.
    async fn stop(&mut self, out: &Out) {
        self.chat = None;
        if let Some(connected) = self.connected.take() {
            let _ = connected.close().await;
        }
        out.people([ChatEvent::Ended]).await;
        out.note("stopped").await;
    }

    async fn leave(&mut self, _: &Out) {
        self.chat = None;
        if let Some(connected) = self.connected.take() {
            let _ = connected.close().await;
        }
    }
}
