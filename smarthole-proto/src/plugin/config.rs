//! [`PluginConfig`].

use std::time::Duration;

use rpc_core::net::LinkConfig;

use crate::client::ClientConfig;
use crate::error::RegistrationError;
use crate::frame::Registration;
use crate::net::link_config;

/// Who a plugin is and how it behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PluginConfig {
    /// Registration, timeouts and limits of each connection.
    pub client: ClientConfig,
    /// Reconnects, connect timeout and event queue. Default: [`link_config`]'s, with at most 1,024
    /// events of which the oldest are dropped; a message among them is rejected.
    pub link: LinkConfig,
    pub(crate) max_handlers: usize,
    pub(crate) ack_on_receipt: bool,
    pub(crate) shutdown_timeout: Duration,
}

impl PluginConfig {
    /// A plugin that registers like this; everything else by default.
    ///
    /// # Errors
    /// [`RegistrationError`] with the code with which a server would refuse it.
    pub fn new(registration: Registration) -> Result<Self, RegistrationError> {
        Ok(Self {
            client: ClientConfig::new(registration)?,
            link: link_config(),
            max_handlers: 16,
            ack_on_receipt: false,
            shutdown_timeout: Duration::from_secs(5),
        })
    }

    /// Sets [`client`](Self::client).
    #[must_use]
    pub fn with_client(mut self, client: ClientConfig) -> Self {
        self.client = client;
        self
    }

    /// Sets [`link`](Self::link).
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// Most handlers at work at once; further messages wait, and their 30 s go on; at least
    /// 1. Default 16.
    #[must_use]
    pub const fn with_max_handlers(mut self, handlers: usize) -> Self {
        self.max_handlers = if handlers == 0 { 1 } else { handlers };
        self
    }

    /// Whether a message is acknowledged as soon as its handler starts, for handlers that always need
    /// longer than the router waits. A failure that comes later is then no longer the router's
    /// business: a handler that wants the message re-routed has to reject it itself. Default no.
    #[must_use]
    pub const fn with_ack_on_receipt(mut self, ack: bool) -> Self {
        self.ack_on_receipt = ack;
        self
    }

    /// How long handlers may go on after the shutdown was asked for. Default 5 s.
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }
}
