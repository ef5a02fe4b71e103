//! [`OpenAi`]: asks a provider over HTTP, with deadlines and repeats.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use rpc_core::Secret;
use rpc_core::backoff::{Backoff, BackoffPolicy, Jitter};
use rpc_core::net::link::entropy;
use rpc_core::net::tls::TlsConfig;
use serde::Serialize;
use snek_proto::chat::ChatMessage;
use snek_proto::limits::{
    DEFAULT_OPENAI_URL, DEFAULT_REQUEST_TIMEOUT, HTTP_CONNECT_TIMEOUT, MAX_CONCURRENT_REQUESTS,
    MAX_RETRY_ATTEMPTS, RECONNECT_BACKOFF_FACTOR, RECONNECT_INITIAL_DELAY,
};
use snek_proto::tool::ToolDefinition;
use tokio::time::Instant;

use super::{AnswerDecoder, error_message};
use crate::model::{ChatModel, ChatRequest, Delta, Deltas, Finish, ModelError};

/// The most that is read of an answer that reports an error.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// Which model to ask, and how patiently.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenAiConfig {
    /// Where the interface is. Without a path, `/v1/chat/completions` is meant; with one, it is
    /// completed with `/chat/completions` unless it ends so. Default [`DEFAULT_OPENAI_URL`].
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The key, if the provider wants one. Default none.
    pub key: Option<Secret>,
    /// How long the connection may take to open. Default [`HTTP_CONNECT_TIMEOUT`].
    pub connect_timeout: Duration,
    /// How long the provider may be silent, before the answer and within it. Default
    /// [`DEFAULT_REQUEST_TIMEOUT`].
    pub idle_timeout: Duration,
    /// How long an answer may take from its first byte to its last, however busy the line is.
    /// Default 10 min.
    pub total_timeout: Duration,
    /// How long to wait for the bill and the end mark after the answer is complete. Default 2 s.
    pub tail_timeout: Duration,
    /// The waits between attempts, if the provider does not say how long. Default 1 s and 2 s,
    /// each shortened by chance to no less than half: [`MAX_RETRY_ATTEMPTS`] in all.
    pub retry: BackoffPolicy,
    /// The longest wait that a provider may ask for. Beyond it, the question fails. Default 30 s.
    pub max_wait: Duration,
}

impl OpenAiConfig {
    /// This model of OpenAI's, without a key.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            base_url: DEFAULT_OPENAI_URL.to_owned(),
            model: model.into(),
            key: None,
            connect_timeout: HTTP_CONNECT_TIMEOUT,
            idle_timeout: DEFAULT_REQUEST_TIMEOUT,
            total_timeout: Duration::from_secs(600),
            tail_timeout: Duration::from_secs(2),
            retry: BackoffPolicy::new(RECONNECT_INITIAL_DELAY, RECONNECT_BACKOFF_FACTOR)
                .with_jitter(Jitter::Equal)
                .with_max_attempts(Some(MAX_RETRY_ATTEMPTS - 1)),
            max_wait: Duration::from_secs(30),
        }
    }

    /// Sets [`base_url`](Self::base_url).
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets [`key`](Self::key).
    #[must_use]
    pub fn with_key(mut self, key: Option<Secret>) -> Self {
        self.key = key;
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub const fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets [`idle_timeout`](Self::idle_timeout).
    #[must_use]
    pub const fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets [`total_timeout`](Self::total_timeout).
    #[must_use]
    pub const fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Sets [`tail_timeout`](Self::tail_timeout).
    #[must_use]
    pub const fn with_tail_timeout(mut self, timeout: Duration) -> Self {
        self.tail_timeout = timeout;
        self
    }

    /// Sets [`retry`](Self::retry).
    #[must_use]
    pub const fn with_retry(mut self, policy: BackoffPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets [`max_wait`](Self::max_wait).
    #[must_use]
    pub const fn with_max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }
}

