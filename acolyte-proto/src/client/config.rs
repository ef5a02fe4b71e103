//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::backoff::{BackoffPolicy, Jitter};
use rpc_core::keepalive::KeepAlive;
#[cfg(feature = "tokio")]
use rpc_core::net::LinkConfig;
use rpc_core::reconnect::ReconnectPolicy;

use crate::auth::ApiKey;
use crate::limits::{self, CALL_TIMEOUT, CHAT_IDLE_TIMEOUT, PING_INTERVAL, PONG_TIMEOUT};

/// The delay before the first reconnect.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay before a reconnect.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Returns when to reconnect after a lost connection: after 1 s, then twice as long each time up to
/// 30 s, with jitter, without end. Chats are not resumed. The specification says nothing about
/// this.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy {
        max: Some(LONGEST_DELAY),
        jitter: Jitter::Equal,
        ..BackoffPolicy::new(FIRST_DELAY, 2.0)
    };
    ReconnectPolicy::new(backoff)
}

rpc_core::config! {
    /// The configuration of a client: its key, its timeouts and its limits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use acolyte_proto::auth::ApiKey;
    /// use acolyte_proto::client::ClientConfig;
    ///
    /// let config = ClientConfig {
    ///     chat_idle_timeout: Some(Duration::from_secs(600)),
    ///     ..ClientConfig::new(ApiKey::new("secret")?)
    /// };
    /// assert!(!format!("{config:?}").contains("secret"));
    /// # Ok::<(), acolyte_proto::Refused>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The server's key; `None` for a server that requires none. It is sent while connecting,
        /// never in a message. Default `None`.
        pub api_key: Option<ApiKey> = None,
        /// How long a request other than a chat waits for its answer. Default 10 s.
        pub call_timeout: Duration = CALL_TIMEOUT,
        /// How long a chat waits for its next message; `None` is for ever, for a person who can
        /// abort. While a chat waits in the server's queue, messages of the chats sent before it on
        /// the connection count too. Default 180 s.
        pub chat_idle_timeout: Option<Duration> = Some(CHAT_IDLE_TIMEOUT),
        /// Pings, and the silence after which the connection counts as dead. Default every 25 s,
        /// and 30 s after a ping, because known servers may be busy for 15 s. Over HTTP, which has
        /// no pings and where servers send a comment every 15 s, a connection is dead after silence
        /// for the sum of both times.
        pub keep_alive: KeepAlive = KeepAlive::every(PING_INTERVAL, PONG_TIMEOUT),
        /// Bounds on size and number. Default: messages of at most 16 MiB.
        pub limits: Limits = limits::defaults(),
        /// Whether [`connect`](crate::net::connect) may send the key to another machine
        /// unencrypted, where anyone who sees the traffic can read it. Default `false`.
        pub insecure: bool = false,
        /// Reconnects, the deadline of a dial, TLS, the queues and the observer. Default:
        /// [`reconnect_policy`], and [`LinkConfig`]'s own. Each chat holds up to 65,536 unread updates and
        /// 16 MiB; one that stays full for 30 s is ended, and until then its connection delivers nothing.
        pub link: LinkConfig = LinkConfig { reconnect: reconnect_policy(), ..LinkConfig::default() } => #[cfg(feature = "tokio")],
    }
}

impl ClientConfig {
    /// Creates the configuration for a server that requires this key.
    #[must_use]
    pub fn new(key: ApiKey) -> Self {
        Self {
            api_key: Some(key),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_configuration_holds_no_key() {
        let config = ClientConfig::new(ApiKey::new("hunter2").unwrap());
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
