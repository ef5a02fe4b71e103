//! What the server tells: [`ChatLoop::happened`].

use rpc_core::CloseReason;
use rpc_core::net::{LinkEvent, LinkState};
use serde_json::json;
use snek_proto::client::{ClientEvent, Ready};
use snek_proto::frame::{Final, Message, Typing};
use switchboard::cli::Failure;
use switchboard::terminal::ChatEvent;

use super::{ChatLoop, Post};
use crate::bot::chat::growing::Entry;

impl ChatLoop {
    pub(super) async fn happened(
        &mut self,
        event: Option<LinkEvent<ClientEvent>>,
    ) -> Result<(), Failure> {
        match event {
            Some(LinkEvent::Event(ClientEvent::Ready(ready))) => self.ready(*ready).await?,
            Some(LinkEvent::Event(event)) => self.event(event).await,
            Some(LinkEvent::State(LinkState::Lost { cause, .. })) if self.was_in => {
                self.lost(&cause).await;
            }
            Some(LinkEvent::State(
                LinkState::Lost { cause, .. }
                | LinkState::GaveUp { cause }
                | LinkState::Closed { reason: cause },
            )) => return Err(self.ended(&cause)),
            Some(LinkEvent::Lagged(events)) => {
                let words = format!("too slow, {events} events were dropped");
                let about = json!({ "events": events });
                self.show.tell("lagged", about, words).await;
            }
            Some(_) => {}
            None => return Err(Failure::new("the connection has ended")),
        }
        Ok(())
    }

    fn ended(&self, cause: &CloseReason) -> Failure {
        if self.was_in {
            return Failure::new(cause);
        }
        let hint = match cause {
            CloseReason::Authentication { .. } => {
                format!(
                    "check --username and the password in {}",
                    self.args.password_env
                )
            }
            _ => "'switchboard bot serve --open' starts a server".to_owned(),
        };
        let url = &self.args.url;
        Failure::refused(format_args!("no connection to {url}: {cause}; {hint}"))
    }

    /// Tells that the connection is lost: once, however many attempts fail after it.
    async fn lost(&mut self, cause: &CloseReason) {
        if !std::mem::take(&mut self.is_told_in) {
            return;
        }
        self.is_in = false;
        self.own.clear();
        let words = format!("connection lost: {cause}; trying again");
        let about = json!({ "message": cause.to_string() });
        self.show.tell("lost", about, words).await;
        let cut = self.growing.clear();
        self.broken_off(cut).await;
    }

