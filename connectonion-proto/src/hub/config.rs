//! [`HubConfig`].

use std::time::Duration;

use crate::limits::{MAX_CLIENT_MESSAGE, RESULT_TTL};
use crate::session::RegistryConfig;

/// How a [`Hub`](super::Hub) behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubConfig {
    /// How long sessions live, how many there may be, and what they may hold.
    pub registry: RegistryConfig,
    /// Largest event or OUTPUT in bytes: no more than a connection
    /// [sends](crate::server::ServerConfig::max_sent_bytes). A larger OUTPUT is sent without the
    /// session's trace, then without the session. Default 64 MiB.
    pub max_output_bytes: usize,
    /// Bytes of events that a session's trace keeps of one run; the oldest go first. Default 1 MiB.
    pub max_trace_bytes: usize,
    /// How long a stored session is kept after its last run. Default 24 h.
    pub result_ttl: Duration,
    /// Most prompts of one session that wait to be stored. Default 64.
    pub max_intake: usize,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            registry: RegistryConfig::default(),
            max_output_bytes: MAX_CLIENT_MESSAGE,
            max_trace_bytes: 1024 * 1024,
            result_ttl: RESULT_TTL,
            max_intake: 64,
        }
    }
}

impl HubConfig {
    /// Sets [`registry`](Self::registry).
    #[must_use]
    pub fn with_registry(mut self, config: RegistryConfig) -> Self {
        self.registry = config;
        self
    }

    /// Sets [`max_output_bytes`](Self::max_output_bytes).
    #[must_use]
    pub const fn with_max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets [`max_trace_bytes`](Self::max_trace_bytes).
    #[must_use]
    pub const fn with_max_trace_bytes(mut self, bytes: usize) -> Self {
        self.max_trace_bytes = bytes;
        self
    }

    /// Sets [`result_ttl`](Self::result_ttl).
    #[must_use]
    pub const fn with_result_ttl(mut self, ttl: Duration) -> Self {
        self.result_ttl = ttl;
        self
    }

    /// Sets [`max_intake`](Self::max_intake).
    #[must_use]
    pub const fn with_max_intake(mut self, prompts: usize) -> Self {
        self.max_intake = prompts;
        self
    }
}
