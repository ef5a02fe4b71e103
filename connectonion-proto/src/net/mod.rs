//! Level 3: a client over any transport (feature `tokio`) and over WebSockets (`ws`), and the host
//! (`server`).
//!
//! [`connect_with`], over WebSockets `connect`, gives a [`RemoteAgent`] for prompts, the [`Events`],
//! and the [`Connection`], whose [`run`](Connection::run) *you* spawn. What a prompt leads to is a
//! [`Run`], which survives reconnects. No prompt is ever sent twice.

mod remote;

pub use remote::{
    AgentOptions, Ask, ClientSide, Connection, Event, Events, Human, Nobody, RemoteAgent, Run,
    RunEvent, connect_with,
};
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub use remote::{ConnectError, FindError, Found, connect, dialer, find, look_up};

/// The client's handle under the name that it has in every protocol.
pub type Client = RemoteAgent;
