//! [`connect`]: a cluster's [`Store`] on NATS with JetStream.

mod config;
mod error;
mod log;
mod remake;
mod violations;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_nats::client::PublishErrorKind;
use async_nats::connection::State;
use async_nats::header::{IntoHeaderName, NATS_LAST_SEQUENCE, NATS_MESSAGE_ID, NATS_SEQUENCE};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{self, DiscardPolicy, Republish};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{
    Client, ConnectOptions, Event, HeaderValue, Request, RequestErrorKind, Subscriber,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, watch};
use tokio::task::unconstrained;
use tokio::time::timeout;

use crate::Str;
use crate::store::subject::{check_len, check_message, check_pattern, check_same};
use crate::store::{AskError, Log, LogConfig, Message, Messages, Position, Store, StoreError};

use config::Credentials;
pub use config::NatsConfig;
use error::{of_answer, of_connect, of_request};
use log::StreamLog;
use violations::Violations;

/// A connection to NATS. Cheap to clone.
#[derive(Clone)]
struct Nats {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    /// Reads where messages are in a stream.
    jetstream: jetstream::Context,
    prefix: String,
    replicas: usize,
    timeout: Duration,
    is_local: bool,
    gap_count: watch::Receiver<u64>,
    violations: Arc<Violations>,
    opened: Mutex<Opened>,
    /// The subjects of their logs.
    subjects: crate::sync::Mutex<Vec<String>>,
    /// How often it was begun to look for them.
    searches: AtomicU64,
}

/// The streams that were opened: what is gone is made again.
#[derive(Default)]
struct Opened {
    /// Those of buckets first: leases and claims decide about all else.
    streams: Vec<stream::Config>,
    /// Whether all were there or made at the last search.
    is_complete: bool,
}

/// How many bytes the headers of a record may have, which the server counts with its payload.
const MAX_HEADERS: usize = 1024;

/// What JetStream answers.
type Answer<T> = Result<T, jetstream::Error>;

