//! [`NatsConfig`]: where NATS is, who we are there, and under which prefix.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;

use crate::net::tls::TlsConfig;
use crate::{Secret, timestamp};

use crate::store::StoreError;

/// The default of [`NatsConfig::prefix`].
const PREFIX: &str = "switchboard";
/// The least `max_payload` of a server: no value that is written whole is larger.
const MIN_PAYLOAD: usize = 64 * 1024;

/// How a program authenticates itself to NATS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Credentials {
    #[default]
    None,
    User(String, Secret),
    Token(Secret),
    Nkey(Secret),
    /// The content of a `.creds` file.
    Creds(Secret),
    /// Two addresses have different ones.
    Contradictory,
}

/// Where NATS is, the credentials, and the prefix of all subjects and names.
///
/// The server needs JetStream, and has to accept messages of 64 KiB (`max_payload`); its default is 1 MiB.
///
/// # Permissions
///
/// A client that may publish under the prefix can do everything that a node can: give the nodes a NATS
/// account of their own. They need to subscribe to `PREFIX.>`, and to publish to `PREFIX.>`,
/// `$JS.API.>` and `$JS.FC.>` (without it long watches stop halfway). What is not permitted fails with
/// [`StoreError::Denied`] and is logged as a warning.
///
/// # What a server may lose
///
/// A server that is killed and started again has all that it acknowledged. If its *machine* loses power, a
/// server without [`replicas`](Self::replicas) may have lost what it acknowledged since it last wrote to disk:
/// `sync_interval` in its configuration, 2 min by default. Nothing is lost with
///
/// ```text
/// jetstream { sync_interval: always }
/// ```
///
/// (NATS 2.10 or newer; each write then waits for the disk), or with 3 replicas on machines that do not lose
/// power together.
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// Without credentials.
    pub(super) servers: Vec<String>,
    pub(super) credentials: Credentials,
    /// Requires TLS, and says which servers are trusted; a client certificate comes with
    /// [`TlsConfig::from_rustls`]. Default `None`: TLS if the URL or the server asks for it, with the
    /// certificates that the system trusts.
    pub tls: Option<TlsConfig>,
    /// The prefix of all subjects and streams. Two clusters on one NATS need two. 1 to 32 letters, digits, `_`
    /// and `-`. Default `switchboard`.
    pub prefix: String,
    /// How long the first connection and each request may take. Default 5 s.
    pub timeout: Duration,
    /// On how many servers of a NATS cluster everything is stored, 1 to 5. Applies to what does not exist yet.
    /// Default 1.
    pub replicas: usize,
}

impl NatsConfig {
    /// Creates a configuration for these servers: one or several URLs with commas between them, as
    /// in `nats://10.0.0.1:4222,nats://10.0.0.2:4222`. With `tls://` the connection must be
    /// encrypted. A URL may hold `user:password@` or `token@`, in which `%2C` is a comma. They count
    /// for all servers, unless one of the methods below sets others.
    #[must_use]
    pub fn new(servers: &str) -> Self {
        let mut config = Self {
            servers: Vec::new(),
            credentials: Credentials::None,
            tls: None,
            prefix: PREFIX.to_owned(),
            timeout: Duration::from_secs(5),
            replicas: 1,
        };
        for url in servers.split(',').map(str::trim) {
            let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
            let (login, host) = rest.rsplit_once('@').unwrap_or(("", rest));
            if !host.is_empty() {
                config.servers.push(format!("{scheme}://{host}"));
            }
            let found = match login.split_once(':') {
                _ if login.is_empty() => continue,
                Some((user, password)) => {
                    Credentials::User(decoded(user), decoded(password).into())
                }
                None => Credentials::Token(decoded(login).into()),
            };
            config.credentials = match config.credentials {
                Credentials::None => found,
                known if known == found => known,
                _ => Credentials::Contradictory,
            };
        }
        config
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

    /// Authenticates with the content of a `.creds` file: a JWT, and the seed of its nkey.
    ///
    /// # Errors
    /// [`StoreError::Config`] if one of them is missing or damaged, or if the JWT has expired.
    pub fn with_creds(mut self, content: impl Into<Secret>) -> Result<Self, StoreError> {
        let content = content.into();
        // The first error says what is missing, and no secret.
        async_nats::ConnectOptions::with_credentials(content.expose())
            .map_err(StoreError::config)?;
        // NATS would refuse it without a word about the time.
        if let Some(end) = expiry(content.expose()).filter(|end| *end <= SystemTime::now()) {
            let end = timestamp::format(end);
            return Err(StoreError::config(format_args!(
                "the JWT has expired at {end}: get a new one"
            )));
        }
        self.credentials = Credentials::Creds(content);
        Ok(self)
    }

    /// Refuses a server that accepts too short messages.
    pub(super) fn check_payload(max: usize) -> Result<(), StoreError> {
        if max >= MIN_PAYLOAD {
            return Ok(());
        }
        Err(StoreError::config(format_args!(
            "NATS accepts messages of {max} bytes at most: set its max_payload to {MIN_PAYLOAD} or more"
        )))
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if self.prefix.is_empty() || self.prefix.len() > 32 || !self.prefix.bytes().all(is_token) {
            return Err(StoreError::config(
                "the prefix must have 1 to 32 letters, digits, `_` or `-`",
            ));
        }
        if self.servers.is_empty() {
            return Err(StoreError::config("there is no address of a NATS server"));
        }
        if self.credentials == Credentials::Contradictory {
            return Err(StoreError::config(
                "the addresses of NATS have different credentials",
            ));
        }
        Ok(())
    }
}

/// When the JWT of a `.creds` file expires, if it does and says so.
fn expiry(creds: &str) -> Option<SystemTime> {
    let claims = creds.lines().find_map(|line| line.trim().split('.').nth(1));
    let claims = URL_SAFE_NO_PAD.decode(claims?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let seconds = claims["exp"].as_u64().filter(|seconds| *seconds > 0)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// A part of a URL without its `%XX`. What does not decode to text stands for itself.
fn decoded(text: &str) -> String {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.unwrap_or(text.into()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(servers: &str) -> Credentials {
        NatsConfig::new(servers).credentials
    }

    #[test]
    fn an_address_may_hold_a_user_with_a_password_or_a_token() {
        let ann = |password: &str| Credentials::User("ann".to_owned(), password.into());
        for (servers, expected) in [
            ("nats://a", Credentials::None),
            ("nats://@a", Credentials::None),
            ("nats://ann:x@a", ann("x")),
            ("ann:x@a:4222", ann("x")),
            ("tls://ann:@a", ann("")),
            ("nats://ann:%2C%40%3a%C3%A9%@a", ann(",@:é%")),
            ("nats://ann:%FF@a", ann("%FF")),
            ("nats://ann:p@s/w:d@a", ann("p@s/w:d")),
            ("nats://sesame@a", Credentials::Token("sesame".into())),
            ("nats://a,nats://ann:x@b,nats://ann:x@c", ann("x")),
            ("nats://ann:x@a,nats://ann:y@b", Credentials::Contradictory),
        ] {
            assert_eq!(credentials(servers), expected, "{servers}");
        }
        let config = NatsConfig::new("nats://ann:wonder@a, wonder@b:1,");
        assert_eq!(config.servers, ["nats://a", "nats://b:1"]);
        assert!(!format!("{config:?}").contains("wonder"));
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("different credentials"), "{error}");
        config.with_token("other").check().unwrap();
    }
}
