//! [`Status`]: what a server is and what it has to do.

use std::borrow::Cow;

use super::open::{Extra, owned};
use crate::limits::{CAPABILITIES, PROTOCOL_VERSION};

/// What a server is and what it has to do: `status.result`, and the body of `GET /v1/status`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status<'a> {
    /// Whether the server is well; known servers always are.
    pub ok: bool,
    /// The protocol's version, `1`. It proves nothing: all known servers tell the same.
    pub protocol_version: Cow<'a, str>,
    /// What the server can do: words between commas. See
    /// [`capability_words`](Self::capability_words).
    pub capabilities: Cow<'a, str>,
    /// The model that is used by default.
    pub model: Cow<'a, str>,
    /// The server's own address.
    pub service: Cow<'a, str>,
    /// The models' providers; seen: `anthropic`, `google`, `openai`, `vercel`.
    pub providers: Vec<Cow<'a, str>>,
    /// Providers that a key is known for. Servers from 0.22.
    pub provider_auth: Vec<Cow<'a, str>>,
    /// Tasks that are remembered.
    pub tasks_total: u64,
    /// Tasks that run.
    pub tasks_running: u64,
    /// Tasks that run for nobody. Servers up to 0.21.
    pub tasks_detached: u64,
    /// Chats of all connections that wait.
    pub rpc_queue_length: u64,
    /// Members that this crate does not know. Real clients want texts, numbers, booleans and lists
    /// of texts here.
    pub extra: Extra<'a>,
}

impl<'a> Status<'a> {
    /// A server with this model and address and with nothing to do.
    pub fn new(model: impl Into<Cow<'a, str>>, service: impl Into<Cow<'a, str>>) -> Self {
        Self {
            ok: true,
            protocol_version: Cow::Borrowed(PROTOCOL_VERSION),
            capabilities: Cow::Borrowed(CAPABILITIES),
            model: model.into(),
            service: service.into(),
            providers: Vec::new(),
            provider_auth: Vec::new(),
            tasks_total: 0,
            tasks_running: 0,
            tasks_detached: 0,
            rpc_queue_length: 0,
            extra: Extra::default(),
        }
    }

    /// Adds a provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Cow<'a, str>>) -> Self {
        self.providers.push(provider.into());
        self
    }

    /// Sets the numbers of tasks and of chats that wait.
    #[must_use]
    pub const fn with_load(mut self, total: u64, running: u64, queued: u64) -> Self {
        self.tasks_total = total;
        self.tasks_running = running;
        self.rpc_queue_length = queued;
        self
    }

    /// The words of [`capabilities`](Self::capabilities), without the space around them.
    pub fn capability_words(&self) -> impl Iterator<Item = &str> {
        let words = self.capabilities.split(',').map(str::trim);
        words.filter(|word| !word.is_empty())
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Status<'static> {
        Status {
            ok: self.ok,
            protocol_version: owned(self.protocol_version),
            capabilities: owned(self.capabilities),
            model: owned(self.model),
            service: owned(self.service),
            providers: self.providers.into_iter().map(owned).collect(),
            provider_auth: self.provider_auth.into_iter().map(owned).collect(),
            tasks_total: self.tasks_total,
            tasks_running: self.tasks_running,
            tasks_detached: self.tasks_detached,
            rpc_queue_length: self.rpc_queue_length,
            extra: self.extra.into_owned(),
        }
    }
}
