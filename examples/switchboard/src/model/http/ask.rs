//! [`Asker`]: sends a question over HTTP and reads the answer, with deadlines and repeats.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER,
};
use reqwest::{Response, Url};
use rpc_core::Secret;
use rpc_core::backoff::Backoff;
use rpc_core::net::entropy;
use rpc_core::net::http::compressed;
use tokio::time::Instant;

use super::client::{chain, is_loopback};
use super::explain::Subject;
use super::redact::redact;
use super::{HttpClient, RequestPolicy};
use crate::model::answer::AnswerReader;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::provider::Provider;
use crate::model::{Delta, Deltas, ModelError, Notice, Refusal, Wait};

/// The most bytes to read of an answer that reports an error.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// What a lost connection is called.
const LOST: &str = "connection lost";

/// What is called that is no answer in HTTP.
pub(super) const UNREADABLE: &str = "unreadable answer";

/// What a refused certificate is called.
pub(super) const UNTRUSTED: &str = "no trusted TLS connection";

/// How long the bytes after a complete answer may take.
const LAST_BYTES: Duration = Duration::from_millis(50);

/// An address with its headers.
pub(super) struct Asker {
    http: HttpClient,
    /// Whether an answer was read to its end, so that the next request may take the same connection.
    keeps: AtomicBool,
    provider: Provider,
    url: Url,
    headers: HeaderMap,
    policy: RequestPolicy,
    /// Texts that must not be revealed.
    private: Vec<Secret>,
}

/// A question: the body of a request.
pub(super) struct Query {
    pub(super) body: Bytes,
    /// The message if the provider does not answer.
    pub(super) subject: Subject,
}

