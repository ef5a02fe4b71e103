//! [`RegistryConfig`]: lifetimes and bounds.

use std::time::Duration;

use super::run::RunLimits;
use crate::limits::{GRACE, IDLE_TIMEOUT, STUCK_TIMEOUT};
use crate::replay::LogLimits;

rpc_core::config! {
    /// The lifetimes of sessions, and the bounds of a registry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RegistryConfig {
        /// How long a session without a run lives while its sockets are silent and send not even a
        /// PONG. Default 10 min.
        pub idle_timeout: Duration = IDLE_TIMEOUT,
        /// How long a session lives without a run and without a socket. Default 10 min.
        pub grace: Duration = GRACE,
        /// How long a run may go without an event of the agent and without a frame of a client.
        /// Default 1 h.
        pub stuck_timeout: Duration = STUCK_TIMEOUT,
        /// The largest number of sessions. Beyond it, a new session replaces the one that has been
        /// without a socket longest. Default 16,384.
        pub max_sessions: usize = 16_384,
        /// The largest number of concurrent runs. Default 4,096.
        pub max_running: usize = 4_096,
        /// The largest number of sockets of one session. Default 64.
        pub max_sockets: usize = 64,
        /// The bounds on the inputs and questions of one run.
        pub run: RunLimits = RunLimits::default(),
        /// The bounds on the events held for one session.
        pub log: LogLimits = LogLimits::default(),
        /// The largest size of the events of all sessions in bytes. Beyond it, the session that
        /// adds an event drops its oldest ones. Default 512 MiB.
        pub max_log_bytes: usize = 512 * 1024 * 1024,
    }
}
