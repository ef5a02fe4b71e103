//! [`Asker`]: sends a question over HTTP and reads the answer, with deadlines and repeats.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Url};
use rpc_core::backoff::Backoff;
use rpc_core::net::entropy;
use rpc_core::net::http::compressed;
use rpc_core::sync::Mutex;
use tokio::time::Instant;

use super::auth::Auth;
use super::client::{chain, is_loopback};
use super::failure_message::Subject;
use super::learnt::{Learnt, NOT_TAKEN};
use super::wait::in_headers;
use super::{HttpClient, RequestPolicy};
use crate::model::answer::AnswerReader;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::refusal::{Report, finds};
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

/// How long the first words of an answer wait for the mark that makes them a thought.
const FIRST_WORDS: Duration = Duration::from_millis(150);

/// Most models of an address to know.
const MAX_LEARNT: usize = 64;

/// An address with its headers.
pub(super) struct Asker {
    http: HttpClient,
    /// Whether an answer was read to its end, so that the next request may take the same connection.
    keeps: AtomicBool,
    url: Url,
    config: ModelConfig,
    auth: Mutex<Auth>,
    /// What is known of each model.
    learnt: Mutex<HashMap<String, Learnt>>,
}

/// A question: the body of a request.
pub(super) struct Query {
    pub(super) body: Bytes,
    /// The provider's name of the model.
    pub(super) model: String,
}

