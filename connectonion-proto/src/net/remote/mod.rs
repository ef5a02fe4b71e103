//! The client of a remote agent: [`Client`], and the ways to connect it.

mod agent;
#[cfg(feature = "ws")]
mod find;
mod human;
mod protocol;
mod question;
mod run;
mod signer;
#[cfg(feature = "ws")]
mod url;

use std::sync::Arc;

use rpc_core::net::Dialer;

pub use agent::Client;
#[cfg(feature = "ws")]
pub use find::{AgentEndpoint, FindError, find, find_with, look_up};
pub use human::Human;
pub use protocol::ClientProtocol;
pub use question::Question;
pub use rpc_core::net::Connection;
pub use run::{Run, RunEvent};
#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, connect_lazy, dialer};

use crate::client::{ClientConfig, ClientEvent, ClientSession, Sign};
use protocol::Shared;
use signer::RequestSigner;

/// A client's events besides its runs: [`ClientEvent`]s, in order and bounded. A step is one that no [`Run`] listens to: another device has started its run, or the
/// `Run` was dropped, or it is a change between two runs. [`Client::attach`] takes those of
/// the current run that wait here into its [`Run`].
pub type Events = rpc_core::net::Events<ClientEvent>;

/// Creates a client over any dialer: in memory, through a proxy, with your own TLS. The caller must
/// ensure that the connection is safe for prompts.
/// [`establish`](Connection::establish) of the connection makes the first attempt, and says why if it fails.
pub fn connect_with<D: Dialer>(
    dialer: D,
    identity: impl Sign,
    config: impl Into<Arc<ClientConfig>>,
) -> (Client, Events, Connection) {
    let config = config.into();
    let signer = RequestSigner {
        identity: Arc::new(identity),
        host: config.host,
        clock: config.clock,
    };
    let session = ClientSession::new(Arc::clone(&config), config.resume.clone());
    let shared = Arc::new(Shared::new(session, config.run.clone()));
    let link = config.link.clone();
    let side = ClientProtocol {
        invite_code: config.invite_code.clone(),
        config,
        signer: signer.clone(),
        shared: Arc::clone(&shared),
        offer: false,
        offered: None,
        connect_wanted: false,
    };
    let (link, events, connection) = rpc_core::net::open(side, dialer, link);
    shared.attach(link.downgrade());
    let client = Client {
        link,
        shared,
        signer,
    };
    (client, events, connection)
}
