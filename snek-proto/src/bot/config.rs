//! [`BotConfig`].

use std::fmt;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::net::LinkConfig;

use super::send::RetrySend;
use crate::client::ClientConfig;
use crate::limits::{MAX_CONCURRENT_OPERATIONS, SHUTDOWN_TIMEOUT, THINKING_TASK_INTERVAL};
use crate::net::link_config;
use crate::permission::Triggers;
use crate::sanitize::DEFAULT_DRIVE_BASE;
use crate::stream::StreamConfig;

/// Who a bot is and how it behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct BotConfig {
    /// Login, timeouts, limits of each connection.
    pub client: ClientConfig,
    /// Reconnects, connect timeout and event queue. Default: [`link_config`]'s, with at most 1,024
    /// events of which the oldest are dropped.
    pub link: LinkConfig,
    /// Patterns that make the bot answer in channels that it has not joined. Default none.
    pub triggers: Triggers,
    /// What happens when a message cannot be sent. Default: what the specification orders.
    pub retry_send: RetrySend,
    /// Whether `ping` messages are answered with `pong`. Default yes.
    pub auto_pong: bool,
    /// Whether names of known bots are broken up in outgoing text, so that bots do not set each
    /// other off. Default yes.
    pub sanitize: bool,
    /// What relative drive links in incoming text are completed with; `None` leaves them. Default
    /// [`DEFAULT_DRIVE_BASE`].
    pub drive_base: Option<String>,
    /// How streamed answers are sent. Their texts are never longer than the message limit allows.
    pub stream: StreamConfig,
    /// How often a [typing indicator](super::Typing) is refreshed; not below 50 ms. Default 1 s.
    pub typing_interval: Duration,
    /// Most handlers at work at once; further events wait. Default 100.
    pub max_handlers: usize,
    /// How long handlers may go on after the shutdown was asked for. Default 5 s.
    pub shutdown_timeout: Duration,
}

impl BotConfig {
    /// A bot with these credentials; everything else by default.
    pub fn new(username: impl Into<String>, password: impl Into<Secret>) -> Self {
        Self {
            client: ClientConfig::new(username, password),
            link: link_config(),
            triggers: Triggers::default(),
            retry_send: RetrySend::default(),
            auto_pong: true,
            sanitize: true,
            drive_base: Some(DEFAULT_DRIVE_BASE.to_owned()),
            stream: StreamConfig::default(),
            typing_interval: THINKING_TASK_INTERVAL,
            max_handlers: MAX_CONCURRENT_OPERATIONS,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
        }
    }

    /// Sets [`client`](Self::client).
    #[must_use]
    pub fn with_client(mut self, client: ClientConfig) -> Self {
        self.client = client;
        self
    }

    /// Sets [`link`](Self::link).
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// Sets [`triggers`](Self::triggers).
    #[must_use]
    pub fn with_triggers(mut self, triggers: Triggers) -> Self {
        self.triggers = triggers;
        self
    }

    /// Sets [`retry_send`](Self::retry_send).
    #[must_use]
    pub const fn with_retry_send(mut self, retry: RetrySend) -> Self {
        self.retry_send = retry;
        self
    }

    /// Sets [`auto_pong`](Self::auto_pong).
    #[must_use]
    pub const fn with_auto_pong(mut self, answer: bool) -> Self {
        self.auto_pong = answer;
        self
    }

    /// Sets [`sanitize`](Self::sanitize).
    #[must_use]
    pub const fn with_sanitize(mut self, sanitize: bool) -> Self {
        self.sanitize = sanitize;
        self
    }

    /// Sets [`drive_base`](Self::drive_base).
    #[must_use]
    pub fn with_drive_base(mut self, base: Option<String>) -> Self {
        self.drive_base = base;
        self
    }

    /// Sets [`stream`](Self::stream).
    #[must_use]
    pub fn with_stream(mut self, stream: StreamConfig) -> Self {
        self.stream = stream;
        self
    }

    /// Sets [`typing_interval`](Self::typing_interval).
    #[must_use]
    pub const fn with_typing_interval(mut self, interval: Duration) -> Self {
        self.typing_interval = interval;
        self
    }

    /// Sets [`max_handlers`](Self::max_handlers); at least 1.
    #[must_use]
    pub const fn with_max_handlers(mut self, handlers: usize) -> Self {
        self.max_handlers = if handlers == 0 { 1 } else { handlers };
        self
    }

    /// Sets [`shutdown_timeout`](Self::shutdown_timeout).
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }
}

impl fmt::Debug for BotConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BotConfig")
            .field("client", &self.client)
            .field("link", &self.link)
            .field("retry_send", &self.retry_send)
            .field("max_handlers", &self.max_handlers)
            .finish_non_exhaustive()
    }
}