/// A model behind the OpenAI interface. Redirects are not followed, so that the key and the
/// conversation go to nobody but the server that was named.
pub struct OpenAi {
    client: Client,
    pub(super) url: Url,
    config: OpenAiConfig,
}

impl OpenAi {
    /// A client for the model. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for a bad address or key, or if TLS cannot be set up.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let url = endpoint(&config.base_url)?;
        // Names its crypto provider itself, whatever others in the process use.
        let tls = TlsConfig::platform().map_err(setup)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose().trim()))
                .map_err(|_| setup("the key holds characters that no key has"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = Client::builder()
            .tls_backend_preconfigured((**tls.as_rustls()).clone())
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.connect_timeout)
            .pool_max_idle_per_host(MAX_CONCURRENT_REQUESTS)
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| setup(chain(&error)))?;
        Ok(Self {
            client,
            url,
            config,
        })
    }

    /// Whether the key and the conversation leave this machine unencrypted.
    #[must_use]
    pub fn goes_unencrypted(&self) -> bool {
        self.url.scheme() == "http" && !is_loopback(&self.url)
    }

    /// One attempt: the answer's head, or an error and how long the provider wants us to wait.
    async fn attempt(&self, body: &bytes::Bytes) -> Result<Response, Failed> {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body.clone());
        let patience = self
            .config
            .connect_timeout
            .saturating_add(self.config.idle_timeout);
        let response = match tokio::time::timeout(patience, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() || error.is_request() => {
                let message = chain(&error.without_url());
                return Err(Failed::again(ModelError::Unreachable { message }));
            }
            Ok(Err(error)) => {
                let message = chain(&error.without_url());
                return Err(Failed::for_good(ModelError::Unreachable { message }));
            }
            // A model that thinks for minutes will think as long again.
            Err(_) => return Err(Failed::for_good(ModelError::TimedOut { what: "answer" })),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let wait = retry_after(response.headers());
        let body = self.error_body(response).await;
        let error = ModelError::Status {
            status: status.as_u16(),
            message: self.redact(&error_message(&body)),
        };
        // A used-up budget is reported as "too many requests", but no wait helps.
        let worth_it = status.is_server_error()
            || status == StatusCode::REQUEST_TIMEOUT
            || status == StatusCode::TOO_MANY_REQUESTS && !body.contains("insufficient_quota");
        Err(Failed {
            error,
            again: worth_it && wait.is_none_or(|wait| wait <= self.config.max_wait),
            wait,
        })
    }

    async fn error_body(&self, mut response: Response) -> String {
        let mut body = Vec::new();
        let read = async {
            while body.len() < MAX_ERROR_BYTES
                && let Ok(Some(chunk)) = response.chunk().await
            {
                body.extend_from_slice(&chunk);
            }
        };
        let patience = self.config.tail_timeout;
        let _ = tokio::time::timeout(patience, read).await;
        body.truncate(MAX_ERROR_BYTES);
        String::from_utf8_lossy(&body).into_owned()
    }

    /// Providers like to repeat the key that they do not know.
    fn redact(&self, text: &str) -> String {
        redact(self.config.key.as_ref(), text)
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let body = serde_json::to_vec(&Body {
            model: &self.config.model,
            messages: &request.messages,
            tools: request.tools,
            stream: true,
        })
        .map_err(|error| setup(error.to_string()))?;
        let body = bytes::Bytes::from(body);
        let mut backoff = Backoff::new(self.config.retry);
        loop {
            let failed = match self.attempt(&body).await {
                Ok(response) => return Ok(self.deltas(response)),
                Err(failed) => failed,
            };
            match backoff.next_delay(entropy()) {
                Some(delay) if failed.again => {
                    tracing::info!(error = %failed.error, "asking the model again");
                    tokio::time::sleep(failed.wait.unwrap_or(delay)).await;
                }
                _ => return Err(failed.error),
            }
        }
    }
}

