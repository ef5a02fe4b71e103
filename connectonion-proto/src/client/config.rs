//! [`ClientConfig`], and when to connect again.

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::backoff::{BackoffPolicy, Jitter};
use rpc_core::reconnect::ReconnectPolicy;

use crate::limits::{
    CONNECT_TIMEOUT, MAX_SERVER_MESSAGE, ONBOARDED_TIMEOUT, SILENCE_TIMEOUT, client_limits,
};

/// The delay before the first reconnect.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// No reconnect waits longer.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How long a question to the host waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// When to connect again after a line was lost: after about 1 s, then twice as long each time up to
/// 30 s, with jitter so that the clients of a host that restarts do not come back all at once, without
/// end. A CONNECTED starts the delays anew. The specification says nothing about it.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy::new(FIRST_DELAY, 2.0)
        .with_max(Some(LONGEST_DELAY))
        .with_jitter(Jitter::Equal);
    ReconnectPolicy::new(backoff)
}

rpc_core::config! {
    /// How long a client waits, and how much it takes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use connectonion_proto::client::ClientConfig;
    /// use connectonion_proto::net::AgentOptions;
    ///
    /// let client = ClientConfig::new().with_silence_timeout(Some(Duration::from_secs(90)));
    /// let options = AgentOptions::default().with_client(client);
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientConfig {
        /// How long the host may take to answer a CONNECT; `None` is for ever. At its gate there is no
        /// deadline. Default 30 s.
        pub connect_timeout: Option<Duration> = Some(CONNECT_TIMEOUT) => with_connect_timeout,
        /// How long the host may take to finish the CONNECT after it has let a stranger in. Hosts before
        /// the specification's version never do: they want another CONNECT. Default 3 s.
        pub onboarded_timeout: Duration = ONBOARDED_TIMEOUT => with_onboarded_timeout,
        /// How long nothing at all may come before the line counts as dead; `None` is for ever. Hosts
        /// send a PING every 30 s, also while a human thinks. Default 60 s.
        pub silence_timeout: Option<Duration> = Some(SILENCE_TIMEOUT) => with_silence_timeout,
        /// How long a question to the host (an onboarding, a `SESSION_STATUS`, an administrator's request)
        /// waits for its answer; `None` is for ever. Prompts have no deadline. Default 30 s.
        pub answer_timeout: Option<Duration> = Some(ANSWER_TIMEOUT) => with_answer_timeout,
        /// Whether `session_sync` events are passed on: known hosts send the whole conversation after
        /// every step. Default yes.
        pub session_sync: bool = true => with_session_sync,
        /// Largest frame that is sent, in bytes; a larger one is refused at once. Hosts close on it. A
        /// `Client` whose conversation is too large for its CONNECT connects without it.
        /// Default 16 MiB, the known hosts' limit.
        pub max_sent_bytes: usize = MAX_SERVER_MESSAGE => with_max_sent_bytes,
        /// Bounds on size and number of what is received. Default
        /// [`client_limits`](crate::limits::client_limits): 64 MiB for a message.
        pub limits: Limits = client_limits() => with_limits,
    }
}

impl ClientConfig {
    /// Everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
