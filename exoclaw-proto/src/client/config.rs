//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::backoff::{BackoffPolicy, Jitter};
use rpc_core::keepalive::KeepAlive;
#[cfg(feature = "tokio")]
use rpc_core::net::LinkConfig;
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{Limits, Secret, Str};

use crate::frame::{ChatSend, SessionRef};
use crate::limits::{
    CALL_TIMEOUT, CHAT_IDLE_TIMEOUT, HELLO_TIMEOUT, PING_INTERVAL, PONG_TIMEOUT,
    TOKENLESS_HELLO_TIMEOUT,
};

/// The delay before the first reconnect.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay before a reconnect.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Returns the default reconnect policy: after 1 s, then twice as long each time up to 30 s, with
/// jitter, without end. A hello resets the delays. The specification has no rule.
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
    /// The token, timeouts, limits and chat identity of a client.
    ///
    /// ```
    /// use std::time::Duration;
    /// use exoclaw_proto::client::ClientConfig;
    ///
    /// let config = ClientConfig {
    ///     account: "ann".into(),
    ///     chat_idle_timeout: Some(Duration::from_secs(300)),
    ///     ..ClientConfig::new("secret")
    /// };
    /// assert!(!format!("{config:?}").contains("secret"));
    /// ```
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The token; `None` for a gateway that requires none. Default `None`.
        pub token: Option<Secret> = None,
        /// How long a client with a token waits for the hello. Default 10 s.
        pub handshake_timeout: Duration = HELLO_TIMEOUT,
        /// How long a client without a token waits for the hello. A gateway that requires a token
        /// is silent until it gets one, so this timeout detects it. Default 3 s.
        pub tokenless_handshake_timeout: Duration = TOKENLESS_HELLO_TIMEOUT,
        /// How long each request that is not streamed waits for its answer, from the gateway's last
        /// [progress](super::ClientConn#timeouts). Default 30 s.
        pub call_timeout: Duration = CALL_TIMEOUT,
        /// How long a chat waits for its next frame, from the gateway's last
        /// [progress](super::ClientConn#timeouts); `None` waits for ever. Default 60 s.
        pub chat_idle_timeout: Option<Duration> = Some(CHAT_IDLE_TIMEOUT),
        /// How long a chat may take as a whole after it was sent, whatever its progress; `None`
        /// means no limit. Like other timeouts it does not expire while nothing is read. It
        /// includes the time in which a gateway answers other requests first. Default `None`.
        pub chat_total_timeout: Option<Duration> = None,
        /// How often to ping after the hello, and how long to wait for any sign of life after a
        /// ping; without a limit while a request or a chat is open, because known gateways answer
        /// pings only between requests. Default 30 s and 30 s.
        pub keep_alive: KeepAlive = KeepAlive::every(PING_INTERVAL, PONG_TIMEOUT),
        /// Limits on sizes and counts.
        pub limits: Limits = Limits::default(),
        /// The channel of chats that do not set one. Default `websocket`.
        pub channel: Str = Str::from_static("websocket"),
        /// The account of chats that do not set one. Default `user`.
        pub account: Str = Str::from_static("user"),
        /// The peer of chats that name none; `None` leaves it to the gateway, which uses `main`.
        /// Default `None`.
        pub peer: Option<Str> = None,
        /// Whether [`connect`](crate::net::connect) may send the token to another machine without
        /// encryption, where anyone who sees the traffic can read it. Default no.
        pub insecure: bool = false,
        /// Reconnects, the deadline of a dial, TLS, the queues and the observer. Default:
        /// [`reconnect_policy`], and [`LinkConfig`]'s own. Each chat holds up to 65,536 unread events and
        /// 16 MiB; one that stays full for 30 s is ended, and until then its connection delivers nothing.
        pub link: LinkConfig = LinkConfig { reconnect: reconnect_policy(), ..LinkConfig::default() } => #[cfg(feature = "tokio")],
    }
}

impl ClientConfig {
    /// Creates the configuration for a gateway that requires this token.
    #[must_use]
    pub fn new(token: impl Into<Secret>) -> Self {
        Self {
            token: Some(token.into()),
            ..Self::default()
        }
    }

    /// Creates a chat with this content for [`channel`](Self::channel), [`account`](Self::account)
    /// and [`peer`](Self::peer).
    #[must_use]
    pub fn chat(&self, content: impl Into<Str>) -> ChatSend {
        ChatSend {
            session: self.session(),
            content: content.into(),
        }
    }

    /// Returns the session of the chats made by [`chat`](Self::chat).
    #[must_use]
    pub fn session(&self) -> SessionRef {
        let mut session = SessionRef::new(&self.channel, &self.account);
        session.peer.clone_from(&self.peer);
        session
    }
}

#[cfg(test)]
mod tests {

    use rpc_core::reconnect::Reconnector;
    use rpc_core::{Instant, Retry};

    use super::*;

    #[test]
    fn reconnect_delays_double_up_to_30_seconds_forever() {
        let mut reconnector = Reconnector::new(reconnect_policy());
        let now = Instant::now();
        for most in [1, 2, 4, 8, 16, 30, 30, 30] {
            let dial = reconnector.on_lost(Retry::Backoff, now, u64::MAX / 3);
            let wait = dial.unwrap().at - now;
            let most = Duration::from_secs(most);
            assert!(wait <= most && wait >= most / 2, "{wait:?} of {most:?}");
        }
    }

    #[test]
    fn a_printed_configuration_holds_no_token() {
        let config = ClientConfig::new("hunter2");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn a_chat_has_the_configured_session() {
        let config = ClientConfig {
            account: "ann".into(),
            peer: Some("p".into()),
            ..ClientConfig::default()
        };
        let json = serde_json::to_string(&config.chat("hi")).unwrap();
        assert_eq!(
            json,
            r#"{"channel":"websocket","account":"ann","content":"hi","peer":"p"}"#
        );
        assert_eq!(config.session().peer(), "p");
        let json = serde_json::to_string(&ClientConfig::default().chat("hi")).unwrap();
        assert_eq!(
            json,
            r#"{"channel":"websocket","account":"user","content":"hi"}"#
        );
    }
}
