//! [`AgentOptions`].

use std::time::SystemTime;

use rpc_core::Secret;
use rpc_core::net::{LinkConfig, QueueConfig};

use crate::auth::Address;
use crate::client::{ClientConfig, Resume, reconnect_policy};

/// The number of unread steps of one run.
const RUN_STEPS: usize = 65_536;
/// The bytes of unread steps of one run: as much as one message may have.
const RUN_BYTES: usize = crate::limits::MAX_CLIENT_MESSAGE;

/// Returns a [`LinkConfig`] with this crate's [reconnects](reconnect_policy) and a connect timeout
/// of 10 s.
#[must_use]
pub fn link_config() -> LinkConfig {
    LinkConfig {
        reconnect: reconnect_policy(),
        ..LinkConfig::default()
    }
}

rpc_core::config! {
    /// The configuration of a connection to an agent, and the state to resume.
    #[derive(Clone, Debug)]
    pub struct AgentOptions {
        /// The machine's configuration.
        pub client: ClientConfig = ClientConfig::default(),
        /// The agent's address, signed into every CONNECT, so that no other host can use the
        /// signature. Newer hosts require it. [`find`](super::find) returns it. Default `None`.
        pub host: Option<Address> = None,
        /// The session and the conversation to resume. Default: new ones.
        pub resume: Resume = Resume::default(),
        /// An invite code, submitted once automatically if the host requires onboarding. Default
        /// `None`.
        pub invite_code: Option<Secret> = None,
        /// The unread steps of a run beyond which the oldest are dropped and counted, whatever its
        /// policy: an unread run must not block its connection. Default 65,536 steps and 64 MiB.
        pub run: QueueConfig = QueueConfig {
            max_items: RUN_STEPS,
            max_bytes: RUN_BYTES,
            ..QueueConfig::default()
        },
        /// Reconnects, dial timeout, queue of events, observer. Default [`link_config`].
        pub link: LinkConfig = link_config(),
        /// Whether prompts may be sent to another machine unencrypted. Default `false`.
        pub insecure_prompts: bool = false,
        /// The wall clock, for signatures; tests can set another one. Default: the system's.
        pub clock: fn() -> SystemTime = rpc_core::net::time::system_now,
    }
}
