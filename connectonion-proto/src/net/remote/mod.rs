//! The client of a remote agent: [`Client`], and the ways to connect it.

mod agent;
mod event;
#[cfg(feature = "ws")]
mod find;
mod human;
mod options;
mod protocol;
mod question;
mod questions;
mod run;
mod session;
#[cfg(feature = "ws")]
mod url;

use std::sync::Arc;

use rpc_core::net::Dialer;

pub use agent::Client;
pub use event::Event;
#[cfg(feature = "ws")]
pub use find::{FindError, Found, find, find_with, look_up, look_up_with};
pub use human::{DeclineAll, Human};
pub use options::{AgentOptions, link_config};
pub use protocol::ClientProtocol;
pub use question::Question;
pub use rpc_core::net::Connection;
pub use run::{Run, RunEvent};
#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, dialer};

use crate::client::Sign;
use protocol::RequestSigner;
use session::ClientSession;

/// A client's events besides its runs: [`Event`]s and changes of the link's state, in order and
/// bounded.
pub type Events = rpc_core::net::Events<Event>;

/// Connects through any dialer: in memory, through a proxy, with your own TLS. The caller must
/// ensure that the connection is safe for prompts.
#[must_use]
pub fn connect_with<D: Dialer>(
    dialer: D,
    identity: impl Sign,
    options: AgentOptions,
) -> (Client, Events, Connection) {
    let AgentOptions {
        client,
        host,
        resume,
        invite_code,
        run,
        link: link_config,
        clock,
        ..
    } = options;
    let session = Arc::new(ClientSession::new(resume, run, client.limits.clone()));
    let signer = RequestSigner::new(Arc::new(identity), host, clock);
    let config = Arc::new(client.with_session_sync(true));
    let side = ClientProtocol::new(config, signer.clone(), Arc::clone(&session), invite_code);
    let (link, events, connection) = rpc_core::net::open(side, dialer, link_config);
    session.attach(link.downgrade());
    (Client::new(link, session, signer), events, connection)
}
