//! [`PluginConfig`].

use std::time::Duration;

use crate::client::ClientConfig;
use crate::error::RegistrationError;
use crate::frame::Registration;

rpc_core::config! {
    /// The configuration of a plugin.
    ///
    /// ```
    /// use smarthole_proto::frame::Registration;
    /// use smarthole_proto::plugin::PluginConfig;
    ///
    /// let registration = Registration::new("notes", "I keep notes.");
    /// let config = PluginConfig { max_handlers: 4, ..PluginConfig::new(registration)? };
    /// # Ok::<(), smarthole_proto::error::RegistrationError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct PluginConfig {
        /// Registration, timeouts, limits, reconnects and the event queue of each connection.
        pub client: ClientConfig = client,
        /// Most handlers at once; further messages wait, and their 30 s go on. Default 16; 0 counts
        /// as 1.
        pub max_handlers: usize = 16,
        /// How long handlers may go on after the shutdown was requested. Default 5 s.
        pub shutdown_timeout: Duration = Duration::from_secs(5),
    }
    fn for_client(client: ClientConfig);
}

impl PluginConfig {
    /// Creates a configuration with this registration and defaults.
    ///
    /// # Errors
    /// [`RegistrationError`] with the code that a server would refuse it with.
    pub fn new(registration: Registration) -> Result<Self, RegistrationError> {
        Ok(Self::for_client(ClientConfig::new(registration)?))
    }
}
