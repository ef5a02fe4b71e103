//! [`Asker`]: sends a question over HTTP and reads the answer, with deadlines and repeats.

use std::collections::HashMap;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use rpc_core::backoff::Backoff;
use rpc_core::net::entropy;
use rpc_core::net::http::compressed;
use rpc_core::sync::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::auth::Auth;
use super::client::{chain, client};
use super::failure_message::{refused, unreachable};
use super::learnt::{Learnt, NOT_TAKEN};
use super::wait::in_headers;
use crate::model::answer::AnswerReader;
use crate::model::config::ModelConfig;
use crate::model::error::excerpt;
use crate::model::refusal::{Report, finds};
use crate::model::{Delta, Deltas, ModelError, Notice, Refusal};

/// The most bytes to read of an answer that reports an error.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// The most bytes of a list of models, and how long it may take.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// What a lost connection is called.
const LOST: &str = "connection lost";

/// What a refused certificate is called.
pub(super) const UNTRUSTED: &str = "no trusted TLS connection";

/// How long the bytes after a complete answer may take.
const LAST_BYTES: Duration = Duration::from_millis(50);

/// How long the first words of an answer wait for the mark that makes them a thought.
const FIRST_WORDS: Duration = Duration::from_millis(150);

/// Most pieces of an answer that wait for whoever reads it: what comes at once is passed on at once.
const MAX_PIECES: usize = 256;

/// Most models of an address to know.
const MAX_LEARNT: usize = 64;

/// An address with its headers.
pub(super) struct Asker {
    client: Client,
    /// Whether an answer was read to its end, so that the next request may take the same connection.
    keeps: AtomicBool,
    pub(super) url: Url,
    pub(super) config: ModelConfig,
    auth: Mutex<Auth>,
    /// What is known of each model.
    learnt: Mutex<HashMap<String, Learnt>>,
}

/// A question.
#[derive(Debug)]
pub(super) struct Query {
    /// The body of the request.
    pub(super) body: Bytes,
    /// The same with words in place of calls with which this model has given nothing, if there are any.
    pub(super) in_words: Option<Bytes>,
    /// The provider's name of the model.
    pub(super) model: String,
    /// The names of the tools that are offered.
    pub(super) tools: Vec<String>,
}

/// Takes the pieces of an answer. Nobody needs them any more if it is closed; then the stream is dropped, too.
type Pieces = mpsc::Sender<Result<Delta, ModelError>>;

impl Asker {
    pub(super) fn new(url: Url, config: ModelConfig) -> Result<Self, ModelError> {
        Ok(Self {
            client: client(&url, true)?,
            keeps: AtomicBool::new(false),
            auth: Mutex::new(Auth::new(&config, &url)?),
            url,
            config,
            learnt: Mutex::default(),
        })
    }

    /// Returns what the server has at another address, if that is no error and comes soon.
    pub(super) async fn get(&self, url: Url) -> Option<Vec<u8>> {
        let mut headers = self.auth.lock().headers.clone();
        headers.remove(CONTENT_TYPE);
        let asked = async {
            let mut response = self.client.get(url).headers(headers).send().await.ok()?;
            response = response.error_for_status().ok()?;
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.ok()? {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_LIST_BYTES {
                    return None;
                }
            }
            Some(body)
        };
        timeout(LIST_TIMEOUT, asked).await.ok()?
    }

    /// Asks when the answer is first polled, and again until there is one or a retry cannot help.
    pub(super) fn ask(self: &Arc<Self>, query: Query) -> Deltas {
        let asker = Arc::clone(self);
        let (pieces, mut receiver) = mpsc::channel(MAX_PIECES);
        let asking = async move {
            if let Err(error) = asker.answer(&query, &pieces).await {
                pieces.send(Err(error)).await.ok();
            }
        };
        let asking = stream::once(asking).filter_map(|()| ready(None));
        let answer = stream::poll_fn(move |cx| receiver.poll_recv(cx));
        stream::select(answer, asking).boxed()
    }