impl OpenAi {
    fn deltas(&self, response: Response) -> Deltas {
        let reading = Reading {
            response,
            decoder: AnswerDecoder::default(),
            failure: None,
            told_finish: false,
            over: false,
            idle: self.config.idle_timeout,
            since: Instant::now(),
            total: self.config.total_timeout,
            tail: self.config.tail_timeout,
            key: self.config.key.clone(),
        };
        stream::unfold(reading, |mut reading| async move {
            let next = reading.next().await?;
            Some((next, reading))
        })
        .boxed()
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("host", &self.url.host_str())
            .field("model", &self.config.model)
            .finish_non_exhaustive()
    }
}

/// An answer that is being read.
struct Reading {
    response: Response,
    decoder: AnswerDecoder,
    /// Told after the pieces before it.
    failure: Option<ModelError>,
    told_finish: bool,
    over: bool,
    idle: Duration,
    since: Instant,
    total: Duration,
    tail: Duration,
    key: Option<Secret>,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.decoder.pop() {
                self.told_finish |= matches!(delta, Delta::Finish(_));
                return Some(Ok(delta));
            }
            if let Some(failure) = self.failure.take() {
                self.over = true;
                return Some(Err(self.without_key(failure)));
            }
            if self.over {
                return None;
            }
            if self.decoder.is_done() {
                self.over = true;
                if !self.told_finish {
                    return Some(Ok(Delta::Finish(Finish::Stop)));
                }
                return None;
            }
            if let Err(error) = self.read().await {
                self.failure = Some(error);
            }
        }
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        let complete = self.decoder.is_finished();
        let left = self.total.saturating_sub(self.since.elapsed());
        let patience = if complete { self.tail } else { self.idle };
        let patience = patience.min(left);
        if left.is_zero() && !complete {
            return Err(ModelError::TimedOut {
                what: "end of the answer",
            });
        }
        match tokio::time::timeout(patience, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => self.decoder.push(&chunk),
            // A line that is lost after the answer loses nothing; before its end, `end` says so.
            Ok(Ok(None) | Err(_)) => self.decoder.end(),
            Err(_) if complete => self.decoder.end(),
            Err(_) => Err(ModelError::TimedOut {
                what: "next piece of the answer",
            }),
        }
    }

    fn without_key(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Provider { message } => ModelError::Provider {
                message: redact(self.key.as_ref(), &message),
            },
            ModelError::BadAnswer { message } => ModelError::BadAnswer {
                message: redact(self.key.as_ref(), &message),
            },
            other => other,
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [&'a ChatMessage],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDefinition],
    stream: bool,
}

struct Failed {
    error: ModelError,
    again: bool,
    wait: Option<Duration>,
}

impl Failed {
    const fn again(error: ModelError) -> Self {
        Self {
            error,
            again: true,
            wait: None,
        }
    }

    const fn for_good(error: ModelError) -> Self {
        Self {
            error,
            again: false,
            wait: None,
        }
    }
}

/// The waiting time in seconds. A date is left aside: our own waits do as well.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds
        .ok()
        .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
}

fn endpoint(base: &str) -> Result<Url, ModelError> {
    const END: &str = "/chat/completions";
    let mut url =
        Url::parse(base).map_err(|error| setup(format_args!("bad address {base:?}: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(setup(format_args!(
            "bad address {base:?}: write it like https://api.openai.com"
        )));
    }
    let path = url.path().trim_end_matches('/');
    let path = match path {
        "" => format!("/v1{END}"),
        path if path.ends_with(END) => path.to_owned(),
        path => format!("{path}{END}"),
    };
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn redact(key: Option<&Secret>, text: &str) -> String {
    match key.map(|key| key.expose().trim()) {
        Some(key) if !key.is_empty() => text.replace(key, "***"),
        _ => text.to_owned(),
    }
}

/// An error with its causes, which say what really happened.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

fn setup(message: impl fmt::Display) -> ModelError {
    let message = message.to_string();
    ModelError::Setup { message }
}
