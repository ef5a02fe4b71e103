//! [`MemoryBackend`]: a gateway that echoes chats, for tests and first steps.

use std::collections::HashSet;
use std::sync::Arc;

use rpc_core::Str;
use rpc_core::sync::Mutex;

use super::backend::{AppError, Backend};
use super::peer::Peer;
use super::reply::ChatReply;
use crate::frame::{ChatSend, Plugin, Status, Usage};
use crate::limits::HELLO_VERSION;

/// Most sessions that are counted.
const MAX_SESSIONS: usize = 10_000;
/// The longest key of a session that is counted.
const MAX_KEY: usize = 1_024;

/// A backend that echoes every chat word by word, lists its configured plugins, and counts
/// sessions. It stores nothing else.
#[derive(Debug, Default)]
pub struct MemoryBackend {
    plugins: Vec<Plugin>,
    sessions: Mutex<HashSet<[String; 3]>>,
}

impl MemoryBackend {
    /// Creates a backend without plugins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin to the list.
    #[must_use]
    pub fn with_plugin(mut self, name: impl Into<Str>) -> Self {
        self.plugins.push(Plugin::new(name));
        self
    }

    /// Returns how many sessions have chatted.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }
}

impl Backend for MemoryBackend {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Status::new(
            HELLO_VERSION,
            count(self.plugins.len()),
            count(self.sessions()),
        )
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        self.plugins.clone()
    }

    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        let from = &chat.session;
        let key = [&from.channel, &from.account, from.peer()].map(str::to_owned);
        {
            let mut sessions = self.sessions.lock();
            let bytes: usize = key.iter().map(String::len).sum();
            if sessions.len() < MAX_SESSIONS && bytes <= MAX_KEY {
                sessions.insert(key);
            }
        }
        let mut words = 0;
        for word in chat.content.split_inclusive(' ') {
            reply.text(word).await?;
            words += 1;
        }
        reply.usage(Usage::new(words, words)).await?;
        Ok(())
    }
}
