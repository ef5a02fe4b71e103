//! [`Context`]: what a handler works with.

use std::fmt;
use std::sync::Arc;

use rpc_core::net::Cancellation;

use super::config::PluginConfig;
use super::handler::Handler;
use crate::frame::Registration;
use crate::net::Client;

/// What all handlers of a plugin share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) config: PluginConfig,
    pub(super) cancellation: Cancellation,
    pub(super) handler: Box<dyn Handler>,
}

/// What a handler works with besides the message: the client, and a signal that says when to finish.
/// Cheap to clone.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

impl Context {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The client, for responses to ids that were kept from earlier.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// What the plugin says of itself.
    #[must_use]
    pub fn registration(&self) -> &Registration {
        self.shared.config.client.registration()
    }

    /// Given when the plugin wants to end: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.shared.cancellation.clone()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.registration().name)
            .finish_non_exhaustive()
    }
}
