//! [`HubConfig`].

use std::time::Duration;

use crate::limits::{MAX_CLIENT_MESSAGE, RESULT_TTL};
use crate::session::RegistryConfig;

const STORE_AGAIN: Duration = Duration::from_secs(5);

rpc_core::config! {
    /// The configuration of a [`Hub`](super::Hub).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HubConfig {
        /// The lifetimes, the number and the limits of sessions.
        pub registry: RegistryConfig = RegistryConfig::default(),
        /// The largest event or OUTPUT in bytes: no more than a connection
        /// [sends](crate::server::ServerConfig::max_sent_bytes). A larger OUTPUT is sent without
        /// the session's trace, then without the session. Default 64 MiB.
        pub max_output_bytes: usize = MAX_CLIENT_MESSAGE,
        /// Bytes of events that a session's trace keeps of one run; the oldest are dropped first.
        /// Default 1 MiB.
        pub max_trace_bytes: usize = 1024 * 1024,
        /// How long a stored session is kept after its last run. Default 24 h.
        pub result_ttl: Duration = RESULT_TTL,
        /// How often a prompt whose run was interrupted by the end of its host is run again: when its
        /// client comes back, or when another host [takes over](super::Hub::recover). What the agent
        /// did before the end, it may do twice, and it starts from the prompt; a prompt that ends
        /// every host is given up. Default 0: the client gets the prompt back with the conversation,
        /// unanswered.
        pub max_reruns: u32 = 0 => with_max_reruns,
        /// Whether the events of runs are stored, so that they outlive the host, within the bounds of
        /// a session's [log](RegistryConfig::log). Default no; a runtime does it if its storage
        /// [keeps](crate::storage::Storage::keeps_events) them.
        pub store_events: bool = false,
        /// How long to wait before what was not stored is [stored again](super::Hub::store_again).
        /// Default 5 s.
        pub store_again: Duration = STORE_AGAIN,
        /// The largest conversation in bytes, with the prompts that wait to become a part of it. What
        /// would exceed it is refused. Default 16 MiB.
        pub max_session_bytes: usize = 16 * 1024 * 1024,
        /// The largest size of the conversations of one owner that have connections or a running agent,
        /// in bytes; all unsigned callers are one. What would exceed it is refused. Default 64 MiB.
        pub max_owner_bytes: usize = 64 * 1024 * 1024,
        /// The same for all owners together. Default 256 MiB.
        pub max_held_bytes: usize = 256 * 1024 * 1024,
        /// The largest number of prompts of one session that wait to be stored. Default 64.
        pub max_intake: usize = 64,
    }
}