/// Connects to the first server that answers, and waits for the answer of its JetStream.
///
/// It reconnects by itself. Meanwhile requests wait, up to the [timeout](NatsConfig::timeout).
///
/// A [`Log`] is a stream of JetStream, and its [feed](LogConfig::feed) what the server republishes. In messages
/// to and from the server, records included:
///
/// | | |
/// |---|---|
/// | append, get, last, state | 2 |
/// | read of none, or of the first one | 2 |
/// | read of `n` | about `n` + 8, and 1 for each 500 |
/// | heads | `n` + 3, and 1 for each 500 |
/// | purge of one key, of `n` records | 4, about 3 `n` |
///
/// With [replicas](NatsConfig::replicas), heads and watches may be those of a replica that is behind for a moment; all
/// else asks the leader.
///
/// A stream that the server has lost is made again by the node that looks first after a wait of up to 1.25 s: a
/// server that is still deleting it would make a broken one. It counts as made when it takes a record, has it and
/// publishes it in its feed; the record is then removed. Requests wait meanwhile.
///
/// A log with [`max_records`](LogConfig::max_records) drops its first ones also when its
/// [bytes](LogConfig::max_bytes) are used up.
///
/// # Errors
/// [`StoreError::Config`], also if a certificate is not trusted or the server accepts too short messages;
/// [`StoreError::Denied`]; and [`StoreError::Unavailable`] if no server or no JetStream answers in time;
/// retrying that is safe.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn connect(config: NatsConfig) -> Result<Arc<dyn Store>, StoreError> {
    config.check()?;
    let parse = |it: &String| it.parse().map_err(|error| bad_address(it, &error));
    let servers = config.servers.iter().map(parse);
    let servers: Vec<async_nats::ServerAddr> = servers.collect::<Result<_, _>>()?;
    let is_here = |it: &async_nats::ServerAddr| {
        let address = it.host().parse().map(|ip: IpAddr| ip.is_loopback());
        address.unwrap_or_else(|_| it.host() == "localhost")
    };
    let is_local = servers.iter().all(is_here);
    let (gaps, mut gap_count) = watch::channel(0);
    let inbox = format!("{}._inbox", config.prefix);
    let violations = Arc::new(Violations::new(&inbox));
    let refused = Arc::clone(&violations);
    let mut options = match &config.credentials {
        Credentials::None | Credentials::Contradictory => ConnectOptions::new(),
        Credentials::User(user, password) => {
            ConnectOptions::with_user_and_password(user.clone(), password.expose().clone())
        }
        Credentials::Token(token) => ConnectOptions::with_token(token.expose().clone()),
        Credentials::Nkey(seed) => {
            // It would be looked at too late, and its error would name no cause.
            if !is_nkey_seed(seed.expose()) {
                return Err(StoreError::config("the nkey is not the seed of a user"));
            }
            ConnectOptions::with_nkey(seed.expose().clone())
        }
        Credentials::Creds(content) => {
            ConnectOptions::with_credentials(content.expose()).map_err(StoreError::config)?
        }
    };
    if let Some(tls) = &config.tls {
        options = options.tls_client_config((**tls.as_rustls()).clone());
        options = options.require_tls(true);
    }
    let options = options
        .name(&config.prefix)
        .custom_inbox_prefix(inbox)
        .connection_timeout(config.timeout)
        // Requests have one that counts the waiting for a connection too.
        .request_timeout(None)
        .ping_interval(Duration::from_secs(5))
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            match &event {
                Event::Connected => tracing::info!("connected to NATS"),
                Event::Disconnected => tracing::warn!("the connection to NATS is lost"),
                Event::ServerError(error) if refused.report(error) => {
                    tracing::warn!(%error, "NATS refuses");
                }
                event => tracing::debug!(%event, "NATS"),
            }
            if matches!(event, Event::Connected | Event::SlowConsumer(_)) {
                gaps.send_modify(|count| *count += 1);
            }
            async {}
        });
    let connecting = async {
        let client = options.connect(servers).await;
        let client = client.map_err(|error| of_connect(&error))?;
        // The first connection is not a gap.
        let _ = gap_count.wait_for(|count| *count > 0).await;
        Ok::<_, StoreError>(client)
    };
    let client = timeout(config.timeout, connecting).await;
    let client = client.map_err(StoreError::unavailable)??;
    NatsConfig::check_payload(client.max_payload())?;
    let nats = Nats {
        shared: Arc::new(Shared {
            jetstream: jetstream::new(client.clone()),
            client,
            prefix: config.prefix,
            replicas: config.replicas,
            timeout: config.timeout,
            is_local,
            gap_count,
            violations,
            opened: Mutex::default(),
            subjects: crate::sync::Mutex::default(),
            searches: AtomicU64::new(0),
        }),
    };
    let prefix = &nats.shared.prefix;
    let answer: Answer<stream::Info> = nats.ask_jetstream("STREAM.INFO", prefix, &()).await?;
    match answer {
        Err(error) if error.error_code() != ErrorCode::STREAM_NOT_FOUND => Err(of_answer(&error)),
        // JetStream serves.
        _ => Ok(Arc::new(nats)),
    }
}

impl Nats {
    fn subject(&self, subject: &str) -> String {
        format!("{}.{subject}", self.shared.prefix)
    }

    /// The subject of a message.
    fn subject_of_message(&self, subject: &str) -> Result<String, StoreError> {
        let logs = self.shared.subjects.lock();
        check_message(logs.iter().map(String::as_str), subject)?;
        Ok(self.subject(subject))
    }

    /// The subject without the prefix.
    fn relative(&self, subject: &str) -> Str {
        let from = self.shared.prefix.len() + 1;
        subject.get(from..).unwrap_or_default().into()
    }

    /// Subscribes to a subject with its prefix.
    async fn listen(&self, subject: String) -> Result<Subscriber, StoreError> {
        let subscribing = timeout(self.shared.timeout, self.shared.client.subscribe(subject));
        let subscribed = subscribing.await.map_err(StoreError::unavailable)?;
        subscribed.map_err(StoreError::unavailable)
    }