impl Asker {
    pub(super) fn new(
        http: &HttpClient,
        url: Url,
        mut headers: HeaderMap,
        config: &ModelConfig,
    ) -> Result<Self, ModelError> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = "text/event-stream, application/x-ndjson, application/json";
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // The longest first: an address may hold the others.
        let mut private = vec![
            Secret::from(url.as_str()),
            Secret::from(url.origin().ascii_serialization()),
        ];
        private.extend(
            config
                .key
                .as_ref()
                .map(|key| Secret::from(key.expose().trim())),
        );
        private.retain(|text| !text.expose().is_empty());
        // Fails here and not at the first question.
        http.client(&url, true)?;
        Ok(Self {
            http: http.clone(),
            keeps: AtomicBool::new(false),
            provider: config.provider,
            url,
            headers,
            policy: config.policy,
            private,
        })
    }

    pub(super) const fn url(&self) -> &Url {
        &self.url
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    pub(super) fn goes_unencrypted(&self) -> bool {
        self.url.scheme() == "http" && !is_loopback(&self.url)
    }

    /// Asks when the answer is first polled, and again until there is one or a retry cannot help.
    pub(super) fn ask(self: &Arc<Self>, query: Query) -> Deltas {
        let asking = Asking {
            asker: Arc::clone(self),
            backoff: Backoff::new(self.policy.retry),
            query,
            notice: None,
            wait: None,
            reading: None,
            is_begun: false,
            is_over: false,
        };
        stream::unfold(asking, |mut asking| async move {
            let next = asking.next().await?;
            Some((next, asking))
        })
        .boxed()
    }

    fn redact(&self, text: &str) -> String {
        redact(&self.private, text)
    }

    /// Sends a question, on a connection that was kept or on a new one.
    async fn send(&self, query: &Query, may_be_kept: bool) -> Result<Response, Failed> {
        let client = self.http.client(&self.url, may_be_kept);
        let request = client
            .map_err(Failed::for_good)?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(query.body.clone());
        let after = self.policy.head_timeout;
        match tokio::time::timeout(after, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                // Anything later may have been handled, and charged.
                let again = error.is_connect();
                let cause = plain_words(&error);
                let is_lost = !again && cause == LOST;
                let error = error.without_url();
                tracing::info!(error = chain(&error), "the model cannot be reached");
                Err(Failed {
                    error: query.subject.unreachable(cause, again),
                    reason: format!("{cause}: no connection to the model"),
                    again,
                    is_lost,
                    wait: None,
                })
            }
            // A model that thinks for long will think as long again.
            Err(_) => {
                let wait = Wait::Head;
                Err(Failed::for_good(ModelError::TimedOut { wait, after }))
            }
        }
    }

    /// Makes one attempt. Returns the answer's head, or an error.
    async fn attempt(&self, query: &Query) -> Result<Response, Failed> {
        let response = match self.send(query, true).await {
            // The provider has ended a kept connection just when it was used again.
            Err(failed) if failed.is_lost && self.keeps.swap(false, Ordering::Relaxed) => {
                self.send(query, false).await?
            }
            other => other?,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let status = status.as_u16();
        let wait = retry_after(response.headers());
        let body = self.error_body(response).await;
        let redact = |text: &str| self.redact(text);
        let (refusal, error) = query.subject.status(status, &body, wait, redact);
        let passes = match status {
            408 | 500 | 502 | 503 | 504 | 529 => true,
            // A used-up budget is reported as "too many requests", but no wait helps.
            429 => refusal == Refusal::RateLimit,
            _ => false,
        };
        Err(Failed {
            reason: query.subject.what(Some(status), refusal),
            error,
            again: passes && wait.is_none_or(|wait| wait <= self.policy.max_wait),
            is_lost: false,
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
        let _ = tokio::time::timeout(self.policy.tail_timeout, read).await;
        body.truncate(MAX_ERROR_BYTES);
        if let Some(why) = compressed(response.headers(), &body) {
            return why;
        }
        String::from_utf8_lossy(&body).into_owned()
    }

    fn reading(self: &Arc<Self>, response: Response) -> Reading {
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        Reading {
            reader: AnswerReader::new(self.provider, &excerpt(kind)),
            asker: Arc::clone(self),
            response,
            failure: None,
            is_begun: false,
            over: false,
            since: Instant::now(),
            complete: None,
        }
    }
}

struct Failed {
    error: ModelError,
    /// What has happened, without what to do.
    reason: String,
    again: bool,
    /// Whether the connection was lost before the answer.
    is_lost: bool,
    /// The wait that the provider requests.
    wait: Option<Duration>,
}

impl Failed {
    const fn for_good(error: ModelError) -> Self {
        Self {
            error,
            reason: String::new(),
            again: false,
            is_lost: false,
            wait: None,
        }
    }
}

/// A question that is asked until it is answered.
struct Asking {
    asker: Arc<Asker>,
    query: Query,
    /// What people are told next.
    notice: Option<Notice>,
    backoff: Backoff,
    /// Before the next attempt.
    wait: Option<Duration>,
    reading: Option<Reading>,
    /// Whether people may have seen a part of the answer.
    is_begun: bool,
    is_over: bool,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if self.is_over {
                return None;
            }
            if let Some(notice) = self.notice.take() {
                return Some(Ok(Delta::Notice(notice)));
            }
            let failed = match &mut self.reading {
                Some(reading) => match reading.next().await? {
                    Ok(delta) => {
                        self.is_begun |= !matches!(delta, Delta::Usage(_));
                        return Some(Ok(delta));
                    }
                    Err(error) => self.reported(error),
                },
                None => {
                    if let Some(wait) = self.wait.take() {
                        tokio::time::sleep(wait).await;
                    }
                    match self.asker.attempt(&self.query).await {
                        Ok(response) => {
                            self.reading = Some(self.asker.reading(response));
                            continue;
                        }
                        Err(failed) => failed,
                    }
                }
            };
            if let Some(error) = self.failed(failed) {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    /// Decides about an error in an answer.
    fn reported(&mut self, error: ModelError) -> Failed {
        let subject = &self.query.subject;
        let error = subject.complete(error, |text| self.asker.redact(text));
        match &error {
            ModelError::Refused { refusal, .. } => Failed {
                reason: subject.what(None, *refusal),
                again: refusal.passes() && !self.is_begun,
                is_lost: false,
                wait: None,
                error,
            },
            _ => Failed::for_good(error),
        }
    }

    /// Prepares another attempt, or returns the error.
    fn failed(&mut self, failed: Failed) -> Option<ModelError> {
        let delay = match failed.again {
            true => self.backoff.next_delay(entropy()),
            false => None,
        };
        let Some(delay) = delay else {
            return Some(failed.error);
        };
        let wait = failed.wait.unwrap_or(delay);
        let reason = failed.reason;
        let notice = Notice::Retry { reason, wait };
        tracing::warn!("{notice}");
        self.notice = Some(notice);
        self.wait = Some(wait);
        self.reading = None;
        None
    }
}

/// An answer that is being read.
struct Reading {
    asker: Arc<Asker>,
    response: Response,
    reader: AnswerReader,
    /// Reported after the earlier pieces.
    failure: Option<ModelError>,
    /// Whether a part of it has come.
    is_begun: bool,
    over: bool,
    since: Instant,
    /// When the answer was complete.
    complete: Option<Instant>,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.reader.pop() {
                return Some(Ok(delta));
            }
            if let Some(failure) = self.failure.take() {
                self.over = true;
                return Some(Err(failure));
            }
            if self.over {
                return None;
            }
            if self.reader.is_done() {
                self.over = true;
                self.read_to_the_end().await;
                return None;
            }
            if let Err(error) = self.read().await {
                self.failure = Some(error);
            }
        }
    }

    /// Reads the bytes after a complete answer, so that the connection can be reused.
    async fn read_to_the_end(&mut self) {
        let rest = async {
            while let Ok(rest) = self.response.chunk().await {
                if rest.is_none() {
                    self.asker.keeps.store(true, Ordering::Relaxed);
                    break;
                }
            }
        };
        // A provider that keeps the line open all the same only costs a new connection.
        let _ = tokio::time::timeout(LAST_BYTES, rest).await;
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        let RequestPolicy {
            idle_timeout,
            tail_timeout,
            total_timeout,
            ..
        } = self.asker.policy;
        let now = Instant::now();
        let complete = self.reader.is_finished();
        // The wait that ends first. None of them begins again with a comment after the end.
        let (wait, after, left) = if complete {
            let since = *self.complete.get_or_insert(now);
            (
                Wait::End,
                tail_timeout,
                tail_timeout.saturating_sub(now - since),
            )
        } else {
            let left = total_timeout.map(|total| total.saturating_sub(now - self.since));
            match (total_timeout, left) {
                (Some(total), Some(left)) if left < idle_timeout => (Wait::End, total, left),
                _ => (Wait::Piece, idle_timeout, idle_timeout),
            }
        };
        let chunk = match left.is_zero() {
            true => None,
            false => tokio::time::timeout(left, self.response.chunk()).await.ok(),
        };
        match chunk {
            Some(Ok(Some(chunk))) => {
                let is_first = !std::mem::replace(&mut self.is_begun, true);
                let headers = self.response.headers();
                match is_first.then(|| compressed(headers, &chunk)).flatten() {
                    Some(message) => Err(ModelError::BadAnswer { message }),
                    None => self.reader.push(&chunk),
                }
            }
            // A line that is lost after the answer loses nothing; before its end, `end` says so.
            Some(end @ (Ok(None) | Err(_))) => {
                self.asker.keeps.fetch_or(end.is_ok(), Ordering::Relaxed);
                self.reader.end()
            }
            None if complete => self.reader.end(),
            None => Err(ModelError::TimedOut { wait, after }),
        }
    }
}

/// Returns the wait, given in milliseconds, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let ms = text("retry-after-ms").and_then(|ms| ms.parse().ok());
    if let Some(ms) = ms {
        return Some(Duration::from_millis(ms));
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text| httpdate::parse_http_date(text).ok();
    // By the provider's clock, which may go wrong together with the date.
    let now = text(DATE.as_str())
        .and_then(date)
        .unwrap_or_else(SystemTime::now);
    // A date in the past causes no wait.
    Some(date(after)?.duration_since(now).unwrap_or_default())
}

/// Describes an error without the names of hosts.
fn plain_words(error: &reqwest::Error) -> &'static str {
    use io::ErrorKind::*;
    if error.is_timeout() {
        return "connection timed out";
    }
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| {
        error.source()
    });
    let mut otherwise = if error.is_connect() {
        "connection failed"
    } else {
        LOST
    };
    for cause in causes {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(ConnectionRefused) => return "connection refused",
            Some(TimedOut) => return "connection timed out",
            Some(HostUnreachable | NetworkUnreachable) => return "host unreachable",
            Some(ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof) => {
                otherwise = LOST;
            }
            // A certificate that is not trusted, as a rule.
            Some(InvalidData) => otherwise = UNTRUSTED,
            _ if cause.to_string().starts_with("dns error") => otherwise = "host not found",
            _ if cause.to_string().starts_with("invalid HTTP") => otherwise = UNREADABLE,
            _ if cause.to_string().starts_with("message head") => otherwise = UNREADABLE,
            _ => {}
        }
    }
    otherwise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_wait_as_a_number_or_a_date() {
        let wait = |after: &str, now: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(after).unwrap());
            if let Some(now) = now {
                headers.insert(DATE, HeaderValue::from_str(now).unwrap());
            }
            retry_after(&headers)
        };
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait("7", None), seconds(7));
        for date in [
            "Sun, 06 Nov 1994 08:50:07 GMT",
            "Sunday, 06-Nov-94 08:50:07 GMT",
            "Sun Nov  6 08:50:07 1994",
        ] {
            assert_eq!(wait(date, now), seconds(30), "{date}");
            // Long ago.
            assert_eq!(wait(date, None), seconds(0), "{date}");
        }
        for bad in ["-1", "soon", "", "1e400"] {
            assert_eq!(wait(bad, now), None, "{bad}");
        }
    }
}