impl Asker {
    pub(super) fn new(
        http: &HttpClient,
        url: Url,
        config: &ModelConfig,
    ) -> Result<Self, ModelError> {
        // Fails here and not at the first question.
        http.client(&url, true)?;
        Ok(Self {
            http: http.clone(),
            keeps: AtomicBool::new(false),
            auth: Mutex::new(Auth::new(config, &url)?),
            url,
            config: config.clone(),
            learnt: Mutex::default(),
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
        let learnt = self.learnt.lock().get(&query.model).cloned();
        let asking = Asking {
            asker: Arc::clone(self),
            backoff: Backoff::new(self.config.policy.retry),
            learnt: learnt.unwrap_or_default(),
            refused: None,
            is_renewed: false,
            query,
            notices: VecDeque::new(),
            left_out: Vec::new(),
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

    fn subject<'a>(&'a self, query: &'a Query) -> Subject<'a> {
        let (config, url) = (&self.config, &self.url);
        let model = &query.model;
        Subject { config, model, url }
    }

    /// Reads the key and the headers again. Returns whether they have changed.
    fn renew(&self) -> bool {
        let config = self.config.renewed();
        let auth = config.and_then(|config| Auth::new(&config, &self.url));
        let Ok(auth) =
            auth.inspect_err(|error| tracing::warn!(%error, "the key cannot be read again"))
        else {
            return false;
        };
        let mut known = self.auth.lock();
        let is_new = known.headers != auth.headers;
        *known = auth;
        is_new
    }

    /// Changes what is known of a model.
    fn learn(&self, model: &str, change: impl FnOnce(&mut Learnt)) {
        let mut learnt = self.learnt.lock();
        if learnt.len() >= MAX_LEARNT && !learnt.contains_key(model) {
            learnt.clear();
        }
        change(learnt.entry(model.to_owned()).or_default());
    }

    /// Sends a question, on a connection that was kept or on a new one.
    async fn send(
        &self,
        query: &Query,
        body: &Bytes,
        may_be_kept: bool,
    ) -> Result<Response, Failed> {
        let client = self.http.client(&self.url, may_be_kept);
        let request = client
            .map_err(Failed::for_good)?
            .post(self.url.clone())
            .headers(self.auth.lock().headers.clone())
            .body(body.clone());
        let after = self.config.policy.head_timeout;
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
                    error: self.subject(query).unreachable(cause, again),
                    reason: format!("{cause}: no connection to the model"),
                    again,
                    is_lost,
                    ..Failed::for_good(ModelError::Cut)
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
    async fn attempt(&self, query: &Query, learnt: &Learnt) -> Result<Response, Failed> {
        let body = learnt.apply(&query.body);
        let response = match self.send(query, &body, true).await {
            // The provider has ended a kept connection just when it was used again.
            Err(failed) if failed.is_lost && self.keeps.swap(false, Ordering::Relaxed) => {
                self.send(query, &body, false).await?
            }
            other => other?,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let report = Report::read(&self.error_body(response).await);
        let status = Some(status.as_u16());
        let refusal = report.refusal(status);
        Err(self.refused(query, status, refusal, report, &headers))
    }

    fn refused(
        &self,
        query: &Query,
        status: Option<u16>,
        refusal: Refusal,
        report: Report,
        headers: &HeaderMap,
    ) -> Failed {
        let of_limits = || in_headers(headers, true).filter(|_| refusal == Refusal::RateLimit);
        let wait = in_headers(headers, false)
            .or(report.wait)
            .or_else(of_limits);
        let subject = self.subject(query);
        // A secret that was cut is not known as one.
        let says = excerpt(&self.auth.lock().redact(&report.message));
        Failed {
            reason: subject.what(status, refusal),
            error: subject.refused(status, refusal, &says, wait),
            // The reason counts, and not the status: a budget that is used up is reported as "too many requests".
            again: refusal.passes() && wait.is_none_or(|wait| wait <= self.config.policy.max_wait),
            is_lost: false,
            wait,
            report: Some(report),
        }
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
        let _ = tokio::time::timeout(self.config.policy.tail_timeout, read).await;
        body.truncate(MAX_ERROR_BYTES);
        if let Some(why) = compressed(response.headers(), &body) {
            return why;
        }
        String::from_utf8_lossy(&body).into_owned()
    }

    fn reading(self: &Arc<Self>, response: Response, learnt: &Learnt) -> Reading {
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        Reading {
            reader: AnswerReader::new(self.config.provider, &excerpt(kind))
                .with_closed_thoughts(learnt.closes_thoughts),
            asker: Arc::clone(self),
            response,
            failure: None,
            is_begun: false,
            since: Instant::now(),
            complete: None,
            waits: None,
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
    /// What it says.
    report: Option<Report>,
}

impl Failed {
    const fn for_good(error: ModelError) -> Self {
        Self {
            error,
            reason: String::new(),
            again: false,
            is_lost: false,
            wait: None,
            report: None,
        }
    }
}

/// A question that is asked until it is answered.
struct Asking {
    asker: Arc<Asker>,
    query: Query,
    /// What is left out of the request, or is about to be.
    learnt: Learnt,
    /// The refusal after which something was left out.
    refused: Option<ModelError>,
    /// Whether the key was read again.
    is_renewed: bool,
    /// What people are told next.
    notices: VecDeque<Notice>,
    /// What they are told if the request is taken.
    left_out: Vec<Notice>,
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
            if let Some(notice) = self.notices.pop_front() {
                return Some(Ok(Delta::Notice(notice)));
            }
            let failed = match &mut self.reading {
                Some(reading) => match reading.next().await? {
                    Ok(delta) => {
                        self.is_begun |= !matches!(delta, Delta::Usage(_));
                        let closes = reading.reader.closes_thoughts();
                        if closes != self.learnt.closes_thoughts
                            && matches!(delta, Delta::Finish(_))
                        {
                            let model = &self.query.model;
                            self.asker.learn(model, |it| it.closes_thoughts = closes);
                        }
                        return Some(Ok(delta));
                    }
                    Err(error) => self.reported(error),
                },
                None => {
                    if let Some(wait) = self.wait.take() {
                        tokio::time::sleep(wait).await;
                    }
                    match self.asker.attempt(&self.query, &self.learnt).await {
                        Ok(response) => {
                            self.reading = Some(self.asker.reading(response, &self.learnt));
                            self.taken();
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
    fn reported(&self, error: ModelError) -> Failed {
        match error {
            ModelError::Refused {
                status,
                refusal,
                message,
            } => {
                let report = Report::said(message);
                let asker = &self.asker;
                asker.refused(&self.query, status, refusal, report, &HeaderMap::new())
            }
            ModelError::BadAnswer { message } => {
                let message = self.asker.auth.lock().redact(&message);
                Failed::for_good(ModelError::BadAnswer { message })
            }
            other => Failed::for_good(other),
        }
    }

    /// Prepares another attempt, or returns the error.
    fn failed(&mut self, failed: Failed) -> Option<ModelError> {
        self.reading = None;
        let refusal = failed.error.refusal();
        if refusal == Some(Refusal::Key)
            && !self.is_begun
            && !std::mem::replace(&mut self.is_renewed, true)
            && self.asker.renew()
        {
            tracing::info!("the key was refused, and has changed: asking again");
            return None;
        }
        if let Some((member, instead)) = self.leave_out(&failed) {
            self.left_out.push(Notice::LeftOut { member, instead });
            self.refused.get_or_insert(failed.error);
            return None;
        }
        let again = failed.again && !self.is_begun;
        let Some(delay) = again.then(|| self.backoff.next_delay(entropy())).flatten() else {
            // What was left out has not helped, unless something else has happened since.
            let is_same = !refusal.is_none_or(Refusal::passes);
            let first = self.refused.take().filter(|_| is_same);
            return Some(first.unwrap_or(failed.error));
        };
        let wait = failed.wait.unwrap_or(delay);
        let reason = failed.reason;
        let notice = Notice::Retry { reason, wait };
        tracing::warn!("{notice}");
        self.notices.push_back(notice);
        self.wait = Some(wait);
        None
    }

    /// Remembers what was left out, after the request was taken without.
    fn taken(&mut self) {
        let model = &self.query.model;
        for notice in self.left_out.drain(..) {
            tracing::warn!(model, "{notice}");
            let refused = self.learnt.refused.clone();
            self.asker.learn(model, |it| it.refused.extend(refused));
            self.notices.push_back(notice);
        }
    }

    /// Leaves out the member that a refusal names, if there is one, or changes its name.
    fn leave_out(&mut self, failed: &Failed) -> Option<(String, Option<String>)> {
        let ModelError::Refused {
            status, refusal, ..
        } = failed.error
        else {
            return None;
        };
        let report = failed.report.as_ref().filter(|_| !self.is_begun)?;
        let says = report.message.to_lowercase();
        let is_meant = match (status, refusal) {
            // Only the answer may be too long.
            (_, Refusal::TooLong) => finds(r"\bmax_\w+\W+is too", &says),
            // A failure may have any reason.
            (Some(500 | 501), _) => finds(NOT_TAKEN, &says),
            (status, _) => matches!(status, None | Some(400 | 404 | 405 | 422)),
        };
        let body = is_meant.then_some(&self.query.body)?;
        self.learnt.learn(body, report)
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
    since: Instant,
    /// When the answer was complete.
    complete: Option<Instant>,
    /// Since when the first words wait.
    waits: Option<Instant>,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.reader.pop() {
                return Some(Ok(delta));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            if self.reader.is_done() {
                self.read_to_the_end().await;
                return None;
            }
            if let Err(error) = self.read().await {
                self.reader.release();
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
        } = self.asker.config.policy;
        let now = Instant::now();
        let left = |since, after: Duration| after.saturating_sub(now - since);
        let is_complete = self.reader.is_finished();
        let complete = is_complete.then(|| *self.complete.get_or_insert(now));
        // The wait that ends first. None of them begins again with a comment after the end.
        let (wait, after, left) = match (complete, total_timeout) {
            (Some(since), _) => (Wait::End, tail_timeout, left(since, tail_timeout)),
            (None, Some(total)) if left(self.since, total) < idle_timeout => {
                (Wait::End, total, left(self.since, total))
            }
            _ => (Wait::Piece, idle_timeout, idle_timeout),
        };
        let words = self.reader.waits().then(|| {
            let since = *self.waits.get_or_insert(now);
            FIRST_WORDS.saturating_sub(now - since)
        });
        let words = words.filter(|words| *words < left);
        let left = words.unwrap_or(left);
        let chunk = match left.is_zero() {
            true => None,
            false => tokio::time::timeout(left, self.response.chunk()).await.ok(),
        };
        if chunk.is_none() && words.is_some() {
            self.reader.release();
            return Ok(());
        }
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
            None if is_complete => self.reader.end(),
            None => Err(ModelError::TimedOut { wait, after }),
        }
    }
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
