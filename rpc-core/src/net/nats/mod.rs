//! [`Nats`]: a cluster's [`Store`](crate::cluster::Store) on NATS with JetStream.

mod config;
mod error;
mod violations;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{Context, ContextBuilder, PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{self, RawMessageError, RawMessageErrorKind, Stream};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use bytes::Bytes;
use tokio::sync::{Mutex, watch};

use super::entropy;
use crate::Str;

use config::Credentials;
pub use config::NatsConfig;
pub use error::NatsError;
use violations::Violations;

/// A connection to NATS, as one node of a cluster. Cheap to clone.
///
/// It reconnects by itself. Meanwhile requests wait, up to the
/// [timeout](NatsConfig::with_timeout).
#[derive(Clone)]
pub struct Nats {
    shared: Arc<Shared>,
    node: Str,
}

struct Shared {
    client: Client,
    jetstream: Context,
    prefix: String,
    replicas: usize,
    timeout: Duration,
    gap_count: watch::Receiver<u64>,
    violations: Violations,
    /// The streams that were opened, those of buckets among them: what is gone is made again.
    opened: Mutex<Vec<stream::Config>>,
}

/// What must hold for a message to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect<'a> {
    /// The id of the message. A second one with the same id within the stream's window is not
    /// stored again.
    pub id: Option<&'a str>,
    /// The sequence of the last message with this subject; 0 for none. With another one there, the
    /// publish fails with [`NatsError::Conflict`].
    pub last_subject_sequence: Option<u64>,
}

/// A message that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its sequence in the stream; of the first one, if it is a duplicate.
    pub sequence: u64,
    /// Whether a message with the same id was there already.
    pub is_duplicate: bool,
}

