//! Level 3: a host for an [`Agent`] over any transport (features `tokio` and `auth`), and on a socket
//! (`server`).
//!
//! A [`Desk`] is a [`Hub`](crate::hub::Hub) that many tasks share: clients are served on any
//! transport, agents are run, sessions stored.

#[cfg(feature = "auth")]
mod desk;
#[cfg(feature = "server")]
mod serve;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use desk::{
    Agent, AgentError, Desk, DeskOptions, Payments, Prompt, Reply, ServerSide, Turn,
};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{Host, HostHandle, HostOptions, http_config};
