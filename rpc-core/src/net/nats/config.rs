//! [`NatsConfig`]: where NATS is, who we are there, and under which prefix.

use std::time::Duration;

use crate::Secret;
use crate::net::tls::TlsConfig;

use super::NatsError;

/// The default of [`NatsConfig::with_prefix`].
const PREFIX: &str = "switchboard";

/// How a program authenticates itself to NATS.
#[derive(Clone, Debug, Default)]
pub(super) enum Credentials {
    #[default]
    None,
    User(String, Secret),
    Token(Secret),
    Nkey(Secret),
}

/// Where NATS is, the credentials, and the prefix of all subjects and names.
///
/// Whoever may publish under the prefix can do everything that a node can: give the nodes a NATS
/// account of their own. They need the subjects `PREFIX.>`, `$JS.API.>` and `$KV.PREFIX_*.>`, to
/// publish and to subscribe.
#[derive(Clone, Debug)]
pub struct NatsConfig {
    pub(super) servers: Vec<String>,
    pub(super) credentials: Credentials,
    pub(super) tls: Option<TlsConfig>,
    pub(super) prefix: String,
    pub(super) timeout: Duration,
    pub(super) replicas: usize,
}

impl NatsConfig {
    /// Creates a configuration for these servers: one or several URLs with commas between them, as
    /// in `nats://10.0.0.1:4222,nats://10.0.0.2:4222`. With `tls://` the connection must be
    /// encrypted. A URL may hold `user:password@` or `token@`.
    #[must_use]
    pub fn new(servers: &str) -> Self {
        let servers = servers.split(',').map(str::trim);
        Self {
            servers: servers
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect(),
            credentials: Credentials::None,
            tls: None,
            prefix: PREFIX.to_owned(),
            timeout: Duration::from_secs(5),
            replicas: 1,
        }
    }

    /// Authenticates with a user and a password.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>, password: impl Into<Secret>) -> Self {
        self.credentials = Credentials::User(user.into(), password.into());
        self
    }

    /// Authenticates with a token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Token(token.into());
        self
    }

    /// Authenticates with the seed of an nkey, which begins with `SU`.
    #[must_use]
    pub fn with_nkey(mut self, seed: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Nkey(seed.into());
        self
    }

    /// Requires TLS, and sets which servers are trusted; a client certificate comes with
    /// [`TlsConfig::from_rustls`]. Default: TLS if the URL or the server asks for it, with the
    /// certificates that the system trusts.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the prefix of all subjects, streams and buckets. Two clusters on one NATS need two.
    /// Letters, digits, `_` and `-`. Default `switchboard`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long the first connection and each request may take. Default 5 s.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets on how many servers of a NATS cluster everything is stored, 1 to 5. Applies to what
    /// does not exist yet. Default 1.
    #[must_use]
    pub const fn with_replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    pub(super) fn check(&self) -> Result<(), NatsError> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if self.prefix.is_empty() || self.prefix.len() > 32 || !self.prefix.bytes().all(is_token) {
            return Err(NatsError::config(
                "the prefix must have 1 to 32 letters, digits, `_` or `-`",
            ));
        }
        if self.servers.is_empty() {
            return Err(NatsError::config("there is no address of a NATS server"));
        }
        Ok(())
    }
}
