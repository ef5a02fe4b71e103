//! [`HubConfig`]: how long, how often, how many.

use std::time::Duration;

use rpc_core::Limits;

use crate::limits::{HISTORY, RESPONSE_TIMEOUT, ROUTING_LIMIT, defaults};

/// How a hub routes, and bounds on what it holds.
///
/// ```
/// use std::time::Duration;
/// use smarthole_proto::hub::HubConfig;
///
/// let config = HubConfig::default().with_response_timeout(Duration::from_secs(5));
/// assert_eq!(config, config.clone().with_routing_limit(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubConfig {
    pub(crate) response_timeout: Duration,
    pub(crate) routing_limit: u32,
    pub(crate) reroute_direct: bool,
    pub(crate) max_history: usize,
    pub(crate) max_open: usize,
    pub(crate) max_open_bytes: usize,
    pub(crate) max_queued: usize,
    /// The bounds of a connection, of which the size of a message counts here.
    pub limits: Limits,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            response_timeout: RESPONSE_TIMEOUT,
            routing_limit: ROUTING_LIMIT,
            reroute_direct: false,
            max_history: HISTORY,
            max_open: 10_000,
            max_open_bytes: 64 * 1024 * 1024,
            max_queued: 100_000,
            limits: defaults(),
        }
    }
}

impl HubConfig {
    /// How long a client may take for its first response to a message. Default 30 s.
    #[must_use]
    pub const fn with_response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Most clients, one after the other, that a message is routed to while each rejects it.
    /// Default 3; 0 is as 1.
    #[must_use]
    pub const fn with_routing_limit(mut self, limit: u32) -> Self {
        self.routing_limit = limit;
        self
    }

    /// Whether a message that the user sent to a certain client goes to the router, with its
    /// prefix, when that client rejects it. Default no: the user chose.
    #[must_use]
    pub const fn with_reroute_direct(mut self, reroute: bool) -> Self {
        self.reroute_direct = reroute;
        self
    }

    /// Deliveries that have ended and are remembered, so that late and further responses to them
    /// are understood. Default 100.
    #[must_use]
    pub const fn with_max_history(mut self, deliveries: usize) -> Self {
        self.max_history = deliveries;
        self
    }

    /// Most messages that something is open about. Default 10,000.
    #[must_use]
    pub const fn with_max_open(mut self, messages: usize) -> Self {
        self.max_open = messages;
        self
    }

    /// Most bytes of text in such messages. Default 64 MiB; a single longer text passes.
    #[must_use]
    pub const fn with_max_open_bytes(mut self, bytes: usize) -> Self {
        self.max_open_bytes = bytes;
        self
    }

    /// Most frames, and most events, waiting to be taken. Default 100,000 (equal frames share their
    /// bytes).
    #[must_use]
    pub const fn with_max_queued(mut self, waiting: usize) -> Self {
        self.max_queued = waiting;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
