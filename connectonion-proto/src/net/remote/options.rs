//! [`AgentOptions`].

use std::fmt;
use std::time::{Duration, SystemTime};

use rpc_core::Secret;
use rpc_core::net::{LagPolicy, LinkConfig, QueueConfig};

use crate::auth::Address;
use crate::client::{ClientConfig, Resume, reconnect_policy};

/// Steps of one run that may wait to be taken.
const RUN_STEPS: usize = 65_536;
/// Bytes of one run that may wait to be taken: as much as one message may have.
const RUN_BYTES: usize = crate::limits::MAX_CLIENT_MESSAGE;
/// How long a dial may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// A [`LinkConfig`] with this crate's [reconnects](reconnect_policy) and a connect timeout of 10 s.
#[must_use]
pub fn link_config() -> LinkConfig {
    LinkConfig::default()
        .with_reconnect(reconnect_policy())
        .with_connect_timeout(DIAL_TIMEOUT)
}

/// How an agent is reached, and where the conversation goes on.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentOptions {
    /// The machine's configuration. `session_sync` events are taken in and not passed on: the latest
    /// is [`live_session`](super::RemoteAgent::live_session).
    pub client: ClientConfig,
    /// Whose agent it is: signed into every CONNECT, so that no other host can use it. Newer hosts
    /// insist on it. [`find`](super::find) learns it. Default `None`.
    pub host: Option<Address>,
    /// The session and the conversation to go on with. Default: new ones.
    pub resume: Resume,
    /// Offered once by itself if the host has a gate. Default `None`.
    pub invite_code: Option<Secret>,
    /// How much of a run may wait to be taken before the oldest steps are dropped and counted.
    /// Default 65,536 steps and 64 MiB.
    pub run: QueueConfig,
    /// Reconnects, dial timeout, the queue of events, the observer. Default [`link_config`].
    pub link: LinkConfig,
    /// Whether prompts may go to another machine without encryption. Default no.
    pub insecure_prompts: bool,
    /// The wall clock, for signatures. Default: the system's.
    pub clock: fn() -> SystemTime,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            client: ClientConfig::new(),
            host: None,
            resume: Resume::default(),
            invite_code: None,
            run: QueueConfig::default()
                .with_max_items(RUN_STEPS)
                .with_max_bytes(RUN_BYTES)
                .with_policy(LagPolicy::DropOldest),
            link: link_config(),
            insecure_prompts: false,
            clock: SystemTime::now,
        }
    }
}

impl AgentOptions {
    /// Sets [`client`](Self::client).
    #[must_use]
    pub fn with_client(mut self, config: ClientConfig) -> Self {
        self.client = config;
        self
    }

    /// Sets [`host`](Self::host).
    #[must_use]
    pub const fn with_host(mut self, address: Address) -> Self {
        self.host = Some(address);
        self
    }

    /// Sets [`resume`](Self::resume).
    #[must_use]
    pub fn with_resume(mut self, resume: Resume) -> Self {
        self.resume = resume;
        self
    }

    /// Sets [`invite_code`](Self::invite_code).
    #[must_use]
    pub fn with_invite_code(mut self, code: impl Into<Secret>) -> Self {
        self.invite_code = Some(code.into());
        self
    }

    /// Sets [`run`](Self::run). Whatever its policy, what is full drops the oldest steps: a run that
    /// is not taken must not hold up its connection.
    #[must_use]
    pub fn with_run(mut self, queue: QueueConfig) -> Self {
        self.run = queue.with_policy(LagPolicy::DropOldest);
        self
    }

    /// Sets [`link`](Self::link).
    #[must_use]
    pub fn with_link(mut self, config: LinkConfig) -> Self {
        self.link = config;
        self
    }

    /// Sets [`insecure_prompts`](Self::insecure_prompts).
    #[must_use]
    pub const fn with_insecure_prompts(mut self, allowed: bool) -> Self {
        self.insecure_prompts = allowed;
        self
    }

    /// Sets [`clock`](Self::clock): for tests that repeat.
    #[must_use]
    pub const fn with_clock(mut self, clock: fn() -> SystemTime) -> Self {
        self.clock = clock;
        self
    }
}

/// Prints no invite code and nothing of the conversation.
impl fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("client", &self.client)
            .field("host", &self.host)
            .field("session_id", &self.resume.session_id)
            .field("invite_code", &self.invite_code.is_some())
            .field("run", &self.run)
            .field("link", &self.link)
            .field("insecure_prompts", &self.insecure_prompts)
            .finish_non_exhaustive()
    }
}
