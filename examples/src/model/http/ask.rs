//! [`Asker`]: sends a question over HTTP and reads the answer, with deadlines and repeats.

use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use rpc_core::Secret;
use rpc_core::backoff::Backoff;
use rpc_core::net::entropy;
use tokio::time::Instant;

use super::client::{chain, is_loopback};
use super::{HttpClient, RequestPolicy};
use crate::model::answer::{AnswerDecoder, Dialect};
use crate::model::error::quote;
use crate::model::{Delta, Deltas, ModelError, Wait};

/// The most bytes to read of an answer that reports an error.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// How long the bytes after a complete answer may take.
const LAST_BYTES: Duration = Duration::from_millis(50);

/// An address with its headers.
pub(super) struct Asker {
    client: Client,
    url: Url,
    headers: HeaderMap,
    policy: RequestPolicy,
    /// Texts that must not be revealed.
    private: Vec<Secret>,
}

impl Asker {
    pub(super) fn new(
        http: &HttpClient,
        url: Url,
        mut headers: HeaderMap,
        key: Option<&Secret>,
        policy: RequestPolicy,
    ) -> Result<Self, ModelError> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        // The longest first: an address may hold the others.
        let mut private = vec![
            Secret::from(url.as_str()),
            Secret::from(url.origin().ascii_serialization()),
        ];
        private.extend(key.map(|key| Secret::from(key.expose().trim())));
        private.retain(|text| !text.expose().is_empty());
        Ok(Self {
            client: http.client(&url)?,
            url,
            headers,
            policy,
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

    /// Asks until there is an answer, or a retry cannot help.
    pub(super) async fn ask<D: Dialect>(&self, body: Bytes) -> Result<Deltas, ModelError> {
        let mut backoff = Backoff::new(self.policy.retry);
        loop {
            let failed = match self.attempt(&body).await {
                Ok(response) => return Ok(self.deltas::<D>(response)),
                Err(failed) => failed,
            };
            if !failed.again {
                return Err(failed.error);
            }
            let Some(delay) = backoff.next_delay(entropy()) else {
                return Err(failed.error);
            };
            tracing::info!(error = %failed.error, "asking the model again");
            tokio::time::sleep(failed.wait.unwrap_or(delay)).await;
        }
    }

    /// Makes one attempt. Returns the answer's head, or an error and the wait that the provider
    /// requests.
    async fn attempt(&self, body: &Bytes) -> Result<Response, Failed> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body.clone());
        let after = self.policy.head_timeout;
        let response = match tokio::time::timeout(after, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let again = error.is_connect();
                let message = plain_words(&error).to_owned();
                let error = error.without_url();
                tracing::info!(error = chain(&error), "the model cannot be reached");
                let error = ModelError::Unreachable { message };
                return Err(Failed {
                    error,
                    // Anything later may have been dealt with, and charged.
                    again,
                    wait: None,
                });
            }
            // A model that thinks for long will think as long again.
            Err(_) => {
                let wait = Wait::Head;
                return Err(Failed {
                    error: ModelError::TimedOut { wait, after },
                    again: false,
                    wait: None,
                });
            }
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let status = status.as_u16();
        let wait = retry_after(response.headers());
        let body = self.error_body(response).await;
        let message = redact(&self.private, &quote(&body));
        let passes = match status {
            408 | 500 | 502 | 503 | 504 | 529 => true,
            // A used-up budget is reported as "too many requests", but no wait helps.
            429 => !body.contains("insufficient_quota"),
            _ => false,
        };
        Err(Failed {
            error: ModelError::Status { status, message },
            again: passes && wait.is_none_or(|wait| wait <= self.policy.max_wait),
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
        String::from_utf8_lossy(&body).into_owned()
    }

    fn deltas<D: Dialect>(&self, response: Response) -> Deltas {
        let reading = Reading {
            response,
            decoder: AnswerDecoder::<D>::default(),
            failure: None,
            over: false,
            policy: self.policy,
            since: Instant::now(),
            complete: None,
            private: self.private.clone(),
        };
        stream::unfold(reading, |mut reading| async move {
            let next = reading.next().await?;
            Some((next, reading))
        })
        .boxed()
    }
}

struct Failed {
    error: ModelError,
    again: bool,
    wait: Option<Duration>,
}

/// An answer that is being read.
struct Reading<D> {
    response: Response,
    decoder: AnswerDecoder<D>,
    /// Reported after the earlier pieces.
    failure: Option<ModelError>,
    over: bool,
    policy: RequestPolicy,
    since: Instant,
    /// When the answer was complete.
    complete: Option<Instant>,
    private: Vec<Secret>,
}

impl<D: Dialect> Reading<D> {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.decoder.pop() {
                return Some(Ok(delta));
            }
            if let Some(failure) = self.failure.take() {
                self.over = true;
                let failure = failure.with_words(|text| redact(&self.private, text));
                return Some(Err(failure));
            }
            if self.over {
                return None;
            }
            if self.decoder.is_done() {
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
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        // A provider that keeps the line open all the same only costs a new connection.
        let _ = tokio::time::timeout(LAST_BYTES, rest).await;
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        let RequestPolicy {
            idle_timeout,
            tail_timeout,
            total_timeout,
            ..
        } = self.policy;
        let now = Instant::now();
        let complete = self.decoder.is_finished();
        // The wait that ends first. None of them begins anew with a comment after the end.
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
            Some(Ok(Some(chunk))) => self.decoder.push(&chunk),
            // A line that is lost after the answer loses nothing; before its end, `end` says so.
            Some(Ok(None) | Err(_)) => self.decoder.end(),
            None if complete => self.decoder.end(),
            None => Err(ModelError::TimedOut { wait, after }),
        }
    }
}

/// Returns the wait, given in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    let after = text(RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text| httpdate::parse_http_date(text).ok();
    // By the provider's clock, which may go wrong together with the date.
    let now = text(DATE).and_then(date).unwrap_or_else(SystemTime::now);
    // A date that has passed is no reason to wait.
    Some(date(after)?.duration_since(now).unwrap_or_default())
}

