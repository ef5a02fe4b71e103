//! Level 3: a client over any transport (feature `tokio`) and over WebSockets (`ws`), and a host for
//! an [`Agent`] (`auth` over any transport, `server` on a socket).
//!
//! [`connect_with`], over WebSockets `connect`, gives a [`RemoteAgent`] for prompts, the [`Events`],
//! and the [`Connection`], whose [`run`](Connection::run) *you* spawn. What a prompt leads to is a
//! [`Run`], which survives reconnects. No prompt is ever sent twice.
//!
//! A [`Desk`] is a [`Hub`](crate::hub::Hub) that many tasks share: clients are served on any
//! transport, agents are run, sessions stored. `Host` puts it on a socket.

#[cfg(feature = "auth")]
mod desk;
mod remote;
#[cfg(feature = "server")]
mod serve;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use desk::{Agent, AgentError, Desk, DeskOptions, Payments, Prompt, Reply, ServerSide, Turn};
pub use remote::{
    AgentOptions, Ask, ClientSide, Connection, Event, Events, Human, Nobody, RemoteAgent, Run,
    RunEvent, connect_with,
};
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub use remote::{ConnectError, FindError, Found, connect, dialer, find, look_up};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{Host, HostHandle, HostOptions, http_config};

/// The client's handle under the name that it has in every protocol.
pub type Client = RemoteAgent;
