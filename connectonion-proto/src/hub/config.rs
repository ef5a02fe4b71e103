//! [`HubConfig`]: lifetimes and bounds.

use std::time::Duration;

use crate::limits::{MAX_CLIENT_MESSAGE, RESULT_TTL};
use crate::replay::LogLimits;

rpc_core::config! {
    /// The lifetimes of the sessions of a host, and their bounds.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HubConfig {
        /// How long a session without a run lives while its sockets are silent and send not even a
        /// PONG. Default 10 min.
        pub idle_timeout: Duration = Duration::from_secs(10 * 60),
        /// How long a session lives without a run and without a socket. Default 10 min.
        pub grace: Duration = Duration::from_secs(10 * 60),
        /// How long a run may go without an event of the agent and without a frame of a client.
        /// Default 1 h.
        pub stuck_timeout: Duration = Duration::from_secs(60 * 60),
        /// The largest number of sessions. Beyond it, a new session replaces the one that has been
        /// without a socket longest. Default 16,384.
        pub max_sessions: usize = 16_384,
        /// The largest number of concurrent runs. Default 4,096.
        pub max_running: usize = 4_096,
        /// The largest number of sockets of one session. Default 64.
        pub max_sockets: usize = 64,
        /// The bounds on the events held for one session.
        pub log: LogLimits = LogLimits::default(),
        /// The largest size of the events of all sessions in bytes. Beyond it, the session that
        /// adds an event drops its oldest ones. Default 512 MiB.
        pub max_log_bytes: usize = 512 * 1024 * 1024,
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
        /// client comes back, or when another host takes over. What the agent
        /// did before the end, it may do twice, and it starts from the prompt; a prompt that ends
        /// every host is given up. Default 0: the client gets the prompt back with the conversation,
        /// unanswered.
        pub max_reruns: u32 = 0,
        /// Whether the events of runs are stored, so that they outlive the host, within the bounds of
        /// a session's [log](Self::log). Default no; yes in a cluster.
        #[doc(hidden)]
        pub store_events: bool = false,
        /// How long to wait before what was not stored is stored again.
        /// Default 5 s.
        pub store_again: Duration = Duration::from_secs(5),
        /// The largest conversation in bytes, with the prompts that wait to become a part of it. What
        /// would exceed it is refused. Default 16 MiB.
        pub max_session_bytes: usize = 16 * 1024 * 1024,
        /// The bytes of conversations in memory; those from one address, if it is known, a quarter. Beyond it
        /// the largest ones without a run leave the memory, and are read from the store when they are
        /// needed; a client whose conversation is not stored has to connect again. What has no room then is
        /// refused. A quarter is in reserve for what has at most 64 KiB. Default 256 MiB.
        pub max_held_bytes: usize = 256 * 1024 * 1024,
    }
}
