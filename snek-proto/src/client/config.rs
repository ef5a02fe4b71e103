//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::keepalive::KeepAlive;
#[cfg(feature = "tokio")]
use rpc_core::net::LinkConfig;
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{Limits, Secret};

use crate::limits::{
    DEFAULT_REQUEST_TIMEOUT, RECONNECT_BACKOFF_FACTOR, RECONNECT_INITIAL_DELAY,
    RECONNECT_MAX_RETRIES, keep_alive,
};

/// Returns the specification's reconnect policy: after 1, 2 and 4 s, reset by a finished opening.
/// After three failed attempts another cycle starts at 1 s, without end unless
/// [`cycles`](ReconnectPolicy::cycles) sets a limit.
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy {
        max_attempts: Some(RECONNECT_MAX_RETRIES),
        ..BackoffPolicy::new(RECONNECT_INITIAL_DELAY, RECONNECT_BACKOFF_FACTOR)
    };
    ReconnectPolicy {
        cycles: None,
        ..ReconnectPolicy::new(backoff)
    }
}

rpc_core::config! {
    /// The credentials, timeouts and limits of a client.
    ///
    /// ```
    /// use std::time::Duration;
    /// use snek_proto::client::ClientConfig;
    ///
    /// let mut config = ClientConfig {
    ///     call_timeout: Duration::from_secs(10),
    ///     ..ClientConfig::new("mybot", "mypassword")
    /// };
    /// # #[cfg(feature = "tokio")] {
    /// config.link.reconnect.cycles = Some(2);
    /// # }
    /// assert_eq!(config.username, "mybot");
    /// assert!(!format!("{config:?}").contains("mypassword"));
    /// ```
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The login name.
        pub username: String = username.into(),
        /// The password.
        pub password: Secret = password.into(),
        /// How long each call, including those of the opening, waits for its answer. Default 190 s.
        pub call_timeout: Duration = DEFAULT_REQUEST_TIMEOUT,
        /// How long the opening may take as a whole, from the open socket to the channels. With
        /// `None` only the timeouts of its three calls apply. Default 190 s.
        pub handshake_timeout: Option<Duration> = Some(DEFAULT_REQUEST_TIMEOUT),
        /// How often to ping, and how long to wait for any sign of life after a ping. Default 30 s
        /// and 15 s.
        pub keep_alive: KeepAlive = keep_alive(),
        /// Whether the platform's nested `new_message` event is read as a message. Default yes.
        pub accept_new_message: bool = true,
        /// Whether the password may go to another machine without encryption, where anyone who sees
        /// the traffic can read it. Default no.
        pub insecure: bool = false,
        /// Limits on sizes and counts.
        pub limits: Limits = Limits::default(),
        /// Reconnects, the deadline of a dial, TLS, the queues and the observer. Default:
        /// [`reconnect_policy`], and [`LinkConfig`]'s own.
        pub link: LinkConfig = LinkConfig { reconnect: reconnect_policy(), ..LinkConfig::default() } => #[cfg(feature = "tokio")],
    }
    /// Creates a configuration with these credentials and the defaults.
    pub fn new(username: impl Into<String>, password: impl Into<Secret>);
}

#[cfg(test)]
mod tests {

    use rpc_core::reconnect::Reconnector;
    use rpc_core::{Instant, Retry};

    use super::*;

    #[test]
    fn reconnect_delays_are_1_2_and_4_seconds_in_cycles() {
        let mut reconnector = Reconnector::new(reconnect_policy());
        let now = Instant::now();
        let mut waits = Vec::new();
        for entropy in 0..7 {
            let dial = reconnector.on_lost(Retry::Backoff, now, entropy).unwrap();
            waits.push((dial.at - now).as_secs());
            assert_eq!(dial.starts_new_cycle(), [3, 6].contains(&entropy));
        }
        assert_eq!(waits, [1, 2, 4, 1, 2, 4, 1]);
    }
}