    /// Waits until the server has done all that was sent to it.
    async fn round_trip(&self) -> Result<(), StoreError> {
        let inbox = self.shared.client.new_inbox();
        let mut echo = self.listen(inbox.clone()).await?;
        self.send(inbox, Bytes::new()).await?;
        let received = timeout(self.shared.timeout, echo.next()).await;
        received.map(drop).map_err(StoreError::unavailable)
    }

    /// Waits for the answer of a listener of a subject; `None` if there is none.
    async fn request(
        &self,
        subject: &str,
        request: Request,
        within: Duration,
    ) -> Result<Option<async_nats::Message>, StoreError> {
        let asking = async {
            // While there is no connection, the queue of the client may be full.
            let asking = self.shared.client.send_request(subject.to_owned(), request);
            match timeout(within, asking)
                .await
                .map_err(StoreError::unavailable)?
            {
                Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
                answer => answer.map(Some).map_err(|error| of_request(&error)),
            }
        };
        self.shared.violations.or_denied(subject, asking).await
    }

    /// Asks JetStream about the stream with this name.
    async fn ask_jetstream<T: DeserializeOwned>(
        &self,
        verb: &str,
        name: &str,
        body: &impl Serialize,
    ) -> Result<Answer<T>, StoreError> {
        let body = serde_json::to_vec(body).map_err(StoreError::config)?;
        let subject = format!("$JS.API.{verb}.{name}");
        let request = Request::new().payload(body.into());
        let answer = self.request(&subject, request, self.shared.timeout).await?;
        let answer = answer.ok_or_else(|| {
            StoreError::unavailable("there is no JetStream; nats-server needs -js for it")
        })?;
        answer_in(&answer)
    }

    /// Returns a stream as it is; `None` if there is none.
    async fn find(&self, name: &str) -> Result<Option<stream::Info>, StoreError> {
        match self.ask_jetstream("STREAM.INFO", name, &()).await? {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
            Err(error) => Err(of_answer(&error)),
        }
    }

    async fn create(&self, config: &stream::Config) -> Result<stream::Info, StoreError> {
        let made = self.ask_jetstream("STREAM.CREATE", &config.name, config);
        match made.await?.map_err(|error| of_answer(&error)) {
            Err(StoreError::Full { message }) => Err(StoreError::Full {
                message: format!("{message}; the most is held by {}", self.holders().await),
            }),
            made => made,
        }
    }

    /// The streams that have, or may take, the most room.
    async fn holders(&self) -> String {
        let (mut streams, mut held) = (self.shared.jetstream.streams(), Vec::new());
        while let Ok(Some(it)) = streams.try_next().await {
            let bytes = u64::try_from(it.config.max_bytes).unwrap_or_default();
            held.push((bytes.max(it.state.bytes), it.config.name));
        }
        held.sort_unstable();
        let most = held.iter().rev().take(3);
        let most = most.map(|(bytes, name)| format!("{name} ({bytes} bytes)"));
        most.collect::<Vec<_>>().join(", ")
    }

    /// The configuration of a log that was made as this stream.
    fn config_of(&self, stream: &stream::Config) -> LogConfig {
        let limit = |it: i64| u64::try_from(it).ok();
        let subjects = stream.subjects.first().map_or("", String::as_str);
        let feed = stream.republish.as_ref();
        LogConfig {
            feed: feed.map(|feed| feed_of(&self.relative(&feed.destination))),
            max_per_subject: limit(stream.max_messages_per_subject),
            max_records: limit(stream.max_messages),
            max_bytes: limit(stream.max_bytes),
            max_age: Some(stream.max_age).filter(|it| !it.is_zero()),
            window: stream.duplicate_window,
            ..LogConfig::new(&self.relative(subjects))
        }
    }

