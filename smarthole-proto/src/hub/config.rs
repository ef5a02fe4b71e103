//! [`HubConfig`]: timeouts and limits of a hub.

use std::time::Duration;

use rpc_core::Limits;

use crate::limits::{HISTORY, RESPONSE_TIMEOUT, ROUTING_LIMIT, defaults};

rpc_core::config! {
    /// How a hub routes, and its limits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use smarthole_proto::hub::HubConfig;
    ///
    /// let config = HubConfig { response_timeout: Duration::from_secs(5), ..HubConfig::default() };
    /// assert_eq!(config.routing_limit, 3);
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HubConfig {
        /// How long a client may take for its first response to a message. Default 30 s.
        pub response_timeout: Duration = RESPONSE_TIMEOUT,
        /// Most clients, one after the other, that a message is routed to while each rejects it.
        /// Default 3; 0 counts as 1.
        pub routing_limit: u32 = ROUTING_LIMIT,
        /// Whether a message that the user sent to a certain client goes to the router, with its
        /// prefix, when that client rejects it. Default no: the user chose.
        pub reroute_direct: bool = false,
        /// How many ended deliveries are remembered, so that late and further responses to them are
        /// understood. Default 100.
        pub max_history: usize = HISTORY,
        /// Most bytes of text in open messages. Default 64 MiB; a single longer text passes.
        pub max_open_bytes: usize = 64 * 1024 * 1024,
        /// Most frames, and most events, waiting to be taken. Default 100,000 (equal frames share their
        /// bytes).
        pub max_queued: usize = 100_000,
        /// The limits of a connection; only the size of a message matters here.
        pub limits: Limits = defaults(),
    }
}
