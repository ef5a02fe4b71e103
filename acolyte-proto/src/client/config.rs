//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::backoff::{BackoffPolicy, Jitter};
use rpc_core::keepalive::KeepAlive;
use rpc_core::reconnect::ReconnectPolicy;

use crate::auth::ApiKey;
use crate::limits::{self, CALL_TIMEOUT, CHAT_IDLE_TIMEOUT, PING_INTERVAL, PONG_TIMEOUT};

/// The delay before the first reconnect.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// No reconnect waits longer.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// When to connect again after a line was lost: after 1 s, then twice as long each time up to 30 s,
/// with jitter, without end. No chat comes back with the connection. The specification says nothing
/// about it.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy::new(FIRST_DELAY, 2.0)
        .with_max(Some(LONGEST_DELAY))
        .with_jitter(Jitter::Equal);
    ReconnectPolicy::new(backoff)
}

/// How a client gets in, and how long it waits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientConfig {
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) call_timeout: Duration,
    pub(crate) chat_idle_timeout: Option<Duration>,
    /// Pings, and when silence counts as death. Default every 25 s, and 30 s after a ping, because
    /// known servers may be deaf for 15 s. Over HTTP, where there are no pings and servers send a
    /// comment every 15 s, a line is dead on which nothing has come for both times together.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number. Default: messages of at most 16 MiB.
    pub limits: Limits,
    pub(crate) insecure_key: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientConfig {
    /// No key; everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self {
            api_key: None,
            call_timeout: CALL_TIMEOUT,
            chat_idle_timeout: Some(CHAT_IDLE_TIMEOUT),
            keep_alive: KeepAlive::default()
                .with_interval(Some(PING_INTERVAL))
                .with_pong_timeout(PONG_TIMEOUT),
            limits: limits::defaults(),
            insecure_key: false,
        }
    }

    /// The server's key; `None` for a server that wants none. It is sent when a connection is made,
    /// never in a message. Default `None`.
    #[must_use]
    pub fn with_api_key(mut self, key: ApiKey) -> Self {
        self.api_key = Some(key);
        self
    }

    /// How long a request that is no chat waits for its answer. Default 10 s.
    #[must_use]
    pub const fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// How long a chat waits for its next message; `None` for ever, which suits a person who can
    /// abort. While a chat waits in the server's queue, messages of the chats that were sent before
    /// it on the connection count too. Default 180 s.
    #[must_use]
    pub const fn with_chat_idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.chat_idle_timeout = timeout;
        self
    }

    /// Sets [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub const fn with_keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether [`connect`](crate::net::connect) may send the key to another machine without
    /// encryption: whoever sees the traffic then sees the key. Default no.
    #[must_use]
    pub const fn with_insecure_key(mut self, allow: bool) -> Self {
        self.insecure_key = allow;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_configuration_holds_no_key() {
        let config = ClientConfig::new().with_api_key(ApiKey::new("hunter2").unwrap());
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
