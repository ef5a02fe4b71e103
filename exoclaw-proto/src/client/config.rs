//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::backoff::{BackoffPolicy, Jitter};
use rpc_core::keepalive::KeepAlive;
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{Limits, Secret, Str};

use crate::frame::{ChatSend, SessionRef};
use crate::limits::{
    CALL_TIMEOUT, CHAT_IDLE_TIMEOUT, HELLO_TIMEOUT, PING_INTERVAL, PONG_TIMEOUT,
    TOKENLESS_HELLO_TIMEOUT,
};

/// The delay before the first reconnect.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// No reconnect waits longer.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// When to connect again after a line was lost: after 1 s, then twice as long each time up to 30 s,
/// with jitter, without end. A hello starts the delays anew. The specification says nothing about
/// it.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy::new(FIRST_DELAY, 2.0)
        .with_max(Some(LONGEST_DELAY))
        .with_jitter(Jitter::Equal);
    ReconnectPolicy::new(backoff)
}

rpc_core::config! {
    /// How a client gets in, how long it waits, and as whom it chats.
    ///
    /// ```
    /// use std::time::Duration;
    /// use exoclaw_proto::client::ClientConfig;
    ///
    /// let config = ClientConfig::new()
    ///     .with_token("secret")
    ///     .with_account("ann")
    ///     .with_chat_idle_timeout(Some(Duration::from_secs(300)));
    /// assert!(!format!("{config:?}").contains("secret"));
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientConfig {
        /// The token; `None` for a gateway that wants none. Default `None`.
        pub token: Option<Secret> = None,
        /// How long a client with a token waits for the hello. Default 10 s.
        pub hello_timeout: Duration = HELLO_TIMEOUT => with_hello_timeout,
        /// How long a client without a token waits for the hello. A gateway that wants a token is
        /// silent until it gets one, so this is how its wish is noticed. Default 3 s.
        pub tokenless_hello_timeout: Duration = TOKENLESS_HELLO_TIMEOUT
            => with_tokenless_hello_timeout,
        /// How long each request that is not streamed waits for its answer, from the gateway's last
        /// [progress](super::ClientConn#timeouts). Default 30 s.
        pub call_timeout: Duration = CALL_TIMEOUT => with_call_timeout,
        /// How long a chat waits for its next frame, from the gateway's last
        /// [progress](super::ClientConn#timeouts); `None` for ever. Default 60 s.
        pub chat_idle_timeout: Option<Duration> = Some(CHAT_IDLE_TIMEOUT) => with_chat_idle_timeout,
        /// How long a chat may take as a whole, from when it was sent, whatever comes; `None` for ever.
        /// While nothing is read it waits as the others do. Time in which a gateway answers other
        /// requests first counts. Default `None`.
        pub chat_total_timeout: Option<Duration> = None => with_chat_total_timeout,
        /// Pings after the hello, and when silence counts as death: never while a request or a chat is
        /// open, because known gateways answer pings only between requests. Default every 30 s, and
        /// 30 s after a ping.
        pub keep_alive: KeepAlive = KeepAlive::default()
            .with_interval(Some(PING_INTERVAL))
            .with_pong_timeout(PONG_TIMEOUT) => with_keep_alive,
        /// Bounds on size and number.
        pub limits: Limits = Limits::default() => with_limits,
        /// The channel of chats that name none. Default `websocket`.
        pub channel: Str = Str::from_static("websocket") => with_channel(impl Into<Str>),
        /// The account of chats that name none. Default `user`.
        pub account: Str = Str::from_static("user") => with_account(impl Into<Str>),
        /// The peer of chats that name none; `None` leaves it to the gateway, which takes `main`.
        /// Default `None`.
        pub peer: Option<Str> = None,
        /// Whether [`connect`](crate::net::connect) may send the token to another machine without
        /// encryption: whoever sees the traffic then sees the token. Default no.
        pub insecure_token: bool = false => with_insecure_token,
    }
}

impl ClientConfig {
    /// No token; everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`token`](Self::token).
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets [`peer`](Self::peer).
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<Str>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// A chat with this content as [`channel`](Self::channel), [`account`](Self::account) and
    /// [`peer`](Self::peer).
    #[must_use]
    pub fn chat(&self, content: impl Into<Str>) -> ChatSend {
        let mut chat = ChatSend::new(&self.channel, &self.account, content);
        chat.peer.clone_from(&self.peer);
        chat
    }

    /// The session of such chats.
    #[must_use]
    pub fn session(&self) -> SessionRef {
        let mut session = SessionRef::new(&self.channel, &self.account);
        session.peer.clone_from(&self.peer);
        session
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rpc_core::Retry;
    use rpc_core::reconnect::{Dial, Reconnector};

    use super::*;

    #[test]
    fn reconnects_double_up_to_half_a_minute_and_never_end() {
        let mut reconnector = Reconnector::new(reconnect_policy());
        assert_eq!(reconnector.first(), Dial::Now);
        let now = Instant::now();
        for most in [1, 2, 4, 8, 16, 30, 30, 30] {
            let dial = reconnector.on_lost(Retry::Backoff, now, u64::MAX / 3);
            let wait = dial.at().unwrap() - now;
            let most = Duration::from_secs(most);
            assert!(wait <= most && wait >= most / 2, "{wait:?} of {most:?}");
        }
    }

    #[test]
    fn a_printed_configuration_holds_no_token() {
        let config = ClientConfig::new().with_token("hunter2");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn a_chat_carries_the_configured_place() {
        let config = ClientConfig::new().with_account("ann").with_peer("p");
        let json = serde_json::to_string(&config.chat("hi")).unwrap();
        assert_eq!(
            json,
            r#"{"channel":"websocket","account":"ann","content":"hi","peer":"p"}"#
        );
        assert_eq!(config.session().peer(), "p");
    }
}
