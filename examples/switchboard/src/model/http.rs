//! [`HttpModel`] and its [`RequestPolicy`]: the common parts of all models over HTTP.

mod ask;
mod auth;
mod client;
mod failure_message;
mod learnt;
mod model;
#[cfg(test)]
pub(crate) mod tests;
pub(super) mod wait;

use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;

pub use model::HttpModel;

rpc_core::config! {
    /// The timeouts and attempts of requests to a provider.
    ///
    /// An attempt is repeated only before any part of an answer has arrived, and only if a retry
    /// can help: without a connection, or after a failure that [passes](crate::model::Refusal::passes).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RequestPolicy {
        /// How long the head of the answer may take, including the connection. Default 45 s.
        pub head_timeout: Duration = Duration::from_secs(45) => with_head_timeout,
        /// How long the provider may be silent within the answer. Default 45 s.
        pub idle_timeout: Duration = Duration::from_secs(45) => with_idle_timeout,
        /// How long an answer may take from its head to its end, however busy the connection is.
        /// Default `None`: no limit.
        pub total_timeout: Option<Duration> = None => with_total_timeout,
        /// How long to wait for the usage and the end mark after the answer is complete. Default 2
        /// s.
        pub tail_timeout: Duration = Duration::from_secs(2) => with_tail_timeout,
        /// The waits between attempts, if the provider does not request one. Default 1 s and 2 s,
        /// each randomly shortened to no less than half: three attempts in all.
        /// [`BackoffPolicy::off`] makes one attempt.
        pub retry: BackoffPolicy = BackoffPolicy {
            max_attempts: Some(2),
            ..BackoffPolicy::default()
        } => with_retry,
        /// The longest wait that a provider may request. Beyond it, the request fails. Default 30
        /// s.
        pub max_wait: Duration = Duration::from_secs(30) => with_max_wait,
    }
}

impl RequestPolicy {
    /// Sets how long the provider may be silent, before its answer and within it.
    pub const fn with_silence(self, time: Duration) -> Self {
        self.with_head_timeout(time).with_idle_timeout(time)
    }
}
