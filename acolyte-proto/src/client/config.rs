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

rpc_core::config! {
    /// How a client gets in, and how long it waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use acolyte_proto::auth::ApiKey;
    /// use acolyte_proto::client::ClientConfig;
    ///
    /// let config = ClientConfig::new()
    ///     .with_api_key(ApiKey::new("secret")?)
    ///     .with_chat_idle_timeout(Some(Duration::from_secs(600)));
    /// assert!(!format!("{config:?}").contains("secret"));
    /// # Ok::<(), acolyte_proto::auth::AuthError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientConfig {
        /// The server's key; `None` for a server that wants none. It is sent when a connection is made,
        /// never in a message. Default `None`.
        pub api_key: Option<ApiKey> = None => with_api_key(ApiKey),
        /// How long a request that is no chat waits for its answer. Default 10 s.
        pub call_timeout: Duration = CALL_TIMEOUT => with_call_timeout,
        /// How long a chat waits for its next message; `None` for ever, which suits a person who can
        /// abort. While a chat waits in the server's queue, messages of the chats that were sent before
        /// it on the connection count too. Default 180 s.
        pub chat_idle_timeout: Option<Duration> = Some(CHAT_IDLE_TIMEOUT) => with_chat_idle_timeout,
        /// Pings, and when silence counts as death. Default every 25 s, and 30 s after a ping, because
        /// known servers may be deaf for 15 s. Over HTTP, where there are no pings and servers send a
        /// comment every 15 s, a line is dead on which nothing has come for both times together.
        pub keep_alive: KeepAlive = KeepAlive::default()
            .with_interval(Some(PING_INTERVAL))
            .with_pong_timeout(PONG_TIMEOUT) => with_keep_alive,
        /// Bounds on size and number. Default: messages of at most 16 MiB.
        pub limits: Limits = limits::defaults() => with_limits,
        /// Whether [`connect`](crate::net::connect) may send the key to another machine without
        /// encryption: whoever sees the traffic then sees the key. Default no.
        pub insecure_key: bool = false => with_insecure_key,
    }
}

impl ClientConfig {
    /// No key; everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