    async fn answer(&self, query: &Query, out: &Pieces) -> Result<(), ModelError> {
        let mut learnt = self.learnt.lock().get(&query.model).cloned();
        let learnt = learnt.get_or_insert_default();
        let mut backoff = Backoff::new(self.config.policy.retry);
        let (mut is_renewed, mut is_begun) = (false, false);
        let (since, mut last) = (Instant::now(), None);
        // What was left out since the last answer, and the refusal before that.
        let (mut left_out, mut first) = (Vec::new(), None);
        loop {
            let failed = match self.attempt(query, learnt).await {
                Ok(response) => {
                    for notice in left_out.drain(..) {
                        tracing::info!(model = query.model, "{notice}");
                        self.learn(&query.model, |it| it.refused.extend(learnt.refused.clone()));
                        out.send(Ok(Delta::Notice(notice))).await.ok();
                    }
                    match self.read(query, response, learnt, &mut is_begun, out).await {
                        Ok(()) => return Ok(()),
                        Err(error) => self.reported(query, error),
                    }
                }
                Err(failed) => failed,
            };
            if is_begun {
                return Err(failed.error);
            }
            let refusal = failed.error.refusal();
            if refusal == Some(Refusal::Key) && !is_renewed && self.renew() {
                tracing::info!("the key was refused, and has changed: asking again");
                is_renewed = true;
                continue;
            }
            if let Some((member, instead)) = leave_out(learnt, query, &failed) {
                left_out.push(Notice::LeftOut { member, instead });
                first.get_or_insert(failed.error);
                continue;
            }
            let delay = failed
                .again
                .then(|| backoff.next_delay(entropy()))
                .flatten();
            // A server that loads its model is there soon.
            let is_unready = matches!(
                failed.error,
                ModelError::Refused {
                    status: Some(503),
                    ..
                }
            );
            let says = failed.report.as_ref().map(|it| it.message.to_lowercase());
            let is_loading = is_unready && says.is_some_and(|it| it.contains("loading"));
            let has_time = is_loading && since.elapsed() < self.config.policy.head_timeout;
            let delay = delay.or(last.filter(|_| has_time));
            last = delay;
            let Some(delay) = delay else {
                // What was left out has not helped, unless something else has happened since.
                let is_same = !refusal.is_none_or(Refusal::passes);
                return Err(first.filter(|_| is_same).unwrap_or(failed.error));
            };
            let (reason, wait) = (failed.reason, failed.wait.unwrap_or(delay));
            let notice = Notice::Retry { reason, wait };
            tracing::warn!("{notice}");
            out.send(Ok(Delta::Notice(notice))).await.ok();
            sleep(wait).await;
        }
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

    async fn send(&self, client: &Client, body: &Bytes) -> Result<Response, Failed> {
        let headers = self.auth.lock().headers.clone();
        let request = client.post(self.url.clone()).headers(headers);
        let after = self.config.policy.head_timeout;
        // A model that thinks for long will think as long again.
        let what = "request timed out";
        let sent = timeout(after, request.body(body.clone()).send()).await;
        sent.map_err(|_| ModelError::TimedOut { what, after })?
            .map_err(|error| {
                // Anything later may have been handled, and charged.
                let again = error.is_connect();
                let cause = plain_words(&error);
                let error = error.without_url();
                tracing::info!(error = chain(&error), "the model cannot be reached");
                Failed {
                    reason: format!("{cause}: no connection to the model"),
                    again,
                    is_lost: !again && cause == LOST,
                    ..unreachable(&self.config, &self.url, cause, again).into()
                }
            })
    }

    /// Makes one attempt. Returns the answer's head, or an error.
    async fn attempt(&self, query: &Query, learnt: &Learnt) -> Result<Response, Failed> {
        let body = learnt.apply(query);
        let response = match self.send(&self.client, &body).await {
            // The provider has ended a kept connection just when it was used again.
            Err(failed) if failed.is_lost && self.keeps.swap(false, Ordering::Relaxed) => {
                self.send(&client(&self.url, false)?, &body).await?
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
        // A secret that was cut is not known as one.
        let says = excerpt(&self.auth.lock().redact(&report.message));
        let (reason, error) = refused(&self.config, &query.model, status, refusal, &says, wait);
        Failed {
            error,
            reason,
            // The reason counts, and not the status: a budget that is used up is reported as "too many requests".
            again: refusal.passes() && wait.is_none_or(|wait| wait <= self.config.policy.max_wait),
            is_lost: false,
            wait,
            report: Some(report),
        }
    }

    /// Reads what an error in an answer says.
    fn reported(&self, query: &Query, error: ModelError) -> Failed {
        match error {
            ModelError::Refused {
                status,
                refusal,
                message,
            } => {
                let report = Report::of_message(message);
                self.refused(query, status, refusal, report, &HeaderMap::new())
            }
            ModelError::BadAnswer { message } => {
                let message = self.auth.lock().redact(&message);
                ModelError::BadAnswer { message }.into()
            }
            other => other.into(),
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
        timeout(self.config.policy.tail_timeout, read).await.ok();
        body.truncate(MAX_ERROR_BYTES);
        compressed(response.headers(), &body)
            .unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned())
    }

    /// Reads an answer. `is_begun` becomes whether people may have seen a part of it.
    async fn read(
        &self,
        query: &Query,
        mut response: Response,
        learnt: &Learnt,
        is_begun: &mut bool,
        out: &Pieces,
    ) -> Result<(), ModelError> {
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut reader = AnswerReader::new(self.config.provider, &excerpt(kind))
            .with_closed_thoughts(learnt.closes_thoughts);
        if !learnt.refused.contains_key("tools") {
            reader = reader.with_tools(&query.tools);
        }
        let mut times = Times {
            head: Instant::now(),
            complete: None,
            words: None,
            has_bytes: false,
        };
        while !reader.is_done() {
            let read = self.read_more(&mut response, &mut reader, &mut times).await;
            if read.is_err() {
                reader.release();
            }
            while let Some(mut delta) = reader.pop() {
                *is_begun |= !matches!(delta, Delta::Usage(_));
                if let Delta::Usage(usage) = &mut delta {
                    // A token has a byte, but for pictures elsewhere and hidden thoughts, which have bounds.
                    let prompt = query.body.len().max(self.config.context_tokens);
                    let most = usize::try_from(self.config.max_tokens).unwrap_or(usize::MAX);
                    *usage = usage.at_most(prompt, reader.bytes().max(most));
                }
                let closes = reader.closes_thoughts();
                if matches!(delta, Delta::Finish(_)) && closes != learnt.closes_thoughts {
                    self.learn(&query.model, |it| it.closes_thoughts = closes);
                }
                out.send(Ok(delta)).await.ok();
            }
            read?;
        }
        // The connection can be used again after its last bytes. A provider that keeps the line open all the same only
        // costs a new connection.
        let rest = async {
            while let Ok(rest) = response.chunk().await {
                if rest.is_none() {
                    self.keeps.store(true, Ordering::Relaxed);
                    break;
                }
            }
        };
        timeout(LAST_BYTES, rest).await.ok();
        Ok(())
    }

    async fn read_more(
        &self,
        response: &mut Response,
        reader: &mut AnswerReader,
        times: &mut Times,
    ) -> Result<(), ModelError> {
        let policy = self.config.policy;
        let now = Instant::now();
        let left = |since, after: Duration| after.saturating_sub(now - since);
        // The wait that ends first. None of them begins again with a comment after the end.
        let (what, after, left_all) = match (reader.is_finished(), policy.total_timeout) {
            (true, _) => {
                let since = *times.complete.get_or_insert(now);
                (
                    "end timed out",
                    policy.tail_timeout,
                    left(since, policy.tail_timeout),
                )
            }
            (_, Some(total)) if left(times.head, total) < policy.idle_timeout => {
                ("answer timed out", total, left(times.head, total))
            }
            _ => (
                "stream idle timeout",
                policy.idle_timeout,
                policy.idle_timeout,
            ),
        };
        let words = reader
            .waits()
            .then(|| left(*times.words.get_or_insert(now), FIRST_WORDS));
        let until = words.map_or(left_all, |words| words.min(left_all));
        let chunk = match until.is_zero() {
            true => None,
            false => timeout(until, response.chunk()).await.ok(),
        };
        match chunk {
            Some(Ok(Some(chunk))) => {
                let is_first = !std::mem::replace(&mut times.has_bytes, true);
                match is_first
                    .then(|| compressed(response.headers(), &chunk))
                    .flatten()
                {
                    Some(message) => Err(ModelError::BadAnswer { message }),
                    None => reader.push(&chunk),
                }
            }
            // A line that is lost after the answer loses nothing; before its end, `end` says so.
            Some(end) => {
                self.keeps.fetch_or(end.is_ok(), Ordering::Relaxed);
                reader.end()
            }
            None if until < left_all => {
                reader.release();
                Ok(())
            }
            None if reader.is_finished() => reader.end(),
            None => Err(ModelError::TimedOut { what, after }),
        }
    }
}

/// The times of an answer: of its head, when it was complete, and since when its first words wait.
struct Times {
    head: Instant,
    complete: Option<Instant>,
    words: Option<Instant>,
    has_bytes: bool,
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

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
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

/// Leaves out the member that a refusal names, if there is one, or changes its name.
fn leave_out(
    learnt: &mut Learnt,
    query: &Query,
    failed: &Failed,
) -> Option<(String, Option<String>)> {
    let ModelError::Refused {
        status, refusal, ..
    } = failed.error
    else {
        return None;
    };
    let report = failed.report.as_ref()?;
    let says = report.message.to_lowercase();
    let is_meant = match (status, refusal) {
        // Only the answer may be too long.
        (_, Refusal::TooLong) => finds(r"\bmax_\w+\W+is too", &says),
        // A smaller answer may cost less than is left.
        (Some(402), _) => finds("max_", &says),
        // A failure may have any reason.
        (Some(500 | 501), _) => finds(NOT_TAKEN, &says),
        (status, _) => matches!(status, None | Some(400 | 404 | 405 | 422)),
    };
    learnt.learn(is_meant.then_some(query)?, report)
}

/// Describes an error without the names of hosts.
fn plain_words(error: &reqwest::Error) -> &'static str {
    use io::ErrorKind::*;
    let first = error as &dyn std::error::Error;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    let known = causes.find_map(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let text = cause.to_string();
        match kind {
            Some(ConnectionRefused) => Some("connection refused"),
            Some(TimedOut) => Some("connection timed out"),
            Some(HostUnreachable | NetworkUnreachable) => Some("host unreachable"),
            // A certificate that is not trusted, as a rule.
            Some(InvalidData) => Some(UNTRUSTED),
            _ if text.starts_with("dns error") => Some("host not found"),
            _ if text.starts_with("invalid HTTP") || text.starts_with("message head") => {
                Some("unreadable answer")
            }
            _ => None,
        }
    });
    known.unwrap_or(match (error.is_timeout(), error.is_connect()) {
        (true, _) => "connection timed out",
        (_, true) => "connection failed",
        _ => LOST,
    })
}
