//! [`ClientConfig`], and the reconnect policy.

use std::time::Duration;
#[cfg(feature = "tokio")]
use std::time::SystemTime;

use rpc_core::backoff::{BackoffPolicy, Jitter};
#[cfg(feature = "tokio")]
use rpc_core::net::{LinkConfig, QueueConfig};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{Limits, Secret};

use super::Resume;
use crate::auth::Address;
#[cfg(feature = "tokio")]
use crate::limits::MAX_CLIENT_MESSAGE;
use crate::limits::{MAX_SERVER_MESSAGE, defaults};

/// The number of unread steps of one run.
#[cfg(feature = "tokio")]
const RUN_STEPS: usize = 65_536;

/// Returns when to reconnect after a lost connection: after about 1 s, then twice as long each time
/// up to 30 s, without end, with jitter so that the clients of a restarted host do not reconnect
/// all at once. A CONNECTED resets the delays. The specification says nothing about this.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy {
        max: Some(Duration::from_secs(30)),
        jitter: Jitter::Equal,
        ..BackoffPolicy::new(Duration::from_secs(1), 2.0)
    };
    ReconnectPolicy::new(backoff)
}

rpc_core::config! {
    /// The configuration of a client, and the state to resume.
    ///
    /// ```
    /// use std::time::Duration;
    /// use connectonion_proto::client::ClientConfig;
    ///
    /// let config = ClientConfig {
    ///     silence_timeout: Some(Duration::from_secs(90)),
    ///     ..ClientConfig::default()
    /// };
    /// ```
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The agent's address, signed into every CONNECT, so that no other host can use the
        /// signature. Newer hosts require it. `net::find` returns it. Default `None`.
        pub host: Option<Address> = None,
        /// The session and the conversation that a connection resumes. Default: new ones.
        pub resume: Resume = Resume::default(),
        /// An invite code, submitted once automatically if the host requires onboarding. Default
        /// `None`.
        pub invite_code: Option<Secret> = None,
        /// Whether prompts may be sent to another machine unencrypted. Default `false`.
        pub insecure: bool = false,
        /// How long the host may take to answer a CONNECT; `None` is for ever. During onboarding
        /// there is no deadline. Default 30 s.
        pub handshake_timeout: Option<Duration> = Some(Duration::from_secs(30)),
        /// How long the host may take to finish the CONNECT after onboarding. Hosts before the
        /// specification's version never do: they require another CONNECT. Default 3 s.
        pub onboarded_timeout: Duration = Duration::from_secs(3),
        /// The silence after which the connection counts as dead; `None` is never. Hosts send a
        /// PING every 30 s, also while a human thinks. Default 60 s.
        pub silence_timeout: Option<Duration> = Some(Duration::from_secs(60)),
        /// How long a request (an onboarding, a `SESSION_STATUS`, an administrator's command) waits
        /// for its answer; `None` is for ever. Prompts have no deadline. Default 30 s.
        pub answer_timeout: Option<Duration> = Some(Duration::from_secs(30)),
        /// Whether `session_sync` steps are delivered: known hosts send the whole conversation after
        /// every other step. Default `false`.
        pub session_sync: bool = false,
        /// The largest frame to send, in bytes; a larger one is refused at once, because hosts
        /// would close the connection. A session whose conversation is too large for its CONNECT
        /// connects without it. Default 16 MiB, the known hosts' limit.
        pub max_sent_bytes: usize = MAX_SERVER_MESSAGE,
        /// Bounds on size and number of received data. Default
        /// [`defaults`]: 64 MiB for a message.
        pub limits: Limits = defaults(),
        /// The unread steps of a run beyond which the oldest are dropped and counted, whatever its
        /// policy: an unread run must not block its connection. Default 65,536 steps and 64 MiB.
        pub run: QueueConfig = QueueConfig {
            max_items: RUN_STEPS,
            max_bytes: MAX_CLIENT_MESSAGE,
            ..QueueConfig::default()
        } => #[cfg(feature = "tokio")],
        /// The wall clock, for signatures; tests can set another one. Default: the system's.
        pub clock: fn() -> SystemTime = rpc_core::net::time::system_now => #[cfg(feature = "tokio")],
        /// Reconnects, the deadline of a dial, TLS, the queues and the observer. Default:
        /// [`reconnect_policy`], and [`LinkConfig`]'s own.
        pub link: LinkConfig = LinkConfig { reconnect: reconnect_policy(), ..LinkConfig::default() } => #[cfg(feature = "tokio")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnects_wait_twice_as_long_each_time_up_to_30_seconds() {
        let backoff = reconnect_policy().backoff;
        let delays: Vec<_> = (0..8).map(|number| backoff.delay(number)).collect();
        assert_eq!(
            delays,
            [1, 2, 4, 8, 16, 30, 30, 30].map(Duration::from_secs)
        );
        assert_eq!(backoff.max_attempts, None);
        assert_eq!(backoff.jitter, Jitter::Equal);
    }
}
