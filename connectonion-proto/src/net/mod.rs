//! Level 3: a client over any transport (feature `tokio`) and over WebSockets (`ws`), and a host for
//! an [`Agent`] (`server`), on a socket and over any transport.
//!
//! [`connect_with`], over WebSockets `connect`, returns a [`Client`] for prompts, the [`Events`],
//! and the [`Connection`], whose [`run`](Connection::run) *you* spawn. A prompt becomes a [`Run`],
//! which survives reconnects. No prompt is ever sent twice.
//!
//! # Runs that this program has not started
//!
//! A session belongs to a person, who may have several devices, and a run goes on without a
//! connection. So there may be steps and ends of runs that no [`Run`] of this program represents:
//!
//! - A restarted program calls [`attach`](Client::attach) before it lets the connection run, or at
//!   [`ClientEvent::Connected`]. The [`Run`] is the one in which the session is found, with everything
//!   after the last event shown. The conversation in [`ClientEvent::Connected`] has the results of
//!   runs that ended meanwhile.
//! - Events without a [`Run`] that listens are [`ClientEvent::Step`] and [`ClientEvent::RunEnded`],
//!   also between two runs (a change of mode). Show these like your own, or call
//!   [`attach`](Client::attach) at the first one to get the rest as a [`Run`]. Answer a question
//!   among them by its id, with [`respond`](Client::respond).
//!
//! [`ClientEvent::Connected`]: crate::client::ClientEvent::Connected
//! [`ClientEvent::Step`]: crate::client::ClientEvent::Step
//! [`ClientEvent::RunEnded`]: crate::client::ClientEvent::RunEnded
//!
//! A [`HostRuntime`] has the [sessions](crate::session) of a host: it serves clients on any transport,
//! runs agents, and stores sessions. `Server` adds a socket.

#[cfg(feature = "server")]
pub mod cluster;
mod remote;
#[cfg(feature = "server")]
mod runtime;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
pub(crate) mod sessions;

#[cfg(feature = "server")]
pub use crate::hub::{AppError, Prompt};
#[doc(hidden)]
pub use remote::ClientProtocol;
#[cfg(feature = "ws")]
pub use remote::{
    AgentEndpoint, ConnectError, FindError, connect, connect_lazy, dialer, find, find_with, look_up,
};
pub use remote::{Client, Connection, Events, Human, Question, Run, RunEvent, connect_with};
#[cfg(feature = "server")]
pub use rpc_core::net::server::ServerHandle;
#[cfg(feature = "server")]
pub use runtime::{Agent, DynAgent, HostRuntime, Reply, RuntimeOptions, Turn, agent_fn};
#[cfg(feature = "server")]
pub use serve::{Server, ServerOptions, http_config};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "connectonion";

/// Returns 128 random bits that no one can guess.
fn random() -> u128 {
    u128::from(rpc_core::net::entropy()) << 64 | u128::from(rpc_core::net::entropy())
}