    /// Sends a message, as soon as there is room for it.
    async fn send(&self, subject: String, payload: Bytes) -> Result<(), StoreError> {
        check_len(&payload, self.max_payload())?;
        let sending = timeout(
            self.shared.timeout,
            self.shared.client.publish(subject, payload),
        );
        let sent = sending.await.map_err(StoreError::unavailable)?;
        sent.map_err(|error| match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => StoreError::TooLarge,
            PublishErrorKind::InvalidSubject => StoreError::config(error),
            PublishErrorKind::Send => StoreError::unavailable(error),
        })
    }

    /// Sends a message if there is a connection and room for it. Returns whether it is sent.
    fn try_send(&self, subject: String, payload: Bytes) -> bool {
        let sending = unconstrained(self.shared.client.publish(subject, payload));
        self.is_connected() && sending.now_or_never().is_some_and(|sent| sent.is_ok())
    }

    fn message(&self, message: async_nats::Message) -> Message {
        let number = |name| header(&message, name).and_then(|it| it.parse().ok());
        let position = number(NATS_SEQUENCE).zip(number(NATS_LAST_SEQUENCE));
        Message {
            subject: self.relative(&message.subject),
            id: header(&message, NATS_MESSAGE_ID).map_or(Str::EMPTY, Str::from),
            position: position.map(|(sequence, previous)| Position { sequence, previous }),
            reply_to: message.reply.as_deref().map(Str::from),
            payload: message.payload,
        }
    }
}

#[async_trait]
impl Store for Nats {
    async fn log(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        let Shared {
            prefix, replicas, ..
        } = &*self.shared;
        config.check(name)?;
        let limit = |it: Option<u64>| it.map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX));
        let subjects = self.subject(&config.subjects);
        let max_age = config.max_age.unwrap_or_default();
        let stream = stream::Config {
            name: format!("{prefix}_{name}"),
            republish: config.feed.as_ref().map(|feed| Republish {
                source: subjects.clone(),
                destination: destination(&self.subject(feed)),
                headers_only: false,
            }),
            subjects: vec![subjects],
            max_messages_per_subject: limit(config.max_per_subject),
            max_messages: limit(config.max_records),
            max_bytes: limit(config.max_bytes),
            max_age,
            discard: match config.max_records {
                Some(_) => DiscardPolicy::Old,
                None => DiscardPolicy::New,
            },
            duplicate_window: config
                .max_age
                .map_or(config.window, |it| it.min(config.window)),
            allow_direct: true,
            num_replicas: *replicas,
            ..stream::Config::default()
        };
        let info = match self.find(&stream.name).await? {
            Some(info) => info,
            None => self.create(&stream).await?,
        };
        let kept = info.config.max_age;
        let has = self.config_of(&info.config).subjects;
        check_same(name, &has, &config.subjects)?;
        // A node that counts on more time than the log gives would be taken for dead.
        if !kept.is_zero() && (max_age.is_zero() || kept < max_age) {
            return Err(StoreError::config(format_args!(
                "the log {name} was made to keep records for {kept:?} only: ask for no more, or take another prefix"
            )));
        }
        let log = StreamLog {
            nats: self.clone(),
            name: stream.name.clone(),
            subjects: has,
            keeps_last: config.max_per_subject == Some(1),
        };
        let streams = &mut self.shared.opened.lock().await.streams;
        if streams.iter().all(|known| known.name != stream.name) {
            streams.push(stream);
            streams.sort_by_key(|it| it.max_messages_per_subject != 1);
            self.shared.subjects.lock().push(config.subjects);
        }
        Ok(Arc::new(log))
    }

    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        let mut logs = Vec::new();
        let name_of = format!("{}_", self.shared.prefix);
        let mut streams = self.shared.jetstream.streams();
        while let Some(stream) = streams.try_next().await.map_err(StoreError::unavailable)? {
            if let Some(name) = stream.config.name.strip_prefix(&name_of) {
                logs.push((name.to_owned(), self.config_of(&stream.config)));
            }
        }
        Ok(logs)
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        let nats = self.clone();
        // It ends whatever happens to the caller, who may have less patience.
        let ensuring = tokio::spawn(async move { nats.remake().await });
        ensuring.await.map_err(StoreError::unavailable)?
    }

    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError> {
        self.send(self.subject_of_message(subject)?, payload).await
    }

    fn try_publish(&self, subject: &str, payload: Bytes) -> bool {
        let subject = self.subject_of_message(subject);
        subject.is_ok_and(|subject| self.try_send(subject, payload))
    }

    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError> {
        check_pattern(pattern)?;
        let messages = self.listen(self.subject(pattern)).await?;
        if self.is_connected() {
            // No one's message may pass it.
            self.round_trip().await?;
        }
        let nats = self.clone();
        Ok(messages.map(move |message| nats.message(message)).boxed())
    }

    async fn ask(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        let subject = self.subject_of_message(subject)?;
        check_len(&payload, self.max_payload())?;
        if !self.is_connected() {
            return Err(StoreError::unavailable("there is no connection").into());
        }
        let request = Request::new().payload(payload);
        match self.request(&subject, request, within).await {
            Ok(Some(answer)) => Ok(answer.payload),
            Ok(None) => Err(AskError::NoListener),
            Err(StoreError::Unavailable { .. }) => Err(AskError::NoAnswer),
            Err(error) => Err(error.into()),
        }
    }

    fn answer(&self, reply_to: &str, payload: Bytes) {
        self.try_send(reply_to.to_owned(), payload);
    }

    fn is_connected(&self) -> bool {
        self.shared.client.connection_state() == State::Connected
    }

    fn is_local(&self) -> bool {
        self.shared.is_local
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        let mut gaps = self.shared.gap_count.clone();
        gaps.mark_unchanged();
        gaps
    }

    fn max_payload(&self) -> usize {
        let max = self.shared.client.max_payload();
        max.saturating_sub(MAX_HEADERS)
    }

    fn timeout(&self) -> Duration {
        self.shared.timeout
    }
}