impl Nats {
    /// Connects to the first server that answers, under a new node id.
    ///
    /// # Errors
    /// [`NatsError::Config`], also if the server accepts too short messages; [`NatsError::Denied`]; and
    /// [`NatsError::Unavailable`] if no server answers in time; retrying that is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn connect(config: NatsConfig) -> Result<Self, NatsError> {
        config.check()?;
        let servers: Vec<async_nats::ServerAddr> = config
            .servers
            .iter()
            .map(|it| it.parse().map_err(|error| bad_address(it, &error)))
            .collect::<Result<_, _>>()?;
        let node = new_node();
        let (gaps, gap_count) = watch::channel(0);
        let inbox = format!("{}._inbox", config.prefix);
        let violations = Violations::new(&inbox);
        let refused = violations.clone();
        let mut options = match &config.credentials {
            Credentials::None | Credentials::Contradictory => ConnectOptions::new(),
            Credentials::User(user, password) => {
                ConnectOptions::with_user_and_password(user.clone(), password.expose().clone())
            }
            Credentials::Token(token) => ConnectOptions::with_token(token.expose().clone()),
            Credentials::Nkey(seed) => {
                // It would be looked at too late, and its error would name no cause.
                if !is_nkey_seed(seed.expose()) {
                    return Err(NatsError::config("the nkey is not the seed of a user"));
                }
                ConnectOptions::with_nkey(seed.expose().clone())
            }
        };
        if let Some(tls) = &config.tls {
            options = options.tls_client_config((**tls.as_rustls()).clone());
            options = options.require_tls(true);
        }
        let options = options
            .name(format!("{} {node}", config.prefix))
            .custom_inbox_prefix(inbox)
            .connection_timeout(config.timeout)
            .request_timeout(Some(config.timeout))
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(reconnect_delay)
            .event_callback(move |event| {
                log(&event);
                if let Event::ServerError(error) = &event {
                    refused.report(error);
                }
                if matches!(event, Event::Connected | Event::SlowConsumer(_)) {
                    gaps.send_modify(|count| *count += 1);
                }
                async {}
            });
        let connect = options.connect(servers);
        let client = tokio::time::timeout(config.timeout, connect)
            .await
            .map_err(NatsError::unavailable)?
            .map_err(|error| match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    NatsError::Denied {
                        message: "the credentials are wrong".to_owned(),
                    }
                }
                ConnectErrorKind::ServerParse => NatsError::config(error),
                _ => NatsError::unavailable(error),
            })?;
        NatsConfig::check_payload(client.server_info().max_payload)?;
        let jetstream = ContextBuilder::new()
            .timeout(config.timeout)
            .build(client.clone());
        Ok(Self {
            shared: Arc::new(Shared {
                client,
                jetstream,
                prefix: config.prefix,
                replicas: config.replicas,
                timeout: config.timeout,
                gap_count,
                violations,
                opened: Mutex::default(),
            }),
            node,
        })
    }

    /// Returns the same connection under a new node id, for a node that has lost its lease.
    #[must_use]
    pub fn with_new_node(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            node: new_node(),
        }
    }

    /// Returns this node's id: 16 hex digits, new for each [connect](Self::connect).
    #[must_use]
    pub const fn node(&self) -> &Str {
        &self.node
    }

    /// Returns the prefix of all subjects and names.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// Returns how long a request may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// Returns a number that changes whenever subscriptions may have missed messages: after each new
    /// connection, and when one was read too slowly.
    #[must_use]
    pub fn gaps(&self) -> watch::Receiver<u64> {
        self.shared.gap_count.clone()
    }

    /// Returns a subject under the prefix. Encode names from users with
    /// [`token`](crate::cluster::token).
    #[must_use]
    pub fn subject(&self, parts: &[&str]) -> String {
        let parts = [&[self.prefix()], parts].concat();
        parts.join(".")
    }

    /// Returns the client, for messages that need no storage.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns the JetStream context.
    #[must_use]
    pub fn jetstream(&self) -> &Context {
        &self.shared.jetstream
    }

    /// Checks whether JetStream serves.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn check(&self) -> Result<(), NatsError> {
        let name = self.name("nodes");
        match self.asked(&name, self.jetstream().get_stream(&name)).await {
            // It may answer that there is no such stream.
            Ok(_) | Err(NatsError::JetStream { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the stream with this name under the prefix. Creates it if it does not exist: the
    /// name and the number of replicas in `config` are set here.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn stream(&self, name: &str, config: stream::Config) -> Result<Stream, NatsError> {
        let name = self.name(name);
        let config = stream::Config {
            name: name.clone(),
            num_replicas: self.shared.replicas,
            ..config
        };
        self.open(config).await
    }

    /// Opens the stream with this configuration, and makes it again when it is gone.
    async fn open(&self, config: stream::Config) -> Result<Stream, NatsError> {
        let opening = self.jetstream().get_or_create_stream(config.clone());
        let stream = self.asked(&config.name, opening).await?;
        let mut opened = self.shared.opened.lock().await;
        if opened.iter().all(|known| known.name != config.name) {
            opened.push(config);
        }
        Ok(stream)
    }

    /// Stores a message in the stream of its subject, and waits until it is stored.
    ///
    /// # Errors
    /// [`NatsError`]. After [`Unavailable`](NatsError::Unavailable) the message may be stored or
    /// not: publish it again with the same [`Expect::id`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the message may be stored or not.
    pub async fn publish(
        &self,
        subject: String,
        payload: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, NatsError> {
        let mut message = PublishMessage::build().payload(payload);
        if let Some(id) = expect.id {
            message = message.message_id(id);
        }
        if let Some(last) = expect.last_subject_sequence {
            message = message.expected_last_subject_sequence(last);
        }
        let stored = self.send(subject, message).await?;
        Ok(Stored {
            sequence: stored.sequence,
            is_duplicate: stored.duplicate,
        })
    }

    /// Makes the streams and buckets again that were opened here and are gone: the server has lost them, or
    /// somebody has deleted them.
    async fn ensure(&self) -> Result<(), NatsError> {
        // One at a time: who comes second finds them made.
        let opened = self.shared.opened.lock().await;
        for config in &*opened {
            let making = self.jetstream().get_or_create_stream(config.clone());
            let making = Box::pin(making).await;
            making.map_err(|error| NatsError::of(&error))?;
        }
        Ok(())
    }

    /// Sends a message to the stream of its subject, and waits for the answer.
    async fn send(
        &self,
        subject: String,
        message: PublishMessage,
    ) -> Result<PublishAck, NatsError> {
        let name = format!("\"{subject}\"");
        let sending = async {
            let mut sent = self.try_send(&subject, &message).await?;
            let is_gone = |error: &PublishError| error.kind() == PublishErrorKind::StreamNotFound;
            if sent.as_ref().is_err_and(is_gone) {
                // Nobody has it: it is not stored.
                self.ensure().await?;
                sent = self.try_send(&subject, &message).await?;
            }
            Ok(sent?)
        };
        self.shared.violations.or_denied(&name, sending).await
    }

    async fn try_send(
        &self,
        subject: &str,
        message: &PublishMessage,
    ) -> Result<Result<PublishAck, PublishError>, NatsError> {
        let sending = self
            .jetstream()
            .send_publish(subject.to_owned(), message.clone());
        // While there is no connection, the queue of the client may be full.
        let sent = tokio::time::timeout(self.timeout(), sending);
        match sent.await.map_err(NatsError::unavailable)? {
            Ok(answer) => Ok(answer.await),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Waits for a message of a stream; `None` if there is none. Otherwise as [`asked`](Self::asked).
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn message(
        &self,
        stream: &Stream,
        request: impl Future<Output = Result<StreamMessage, RawMessageError>>,
    ) -> Result<Option<StreamMessage>, NatsError> {
        let reading = async {
            match request.await {
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
                found => found.map(Some),
            }
        };
        self.asked(&stream.cached_info().config.name, reading).await
    }

    /// Waits for JetStream's answer about the stream with this name. If the stream is gone it is made again,
    /// for the next request.
    ///
    /// # Errors
    /// [`NatsError`]; see there whether retrying is safe.
    ///
    /// # Cancel safety
    /// That of the request.
    pub fn asked<T, E: Error + 'static>(
        &self,
        name: &str,
        request: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, NatsError>> {
        // Such requests are large.
        let request = Box::pin(request);
        async move {
            let request = async { request.await.map_err(|error| NatsError::of(&error)) };
            let answer = self.shared.violations.or_denied(name, request).await;
            if answer.as_ref().is_err_and(NatsError::is_gone) {
                tracing::warn!(name, "a stream is gone and is made again");
                self.ensure().await?;
            }
            answer
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}_{name}", self.shared.prefix)
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("prefix", &self.shared.prefix)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

fn new_node() -> Str {
    format!("{:016x}", entropy()).into()
}

/// Whether this is the seed of a user's nkey in its text form: `SU` and 56 characters of base 32.
fn is_nkey_seed(seed: &str) -> bool {
    let is_base32 = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
    seed.len() == 58 && seed.starts_with("SU") && seed.bytes().all(is_base32)
}

fn bad_address(address: &str, error: &std::io::Error) -> NatsError {
    NatsError::config(format!("bad address of NATS {address:?}: {}", error.kind()))
}

/// At once, then 50 ms, doubled up to 2 s: a restarted server is soon found again, and a dead one is
/// not hammered.
fn reconnect_delay(attempts: usize) -> Duration {
    match attempts {
        0 | 1 => Duration::ZERO,
        _ => Duration::from_millis(50 << attempts.min(7)).min(Duration::from_secs(2)),
    }
}

fn log(event: &Event) {
    match event {
        Event::Connected => tracing::info!("connected to NATS"),
        Event::Disconnected => tracing::warn!("the connection to NATS is lost"),
        Event::ServerError(error) => tracing::warn!(%error, "NATS refuses"),
        event => tracing::debug!(%event, "NATS"),
    }
}