/// Removes secrets from a text: providers repeat an unknown key, and proxies the address. A short
/// text, or one within a word, is not a secret but part of the message.
fn redact(private: &[Secret], text: &str) -> String {
    const HIDDEN: &str = "***";
    /// The shortest text to treat as a secret.
    const MIN: usize = 8;
    const MIN_PART: usize = 4;
    let private = private.iter().map(|private| private.expose().as_str());
    let private: Vec<_> = private.filter(|private| private.len() >= MIN).collect();
    let mut text = private.iter().fold(text.to_owned(), |text, private| {
        let mut out = String::new();
        let mut rest = 0;
        for (at, _) in text.match_indices(private) {
            if is_word(&text, at, at + private.len()) {
                out.push_str(text.get(rest..at).unwrap_or_default());
                out.push_str(HIDDEN);
                rest = at + private.len();
            }
        }
        out.push_str(text.get(rest..).unwrap_or_default());
        out
    });
    // What was cut to a length may end in the middle of a secret.
    let Some(end) = text.strip_suffix('…').map(str::len) else {
        return text;
    };
    let said = text.get(..end).unwrap_or_default();
    let part = |private: &&str| {
        let mut lengths = (MIN_PART..private.len()).rev();
        lengths.find(|length| {
            private.get(..*length).is_some_and(|part| {
                let start = said.len().saturating_sub(part.len());
                said.ends_with(part) && is_word(said, start, said.len())
            })
        })
    };
    if let Some(length) = private.iter().filter_map(part).max() {
        text.replace_range(end - length..end, HIDDEN);
    }
    text
}

/// Returns whether no letter or digit comes directly before or after this part of a text.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let part = text.get(start..end).unwrap_or_default();
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let goes_on = |outside: Option<char>, inside: Option<char>| {
        outside.is_some_and(char::is_alphanumeric) && inside.is_some_and(char::is_alphanumeric)
    };
    !goes_on(before.chars().next_back(), part.chars().next())
        && !goes_on(after.chars().next(), part.chars().next_back())
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
        "connection lost"
    };
    for cause in causes {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(ConnectionRefused) => return "connection refused",
            Some(TimedOut) => return "connection timed out",
            Some(HostUnreachable | NetworkUnreachable) => return "host unreachable",
            Some(ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof) => {
                otherwise = "connection lost";
            }
            // A certificate that is not trusted, as a rule.
            Some(InvalidData) => otherwise = "no trusted TLS connection",
            _ if cause.to_string().starts_with("dns error") => otherwise = "host not found",
            _ => {}
        }
    }
    otherwise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_key_is_told_that_means_something() {
        let private = ["http://h/x", "http://h", "sk-hünter2"].map(Secret::from);
        for (text, told) in [
            ("nothing", "nothing"),
            ("at http://h/x for sk-hünter2", "at *** for ***"),
            ("for sk-hünter2…", "for ***…"),
            ("for sk-hünte…", "for ***…"),
            ("at http://h…", "at ***…"),
            ("at http:…", "at ***…"),
            ("for sk-h…", "for ***…"),
            ("for sk-…", "for sk-…"),
            ("for sk-h", "for sk-h"),
            ("…", "…"),
            ("(sk-hünter2)", "(***)"),
            ("ask-hünter2", "ask-hünter2"),
            ("sk-hünter22 or sk-hünter2", "sk-hünter22 or ***"),
            ("at http://h:8080", "at ***:8080"),
            ("at http://here", "at http://here"),
            ("the ask-h…", "the ask-h…"),
        ] {
            assert_eq!(redact(&private, text), told);
        }
    }

    #[test]
    fn a_short_key_leaves_messages_whole() {
        let private = ["t", "k", "sk-1234"].map(Secret::from);
        for text in ["too many tokens: t", "sk-1234 is no key", "a task…"] {
            assert_eq!(redact(&private, text), text);
        }
    }

    #[test]
    fn the_waiting_time_is_a_number_or_a_date() {
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