crate::debug::debug_fields!([] Nats, this => { prefix: this.shared.prefix });

fn answer_in<T: DeserializeOwned>(message: &async_nats::Message) -> Result<Answer<T>, StoreError> {
    match serde_json::from_slice(&message.payload) {
        Ok(Response::Ok(answer)) => Ok(Ok(answer)),
        Ok(Response::Err { error }) => Ok(Err(error)),
        Err(error) => Err(StoreError::failed(format_args!(
            "an answer is unreadable: {error}"
        ))),
    }
}

fn header(message: &async_nats::Message, name: impl IntoHeaderName) -> Option<&str> {
    let headers = message.headers.as_ref()?;
    headers.get(name).map(HeaderValue::as_str)
}

/// The subjects of a feed as the server wants them: its `*` by their numbers.
fn destination(feed: &str) -> String {
    let mut number = 0;
    let tokens = feed.split('.').map(|token| match token {
        "*" => {
            number += 1;
            format!("{{{{wildcard({number})}}}}")
        }
        token => token.to_owned(),
    });
    tokens.collect::<Vec<_>>().join(".")
}

/// The feed of a [`destination`].
fn feed_of(destination: &str) -> String {
    let tokens = destination
        .split('.')
        .map(|token| match token.starts_with("{{") {
            true => "*",
            false => token,
        });
    tokens.collect::<Vec<_>>().join(".")
}

/// Whether this is the seed of a user's nkey in its text form: `SU` and 56 characters of base 32.
fn is_nkey_seed(seed: &str) -> bool {
    let is_base32 = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
    seed.len() == 58 && seed.starts_with("SU") && seed.bytes().all(is_base32)
}

fn bad_address(address: &str, error: &std::io::Error) -> StoreError {
    StoreError::config(format!("bad address of NATS {address:?}: {}", error.kind()))
}

/// At once, then 50 ms, doubled up to 2 s: a restarted server is soon found again, and a dead one is
/// not hammered.
fn reconnect_delay(attempts: usize) -> Duration {
    match attempts {
        0 | 1 => Duration::ZERO,
        _ => Duration::from_millis(50 << attempts.min(7)).min(Duration::from_secs(2)),
    }
}