    async fn event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Message(message) => self.message(&message).await,
            ClientEvent::SetTyping(typing) => self.typing(typing).await,
            ClientEvent::Joined(joined) => self.moved("joined", joined.channel_uid.as_str()).await,
            ClientEvent::Left(left) => self.moved("left", left.channel_uid.as_str()).await,
            ClientEvent::Warning(warning) => {
                let message = warning.to_string();
                let words = format!("warning: {message}");
                let about = json!({ "message": message });
                self.show.tell("warning", about, words).await;
            }
            _ => {}
        }
    }

    async fn ready(&mut self, ready: Ready) -> Result<(), Failure> {
        let is_first = !self.was_in;
        (self.me, self.channels.all) = (ready.user.username, ready.channels);
        (self.is_in, self.was_in, self.is_told_in) = (true, true, true);
        if let Some(wanted) = self.args.channel.as_deref().filter(|_| is_first)
            && !self.channels.choose(wanted)
        {
            let list = self.channels.list();
            return Err(Failure::usage(format_args!(
                "--channel {wanted}: there is none of this name, only\n{list}"
            )));
        }
        self.channels.keep_current();
        let mut about = self.channels.json();
        about["username"] = json!(self.me);
        about["nick"] = json!(ready.user.nick);
        let node = self.client.node().map(|node| node.to_string());
        about["node"] = json!(node);
        let words = match is_first {
            true => {
                let (me, list) = (&self.me, self.channels.list());
                format!("connected as {me}; write a message, or /help\n{list}")
            }
            false => match &node {
                Some(node) => format!("connected again, at {node}"),
                None => "connected again".to_owned(),
            },
        };
        if self.show.is_terminal || self.show.json || !is_first {
            self.show.tell("connected", about, words).await;
        }
        if let Some(text) = self.args.text.clone().filter(|_| is_first) {
            self.say(text).await;
            self.wait_for_answers();
        }
        Ok(())
    }

    async fn typing(&mut self, typing: Typing) {
        let channel = typing.channel_uid.unwrap_or_default();
        let username = typing.username.unwrap_or_default();
        let nick = typing.user_nick.filter(|nick| !nick.is_empty());
        let nick = nick.unwrap_or_else(|| username.clone());
        if username == self.me || nick.is_empty() {
            return;
        }
        let about = json!({ "channel": channel, "username": username, "nick": nick });
        self.show.event("typing", about).await;
        self.growing.add(&channel, &username, &nick, None);
    }

    async fn message(&mut self, message: &Message) {
        let (channel, username, text) = (&message.channel_uid, &message.username, &message.message);
        let nick = match &*message.user_nick {
            "" => username,
            _ => &message.user_nick,
        };
        let is_own = *username == self.me;
        let about = json!({ "channel": channel, "username": username, "nick": nick,
            "text": text, "final": bool::from(message.is_final), "own": is_own });
        self.show.event("message", about).await;
        if message.is_final == Final::No {
            return self.growing.add(channel, username, nick, Some(text));
        }
        self.growing.remove(channel, username);
        let is_it = |own: &Post| own.0 == *channel && own.1 == **text;
        let own = self.own.iter().position(is_it).filter(|_| is_own);
        let is_back = own.and_then(|at| self.own.remove(at)).is_some();
        // Known to be posted by the answer to the call, or because it came back.
        let was_said = self.posted > 0 || self.sending.is_some() && self.own.is_empty();
        // The lines of a pipe may have changed the channel meanwhile.
        let is_here = !self.is_once() || self.channels.is_current(channel);
        let is_answer = !is_own && was_said && is_here;
        self.answered += usize::from(is_answer);
        // At a terminal, one's own line stands there already.
        let is_shown = is_back && self.show.is_terminal;
        match self.is_once() {
            _ if self.show.json || is_shown => {}
            true if is_answer && self.answered == 1 => {
                let answer = ChatEvent::Text(text.to_string());
                self.show.view.show(answer).await;
                self.show.view.show(ChatEvent::Ended).await;
            }
            true => {}
            false => self.message_of(channel, nick, "", text).await,
        }
    }

    /// Shows a message.
    async fn message_of(&self, channel: &str, nick: &str, mark: &str, text: &str) {
        let place = match self.channels.is_current(channel) {
            true => String::new(),
            false => format!("{} ", self.channels.name(channel)),
        };
        let (from, text) = (format!("{place}{nick}{mark}"), text.to_owned());
        self.show.view.show(ChatEvent::Message { from, text }).await;
    }

    /// Keeps on the screen what will not be complete.
    pub(super) async fn broken_off(&self, entries: Vec<Entry>) {
        for entry in entries.iter().filter(|entry| !entry.text.is_empty()) {
            if self.show.is_terminal && !self.show.json {
                let mark = " (not complete)";
                self.message_of(&entry.channel, &entry.nick, mark, &entry.text)
                    .await;
            }
        }
    }

    /// The user was joined to a channel, or has left one.
    async fn moved(&mut self, event: &str, uid: &str) {
        let left = self.channels.name(uid);
        self.ask_channels().await;
        self.channels.keep_current();
        let name = if event == "left" {
            left
        } else {
            self.channels.name(uid)
        };
        let words = format!("{event} {name}");
        self.show
            .tell(event, json!({ "channel": uid }), words)
            .await;
    }
}
