//! Level 3: a client over any transport (feature `tokio`) and over WebSockets (`ws`), and a host for
//! an [`Agent`] (`auth` over any transport, `server` on a socket).
//!
//! [`connect_with`], over WebSockets `connect`, gives a [`Client`] for prompts, the [`Events`],
//! and the [`Connection`], whose [`run`](Connection::run) *you* spawn. What a prompt leads to is a
//! [`Run`], which survives reconnects. No prompt is ever sent twice.
//!
//! # Runs that this program has not started
//!
//! A session belongs to a person, who may have several devices, and a run goes on while nobody is
//! connected. So steps and ends may come of runs that no [`Run`] of this program stands for:
//!
//! - A program that was started anew calls [`attach`](Client::attach) *before* it lets the
//!   connection run. The [`Run`] is the one in which the session is found, with everything that came
//!   after the last event that was shown; it ends with [`Refused::UnknownId`](rpc_core::Refused) if there
//!   is none. What ended meanwhile is in the conversation of [`Event::Connected`].
//! - Whatever no [`Run`] listens to is told as [`Event::Step`] and [`Event::RunEnded`], between two runs
//!   too (a change of mode). Show these like your own, or call [`follow`](Client::follow) at the
//!   first one to get the rest as a [`Run`]. A question among them is answered by its id, with
//!   [`respond`](Client::respond).
//!
//! A [`HostRuntime`] is a [`Hub`](crate::hub::Hub) that many tasks share: clients are served on any
//! transport, agents are run, sessions stored. `Server` puts it on a socket.

mod remote;
#[cfg(feature = "auth")]
mod runtime;
#[cfg(feature = "server")]
mod serve;

pub use remote::{
    AgentOptions, Client, ClientProtocol, Connection, DeclineAll, Event, Events, Human, Question,
    Run, RunEvent, connect_with, link_config,
};
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub use remote::{ConnectError, FindError, Found, connect, dialer, find, look_up};
#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use runtime::{Agent, AgentError, HostRuntime, Payments, Prompt, Reply, RuntimeOptions, Turn};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{Server, ServerHandle, ServerOptions, http_config};
