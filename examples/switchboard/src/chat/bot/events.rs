//! [`Channel::happened`]: what the events of a Snek server change in a conversation.

use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::{CloseReason, Str};
use serde_json::json;
use snek_proto::client::{ClientEvent, Ready};
use snek_proto::frame::{Final, Message, Typing};
use tokio::time::Instant;

use super::growing::Entry;
use super::{Channel, Post};
use crate::chat::Out;
use crate::chat::terminal::ChatEvent;
use crate::cli::{self, Failure, Service};

impl Channel {
    pub(super) async fn happened(
        &mut self,
        event: Option<LinkEvent<ClientEvent>>,
        out: &Out,
    ) -> Result<(), Failure> {
        match event {
            Some(LinkEvent::Event(ClientEvent::Ready(ready))) => self.ready(*ready, out).await?,
            Some(LinkEvent::Event(event)) => self.event(event, out).await,
            Some(LinkEvent::State(LinkState::Lost { cause, .. })) if self.was_in => {
                self.lost(&cause, out).await;
            }
            Some(LinkEvent::State(
                LinkState::Lost { cause, .. }
                | LinkState::GaveUp { cause }
                | LinkState::Closed { reason: cause },
            )) => return Err(self.ended(&cause)),
            Some(LinkEvent::Lagged(events)) => {
                let words = format!("too slow, {events} events were dropped");
                let about = json!({ "events": events });
                out.report("lagged", about, &words).await;
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
        cli::unreached(&Service::SNEK, &self.args.url, cause)
    }

    /// Tells that the connection is lost: once, however many attempts fail after it.
    async fn lost(&mut self, cause: &CloseReason, out: &Out) {
        if !std::mem::take(&mut self.is_told_in) {
            return;
        }
        self.is_in = false;
        self.wait_for_answers();
        self.own.clear();
        let words = format!("connection lost: {cause}; trying again");
        let about = json!({ "message": cause.to_string() });
        out.report("lost", about, &words).await;
        let cut = self.growing.clear();
        self.broken_off(cut, out).await;
    }

    async fn event(&mut self, event: ClientEvent, out: &Out) {
        match event {
            ClientEvent::Message(message) => self.message(&message, out).await,
            ClientEvent::SetTyping(typing) => self.typing(typing, out).await,
            ClientEvent::Joined(joined) => {
                self.moved("joined", joined.channel_uid.as_str(), out).await;
            }
            ClientEvent::Left(left) => self.moved("left", left.channel_uid.as_str(), out).await,
            ClientEvent::Warning(warning) => {
                out.warn(&warning.to_string()).await;
            }
            _ => {}
        }
    }

    async fn ready(&mut self, ready: Ready, out: &Out) -> Result<(), Failure> {
        let is_first = !self.was_in;
        (self.me, self.channels.all) = (ready.user.username, ready.channels);
        (self.is_in, self.was_in, self.is_told_in) = (true, true, true);
        self.deadline = self.is_silent.then(|| Instant::now() + self.args.within);
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
                format!("connected as {me}\n{list}")
            }
            false => match &node {
                Some(node) => format!("connected again, at {node}"),
                None => "connected again".to_owned(),
            },
        };
        if out.is_terminal() || out.is_json() || !is_first {
            let name = if is_first { "connected" } else { "back" };
            out.report(name, about, &words).await;
        }
        Ok(())
    }

    async fn typing(&mut self, typing: Typing, out: &Out) {
        let channel = typing.channel_uid.unwrap_or_else(|| "".into());
        let username = typing.username.unwrap_or_default();
        let nick = typing.user_nick.filter(|nick| !nick.is_empty());
        let nick = nick.unwrap_or_else(|| username.clone());
        if username == self.me || nick.is_empty() {
            return;
        }
        let about = json!({ "channel": channel, "username": username, "nick": nick });
        out.program("typing", about).await;
        self.growing.add(&channel, &username, &nick, None);
    }

    async fn message(&mut self, message: &Message, out: &Out) {
        let (channel, username, text) = (&message.channel_uid, &message.username, &message.message);
        let nick = match &*message.user_nick {
            "" => username,
            _ => &message.user_nick,
        };
        let is_own = *username == self.me;
        let about = json!({ "channel": channel, "username": username, "nick": nick,
            "text": text, "final": bool::from(message.is_final), "own": is_own });
        out.program("message", about).await;
        // Known to be posted by the answer to the call, or because it came back.
        let was_said = self.posted > 0 || self.sending.is_some() && self.own.is_empty();
        if message.is_final == Final::No {
            self.growing.add(channel, username, nick, Some(text));
            if !is_own && was_said && self.channels.is_current(channel) && self.answered == 0 {
                self.print(username, text, out).await;
            }
            return;
        }
        self.growing.remove(channel, username);
        let is_it = |own: &Post| own.0 == *channel && own.1 == **text;
        let own = self.own.iter().position(is_it).filter(|_| is_own);
        let is_back = own.and_then(|at| self.own.remove(at)).is_some();
        // The lines of a pipe may have changed the channel meanwhile.
        let is_here = !self.is_once || self.channels.is_current(channel);
        let is_answer = !is_own && was_said && is_here;
        self.answered += usize::from(is_answer);
        // At a terminal, one's own line is there already.
        let is_shown = is_back && out.is_terminal();
        match self.is_once {
            _ if is_shown => {}
            true if is_answer && self.answered == 1 => {
                self.print(username, text, out).await;
                out.people([ChatEvent::Ended]).await;
            }
            true => {}
            false => self.message_of(channel, nick, "", text, out).await,
        }
    }

    /// Prints what is new of the only answer; all of it if it is another one than was printed so far.
    async fn print(&mut self, username: &Str, text: &Str, out: &Out) {
        let is_whole = !self.growing.has(username);
        if !is_whole && !self.streams() {
            return;
        }
        let printed = self
            .printed
            .get_or_insert_with(|| (username.clone(), Str::default()));
        let new = match text.strip_prefix(&*printed.1) {
            Some(new) if printed.0 == *username => new,
            // Somebody else writes, too: the first one is printed as it grows.
            _ if !is_whole => return,
            _ => {
                out.people([ChatEvent::TextEnd]).await;
                text
            }
        };
        out.people([ChatEvent::Text(new.to_owned())]).await;
        *printed = (username.clone(), text.clone());
    }

    /// Shows a message.
    async fn message_of(&self, channel: &str, nick: &str, mark: &str, text: &str, out: &Out) {
        let place = match self.channels.is_current(channel) {
            true => String::new(),
            false => format!("{} ", self.channels.name(channel)),
        };
        let (from, text) = (format!("{place}{nick}{mark}"), text.to_owned());
        out.people([ChatEvent::Message { from, text }]).await;
    }

    /// Keeps on the screen what will not be complete.
    pub(super) async fn broken_off(&self, entries: Vec<Entry>, out: &Out) {
        for entry in entries.iter().filter(|entry| !entry.text.is_empty()) {
            if out.is_terminal() {
                let mark = " (not complete)";
                self.message_of(&entry.channel, &entry.nick, mark, &entry.text, out)
                    .await;
            }
        }
    }

    /// The user was joined to a channel, or has left one.
    async fn moved(&mut self, event: &str, uid: &str, out: &Out) {
        let left = self.channels.name(uid);
        if let Err(why) = self.ask_channels().await {
            out.wrong(Failure::new(why)).await;
        }
        self.channels.keep_current();
        let name = if event == "left" {
            left
        } else {
            self.channels.name(uid)
        };
        let words = format!("{event} {name}");
        out.report(event, json!({ "channel": uid }), &words).await;
    }
}
