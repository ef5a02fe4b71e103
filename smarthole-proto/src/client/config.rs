//! [`ClientConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::keepalive::KeepAlive;
#[cfg(feature = "tokio")]
use rpc_core::net::LinkConfig;
use rpc_core::reconnect::ReconnectPolicy;

use crate::error::RegistrationError;
use crate::frame::Registration;
use crate::limits::{
    BASE_DELAY, MAX_ATTEMPTS, MAX_DELAY, REGISTRATION_TIMEOUT, RESPONSE_TIMEOUT, defaults,
    keep_alive,
};
use crate::validate::{self, Side};

/// Returns the reconnect policy of the specification: after 1, 2, 4, 8, 16 s and then every 30 s;
/// after ten failed attempts the client gives up.
///
/// A finished registration resets the delays. In the specification's sample an open socket already
/// does, so a client whose registration is refused retries every second forever; to get that
/// behaviour, set [`reset_on`](ReconnectPolicy::reset_on) to [`ResetOn::Open`].
///
/// [`ResetOn::Open`]: rpc_core::reconnect::ResetOn::Open
#[must_use]
pub const fn reconnect_policy() -> ReconnectPolicy {
    let backoff = BackoffPolicy {
        max: Some(MAX_DELAY),
        max_attempts: Some(MAX_ATTEMPTS),
        ..BackoffPolicy::new(BASE_DELAY, 2.0)
    };
    ReconnectPolicy::new(backoff)
}

rpc_core::config! {
    /// The registration of a client, and the timeouts and limits of its connection.
    ///
    /// ```
    /// use std::time::Duration;
    /// use smarthole_proto::client::ClientConfig;
    /// use smarthole_proto::frame::Registration;
    ///
    /// let registration = Registration::new("notes", "I keep notes.");
    /// let config = ClientConfig {
    ///     response_timeout: Duration::from_secs(10),
    ///     ..ClientConfig::new(registration)?
    /// };
    /// assert_eq!(config.registration.name, "notes");
    ///
    /// let refused = ClientConfig::new(Registration::new("my notes", "I keep notes.")).unwrap_err();
    /// assert_eq!(refused.code.name(), "INVALID_NAME");
    /// # Ok::<(), smarthole_proto::error::RegistrationError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The registration; the constructor validates it.
        pub registration: Registration = registration,
        /// How long the server waits for the first response to a message. This sets the deadline of
        /// each message. Default 30 s.
        pub response_timeout: Duration = RESPONSE_TIMEOUT,
        /// How long the server may take to answer the registration; `None` means forever. Default
        /// 10 s.
        pub handshake_timeout: Option<Duration> = Some(REGISTRATION_TIMEOUT),
        /// Pings of this side, and when silence means that the server is dead. Default: a ping
        /// every 30 s, and 10 s to answer. Anything that arrives is a sign of life. The transport
        /// answers the server's pings.
        pub keep_alive: KeepAlive = keep_alive(),
        /// Limits on size and number. Default [`limits`](crate::limits::defaults): 1 MiB for a
        /// message.
        pub limits: Limits = defaults(),
        /// Reconnects, the deadline of a dial, TLS, the queues and the observer. Default:
        /// [`reconnect_policy`], and [`LinkConfig`]'s own. A message that is dropped from the queue is
        /// rejected.
        pub link: LinkConfig = LinkConfig { reconnect: reconnect_policy(), ..LinkConfig::default() } => #[cfg(feature = "tokio")],
    }
    fn unchecked(registration: Registration);
}

impl ClientConfig {
    /// Creates a configuration with this registration and defaults.
    ///
    /// # Errors
    /// [`RegistrationError`] with the code that a server would refuse it with. Retrying it
    /// unchanged fails again.
    pub fn new(registration: Registration) -> Result<Self, RegistrationError> {
        validate::registration(&registration, Side::Client)?;
        Ok(Self::unchecked(registration))
    }
}

#[cfg(test)]
mod tests {

    use rpc_core::reconnect::{Reconnector, ResetOn};
    use rpc_core::{Instant, Retry};

    use super::*;
    use crate::error::ErrorCode;

    /// The delays in seconds until the client gives up, if each attempt goes as far as `attempt`
    /// lets it.
    fn delays(policy: ReconnectPolicy, attempt: impl Fn(&mut Reconnector)) -> Vec<u64> {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(policy);
        let lost = || {
            attempt(&mut reconnector);
            let dial = reconnector.on_lost(Retry::Backoff, now, 7);
            dial.map(|dial| (dial.at - now).as_secs())
        };
        std::iter::from_fn(lost).take(20).collect()
    }

    #[test]
    fn ten_failed_attempts_double_their_delays_up_to_30_seconds() {
        let schedule = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30];
        assert_eq!(delays(reconnect_policy(), |_| {}), schedule);
        let literal = ReconnectPolicy {
            reset_on: ResetOn::Open,
            ..reconnect_policy()
        };
        assert_eq!(delays(literal, |_| {}), schedule);
    }

    #[test]
    fn an_open_socket_resets_the_delays_only_if_configured() {
        let refused = |reconnector: &mut Reconnector| reconnector.on_open();
        let schedule = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30];
        assert_eq!(delays(reconnect_policy(), refused), schedule);
        let literal = ReconnectPolicy {
            reset_on: ResetOn::Open,
            ..reconnect_policy()
        };
        assert_eq!(delays(literal, refused), [1; 20]);
    }

    #[test]
    fn a_registration_resets_the_delays() {
        let registered = |reconnector: &mut Reconnector| {
            reconnector.on_open();
            reconnector.on_ready();
        };
        assert_eq!(delays(reconnect_policy(), registered), [1; 20]);
    }

    #[test]
    fn an_invalid_registration_is_a_configuration_error() {
        for (name, description, code) in [
            ("1", "d", ErrorCode::InvalidName),
            ("a", " ", ErrorCode::InvalidDescription),
            ("a", &"😀".repeat(513), ErrorCode::InvalidDescription),
        ] {
            let refused = ClientConfig::new(Registration::new(name, description));
            assert_eq!(refused.unwrap_err().code, code);
        }
    }
}
