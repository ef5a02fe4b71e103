//! [`Context`]: what a handler gets besides the message.

use std::sync::Arc;

use rpc_core::net::Cancellation;

use super::config::PluginConfig;
use crate::frame::Registration;
use crate::net::Client;

/// The state that all handlers of a plugin share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) config: PluginConfig,
    pub(super) cancellation: Cancellation,
}

/// The context of a handler: the client, and a signal to finish. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

impl Context {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns the client, for responses to stored ids.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns the plugin's registration.
    #[must_use]
    pub fn registration(&self) -> &Registration {
        &self.shared.config.client.registration
    }

    /// Returns the signal that the plugin shuts down: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.shared.cancellation.clone()
    }
}

rpc_core::debug_fields!([] Context, this => { name: this.registration().name });
