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

/// How a client gets in, how long it waits, and as whom it chats.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The token; `None` for a gateway that wants none. Default `None`.
    pub token: Option<Secret>,
    pub(crate) hello_timeout: Duration,
    pub(crate) tokenless_hello_timeout: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) chat_idle_timeout: Option<Duration>,
    pub(crate) chat_total_timeout: Option<Duration>,
    /// Pings after the hello, and when silence counts as death: never while a request or a chat is
    /// open, because known gateways answer pings only between requests. Default every 30 s, and
    /// 30 s after a ping.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number.
    pub limits: Limits,
    pub(crate) channel: Str,
    pub(crate) account: Str,
    pub(crate) peer: Option<Str>,
    pub(crate) insecure_token: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientConfig {
    /// No token; everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self {
            token: None,
            hello_timeout: HELLO_TIMEOUT,
            tokenless_hello_timeout: TOKENLESS_HELLO_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            chat_idle_timeout: Some(CHAT_IDLE_TIMEOUT),
            chat_total_timeout: None,
            keep_alive: KeepAlive::default()
                .with_interval(Some(PING_INTERVAL))
                .with_pong_timeout(PONG_TIMEOUT),
            limits: Limits::default(),
            channel: Str::from_static("websocket"),
            account: Str::from_static("user"),
            peer: None,
            insecure_token: false,
        }
    }

    /// Sets [`token`](Self::token).
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// How long a client with a token waits for the hello. Default 10 s.
    #[must_use]
    pub const fn with_hello_timeout(mut self, timeout: Duration) -> Self {
        self.hello_timeout = timeout;
        self
    }

    /// How long a client without a token waits for the hello. A gateway that wants a token is
    /// silent until it gets one, so this is how its wish is noticed. Default 3 s.
    #[must_use]
    pub const fn with_tokenless_hello_timeout(mut self, timeout: Duration) -> Self {
        self.tokenless_hello_timeout = timeout;
        self
    }

    /// How long each request that is not streamed waits for its answer, from the gateway's last
    /// [progress](super::ClientConn#timeouts). Default 30 s.
    #[must_use]
    pub const fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// How long a chat waits for its next frame, from the gateway's last
    /// [progress](super::ClientConn#timeouts); `None` for ever. Default 60 s.
    #[must_use]
    pub const fn with_chat_idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.chat_idle_timeout = timeout;
        self
    }

    /// How long a chat may take as a whole, from when it was sent, whatever comes; `None` for ever.
    /// While nothing is read it waits as the others do. Time in which a gateway answers other requests first counts. Default `None`.
    #[must_use]
    pub const fn with_chat_total_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.chat_total_timeout = timeout;
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

    /// The channel of chats that name none. Default `websocket`.
    #[must_use]
    pub fn with_channel(mut self, channel: impl Into<Str>) -> Self {
        self.channel = channel.into();
        self
    }

    /// The account of chats that name none. Default `user`.
    #[must_use]
    pub fn with_account(mut self, account: impl Into<Str>) -> Self {
        self.account = account.into();
        self
    }

    /// The peer of chats that name none; `None` leaves it to the gateway, which takes `main`.
    /// Default `None`.
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<Str>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// Whether [`connect`](crate::net::connect) may send the token to another machine without
    /// encryption: whoever sees the traffic then sees the token. Default no.
    #[must_use]
    pub const fn with_insecure_token(mut self, allow: bool) -> Self {
        self.insecure_token = allow;
        self
    }

    /// A chat with this content as [`channel`](Self::with_channel), [`account`](Self::with_account) and
    /// [`peer`](Self::with_peer).
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
