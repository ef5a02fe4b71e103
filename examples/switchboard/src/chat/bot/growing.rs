//! [`Growing`]: who is typing, and the messages that are not complete.

use std::time::Duration;

use rpc_core::Str;
use snek_proto::id::ChannelUid;
use tokio::time::Instant;

/// How long a typing indicator is shown; a bot refreshes it each second.
const TYPING: Duration = Duration::from_secs(3);
/// How long a message may stay without growing.
const MESSAGE: Duration = Duration::from_secs(60);
/// Most people at once; others are not shown until they have finished.
const MOST: usize = 64;

/// Who is typing or has written a part of a message, in all channels.
#[derive(Debug, Default)]
pub(super) struct Growing(Vec<Entry>);

/// Someone in a channel.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) channel: ChannelUid,
    username: Str,
    pub(super) nick: Str,
    /// The message so far; empty while the sender only types.
    pub(super) text: Str,
    until: Instant,
}

impl Growing {
    /// Adds the message of a sender so far, or that the sender types.
    pub(super) fn add(
        &mut self,
        channel: &ChannelUid,
        username: &Str,
        nick: &Str,
        text: Option<&Str>,
    ) {
        let known = self.remove(channel, username);
        let text = text.cloned().or(known.map(|known| known.text));
        let text = text.unwrap_or_default();
        let stays = if text.is_empty() { TYPING } else { MESSAGE };
        if self.0.len() < MOST {
            self.0.push(Entry {
                channel: channel.clone(),
                username: username.clone(),
                nick: nick.clone(),
                text,
                until: Instant::now() + stays,
            });
        }
    }

    /// Removes a sender whose message is complete.
    pub(super) fn remove(&mut self, channel: &ChannelUid, username: &Str) -> Option<Entry> {
        let is_it = |entry: &Entry| entry.channel == *channel && entry.username == *username;
        let at = self.0.iter().position(is_it)?;
        Some(self.0.remove(at))
    }

    /// Removes those without a sign for too long.
    pub(super) fn expire(&mut self) -> Vec<Entry> {
        let now = Instant::now();
        self.0.extract_if(.., |entry| entry.until <= now).collect()
    }

    /// Removes all of them.
    pub(super) fn clear(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.0)
    }

    /// When the next of them expires.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().map(|entry| entry.until).min()
    }

    /// Whether a sender's message is not complete.
    pub(super) fn has(&self, username: &str) -> bool {
        self.0.iter().any(|entry| *entry.username == *username)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those in a channel: their names, and what they have written so far.
    pub(super) fn shown_in(&self, channel: &str) -> Vec<(Str, Str)> {
        let here = self.0.iter().filter(|entry| entry.channel == channel);
        here.map(|entry| (entry.nick.clone(), entry.text.clone()))
            .collect()
    }
}
