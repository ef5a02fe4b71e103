//! [`Chats`]: the chats of the page. An answer goes on for a while when no page looks on, and all pages of a
//! chat see the same.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, SessionRef, StreamEvent};
use exoclaw_proto::net::{AppError, Gone};
use futures_util::stream;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use rpc_core::net::Cancellation;
use rpc_core::net::server::Body;
use rpc_core::sync::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::gateway::engine::{Engine, Forgotten, PageChat, Reply, unix_seconds};
use crate::gateway::memory::Turn;
use crate::web::{self, answer, text};

/// How long an answer goes on without a page.
const ALONE: Duration = Duration::from_secs(120);
/// How long a line to a page is silent at most.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Most answers at a time.
const MAX_RUNS: usize = 256;
/// Most events that a page may be behind; then it gets everything again.
const MAX_BEHIND: usize = 4096;
/// Most past turns that a page shows.
const MAX_TURNS: usize = 1000;
/// Most chats that a search looks at.
const MAX_SEARCHED: usize = 500;
/// The channel of the page's sessions. The peer is the chat's id.
const CHANNEL: &str = "web";
const ACCOUNT: &str = "browser";

/// Tells a proxy to pass on each piece at once.
const UNBUFFERED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// Returns whether a page has made this id, which cannot be guessed.
pub fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a page asks.
#[derive(Debug, Deserialize)]
struct Question {
    /// Its name. A question with the name of the last one takes its place, with its answer.
    id: String,
    content: String,
    /// Another model than the configured one.
    model: Option<String>,
    /// Where the chat begins, if it is new.
    from: Option<ForkPoint>,
}

/// What is looked for, and where.
#[derive(Debug, Deserialize)]
struct Search {
    words: String,
    chats: Vec<String>,
}

/// A question of another chat, where a new one begins.
#[derive(Debug, Deserialize)]
struct ForkPoint {
    chat: String,
    turn: String,
}

/// What a page wants forgotten.
#[derive(Debug, Deserialize)]
struct Known {
    subject: String,
    relation: String,
}

/// The chats of the page.
#[derive(Debug)]
pub struct Chats {
    engine: Arc<Engine>,
    open: Arc<Open>,
    runs: Mutex<JoinSet<()>>,
}

/// The chats that a page looks at or that are being answered, by their ids.
#[derive(Debug, Default)]
struct Open(Mutex<HashMap<String, Arc<Chat>>>);

impl Open {
    fn find(&self, id: &str) -> Option<Arc<Chat>> {
        self.0.lock().get(id).cloned()
    }

    fn enter(&self, id: &str) -> Arc<Chat> {
        let mut open = self.0.lock();
        Arc::clone(open.entry(id.to_owned()).or_insert_with(|| Chat::new(id)))
    }

    /// Forgets a chat without viewers that is not being answered.
    fn leave(&self, id: &str) {
        let mut open = self.0.lock();
        let is_over =
            |chat: &Arc<Chat>| *chat.pages.borrow() == 0 && chat.state.lock().run.is_none();
        if open.get(id).is_some_and(is_over) {
            open.remove(id);
        }
    }
}

/// One chat.
#[derive(Debug)]
struct Chat {
    session: SessionRef,
    state: Mutex<State>,
    /// The events, as lines.
    news: broadcast::Sender<Bytes>,
    /// How many pages look at it.
    pages: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<Run>,
    /// How often a run has begun or ended.
    changes: u64,
}

/// An answer in progress.
#[derive(Debug)]
struct Run {
    id: String,
    /// The events so far, as lines.
    lines_sent: Vec<u8>,
    stop: Arc<Notify>,
}

impl Chat {
    fn new(id: &str) -> Arc<Self> {
        Arc::new(Self {
            session: session(id),
            state: Mutex::default(),
            news: broadcast::Sender::new(MAX_BEHIND),
            pages: watch::Sender::new(0),
        })
    }

    /// Begins a run, unless there is one.
    fn begin(&self, question: &Question) -> Option<Arc<Notify>> {
        let mut state = self.state.lock();
        if state.run.is_some() {
            return None;
        }
        let asked = json!({ "id": question.id, "content": question.content, "at": unix_seconds() });
        let line = line(&json!({ "event": "asked", "data": asked }));
        let stop = Arc::new(Notify::new());
        state.changes += 1;
        state.run = Some(Run {
            id: question.id.clone(),
            lines_sent: line.to_vec(),
            stop: Arc::clone(&stop),
        });
        let _ = self.news.send(line);
        Some(stop)
    }

    fn emit(&self, event: &StreamEvent) {
        let Ok(event) = serde_json::to_value(event) else {
            return;
        };
        let line = line(&event);
        if let Some(run) = &mut self.state.lock().run {
            run.lines_sent.extend_from_slice(&line);
            let _ = self.news.send(line);
        }
    }

    /// Ends the run, if there is one, with its last event.
    fn end(&self, last: &Value) {
        let mut state = self.state.lock();
        if state.run.take().is_some() {
            state.changes += 1;
            let _ = self.news.send(line(last));
        }
    }

    fn stop(&self) {
        if let Some(run) = &self.state.lock().run {
            run.stop.notify_one();
        }
    }

    fn is_running(&self) -> bool {
        self.state.lock().run.is_some()
    }

    /// Waits until no page has looked for [`ALONE`].
    async fn alone(&self) {
        let mut pages = self.pages.subscribe();
        loop {
            let _ = pages.wait_for(|pages| *pages == 0).await;
            let back = pages.wait_for(|pages| *pages > 0);
            if timeout(ALONE, back).await.is_err() {
                return;
            }
        }
    }

    /// Returns everything so far, and what follows.
    async fn all(&self, engine: &Engine) -> Result<(Bytes, broadcast::Receiver<Bytes>), RpcError> {
        loop {
            let changes = self.state.lock().changes;
            let mut turns = engine.kept(&self.session, MAX_TURNS).await?;
            let state = self.state.lock();
            // A run that has begun or ended meanwhile may be among the turns, or not.
            if state.changes != changes {
                continue;
            }
            let running = state.run.as_ref();
            turns.pop_if(|last| running.is_some_and(|run| Some(&run.id) == last.id.as_ref()));
            let mut lines = past(&turns).to_vec();
            lines.extend_from_slice(running.map_or(&[], |run| &run.lines_sent));
            return Ok((lines.into(), self.news.subscribe()));
        }
    }
}

/// Ends a run, however its task ends.
struct Ending(Arc<Chat>);

impl Drop for Ending {
    fn drop(&mut self) {
        let last = json!({ "event": "error", "data": "the gateway has failed" });
        self.0.end(&last);
    }
}

/// Tells the pages of a chat.
struct PageReply(Arc<Chat>);

#[async_trait]
impl Reply for PageReply {
    async fn event(&mut self, event: StreamEvent) -> Result<(), Gone> {
        self.0.emit(&event);
        Ok(())
    }
}

/// A page that looks at a chat. Dropping it leaves the chat.
struct Page {
    id: String,
    chat: Arc<Chat>,
    open: Arc<Open>,
    engine: Arc<Engine>,
    news: Option<broadcast::Receiver<Bytes>>,
    stopping: Option<Cancellation>,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.chat.pages.send_modify(|pages| *pages -= 1);
        self.open.leave(&self.id);
    }
}

impl Page {
    /// Returns what comes next; `None` if the gateway stops, after the answer in progress.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(news) = &mut self.news else {
                let all = self.chat.all(&self.engine).await.ok()?;
                self.news = Some(all.1);
                return Some(all.0);
            };
            let stopping = self.stopping.as_mut();
            let is_stopping = stopping.as_ref().is_some_and(|it| it.is_cancelled());
            if is_stopping && !self.chat.is_running() && news.is_empty() {
                return None;
            }
            tokio::select! {
                line = news.recv() => match line {
                    Ok(line) => return Some(line),
                    Err(_) => self.news = None,
                },
                () = stopped(stopping), if !is_stopping => {}
                () = sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b"\n")),
            }
        }
    }
}

async fn stopped(stopping: Option<&mut Cancellation>) {
    match stopping {
        Some(stopping) => stopping.cancelled().await,
        None => pending().await,
    }
}

impl Chats {
    /// Creates the chats of this engine's page.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            open: Arc::default(),
            runs: Mutex::default(),
        }
    }

    /// Tells a page what was said in a chat, and then what happens, as lines of JSON. An empty line says that
    /// nothing happens.
    pub fn follow(&self, id: &str, stopping: Option<Cancellation>) -> Response<Body> {
        let chat = self.open.enter(id);
        chat.pages.send_modify(|pages| *pages += 1);
        let page = Page {
            id: id.to_owned(),
            chat,
            open: Arc::clone(&self.open),
            engine: Arc::clone(&self.engine),
            news: None,
            stopping,
        };
        let pieces = stream::unfold(page, |mut page| async { Some((page.next().await?, page)) });
        let answer = answer(StatusCode::OK, "application/x-ndjson", Bytes::new());
        let mut answer = answer.map(|_| Body::stream(pieces));
        answer.headers_mut().extend([UNBUFFERED]);
        answer
    }

    /// Begins to answer a question.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the question unanswered. A chat that begins as a copy may be there without it.
    pub async fn ask(&self, id: &str, body: &Bytes) -> Response<Bytes> {
        let question = rpc_core::json::from_slice::<Question>(body).ok();
        let fits = |it: &Question| {
            is_id(&it.id)
                && !it.content.trim().is_empty()
                && it.from.as_ref().is_none_or(|from| is_id(&from.chat))
        };
        let Some(question) = question.filter(fits) else {
            let why = "send an id of 32 hexadecimal digits and a content";
            return text(StatusCode::BAD_REQUEST, why);
        };
        let chat = self.open.enter(id);
        if let Some(ForkPoint { chat: other, turn }) = &question.from {
            let copied = self.engine.copy(&session(other), turn, &chat.session).await;
            if let Err(error) = copied {
                self.open.leave(id);
                return failed(&error);
            }
        }
        let mut runs = self.runs.lock();
        while runs.try_join_next().is_some() {}
        if runs.len() >= MAX_RUNS {
            let why = "too many questions are being answered; try again";
            return text(StatusCode::SERVICE_UNAVAILABLE, why);
        }
        let Some(stop) = chat.begin(&question) else {
            let why = "another question of this chat is being answered";
            return text(StatusCode::CONFLICT, why);
        };
        let (id, open) = (id.to_owned(), Arc::clone(&self.open));
        let engine = Arc::clone(&self.engine);
        runs.spawn(async move {
            let ending = Ending(Arc::clone(&chat));
            let last = run(&engine, &chat, &question, &stop).await;
            chat.end(&last);
            drop(ending);
            open.leave(&id);
        });
        text(StatusCode::ACCEPTED, "")
    }

    /// Returns the configured model, and those that the provider lists.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn models(&self) -> Response<Bytes> {
        let models = self.engine.models().await;
        web::json(json!({ "model": self.engine.model(), "models": models }).to_string())
    }

    /// Returns which of some chats have these words in a question or an answer.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn search(&self, body: &Bytes) -> Response<Bytes> {
        let Ok(Search { words, chats }) = rpc_core::json::from_slice(body) else {
            return text(StatusCode::BAD_REQUEST, "send words, and the ids of chats");
        };
        let words = words.to_lowercase();
        let mut found = Vec::new();
        for id in chats.iter().filter(|id| is_id(id)).take(MAX_SEARCHED) {
            let turns = self.engine.kept(&session(id), MAX_TURNS).await;
            let has = |text: &str| text.to_lowercase().contains(&words);
            if turns.is_ok_and(|turns| turns.iter().any(|it| has(&it.user) || has(&it.assistant))) {
                found.push(id);
            }
        }
        web::json(json!(found).to_string())
    }

    /// Stops the answer of a chat, if there is one.
    pub fn stop(&self, id: &str) -> Response<Bytes> {
        if let Some(chat) = self.open.find(id) {
            chat.stop();
        }
        text(StatusCode::NO_CONTENT, "")
    }

    /// Stops the answer of a chat, and forgets the chat.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either forgotten or not.
    pub async fn delete(&self, id: &str) -> Response<Bytes> {
        let chat = self.open.find(id).unwrap_or_else(|| Chat::new(id));
        chat.stop();
        if let Err(error) = self.engine.delete(&chat.session).await {
            return failed(&error);
        }
        let _ = chat.news.send(past(&[]));
        text(StatusCode::NO_CONTENT, "")
    }

    /// Returns what is known from a chat, as JSON.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn memory(&self, id: &str) -> Response<Bytes> {
        match self.engine.entities(&session(id)).await {
            Ok(known) => web::json(json!(known).to_string()),
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the memory cannot be read",
            ),
        }
    }

    /// Forgets what is known from a chat of one relation of a subject.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either forgotten or not.
    pub async fn forget(&self, id: &str, body: &Bytes) -> Response<Bytes> {
        let Ok(known) = rpc_core::json::from_slice::<Known>(body) else {
            let why = "send the subject and the relation to forget";
            return text(StatusCode::BAD_REQUEST, why);
        };
        let asked = Forgotten {
            session: session(id),
            subject: known.subject,
            relation: known.relation,
        };
        match self.engine.forget(&asked).await {
            Ok(true) => text(StatusCode::NO_CONTENT, ""),
            Ok(false) => text(StatusCode::NOT_FOUND, "that is not known"),
            Err(error) => failed(&error),
        }
    }

    /// Stops all answers. Returns how many there were.
    ///
    /// # Cancel safety
    /// Dropping the future leaves them to stop by themselves.
    pub async fn close(&self) -> usize {
        let mut runs = std::mem::take(&mut *self.runs.lock());
        while runs.try_join_next().is_some() {}
        let count = runs.len();
        runs.shutdown().await;
        count
    }
}

fn failed(error: &RpcError) -> Response<Bytes> {
    let why = error.message().to_owned();
    text(StatusCode::INTERNAL_SERVER_ERROR, why)
}

/// Answers a question, until it is stopped or has had no viewers for long. Returns the last event.
async fn run(engine: &Engine, chat: &Arc<Chat>, question: &Question, stop: &Notify) -> Value {
    let mut ask = ChatSend::new(CHANNEL, ACCOUNT, &*question.content);
    ask.session.peer.clone_from(&chat.session.peer);
    let mut reply = PageReply(Arc::clone(chat));
    let page = PageChat {
        id: Some(&question.id),
        model: question.model.as_deref(),
    };
    let outcome = tokio::select! {
        outcome = engine.answer(&ask, page, &mut reply) => outcome,
        () = stop.notified() => Err(Gone.into()),
        () = chat.alone() => Err(Gone.into()),
    };
    match outcome {
        Ok(()) => json!({ "event": "done" }),
        Err(AppError::Refused(error) | AppError::Failed(error)) => {
            json!({ "event": "error", "data": error.message() })
        }
        Err(_) => {
            // Until it is stored.
            let _ = engine.ended(&chat.session).await;
            json!({ "event": "stopped" })
        }
    }
}

/// Returns the session of a chat.
fn session(id: &str) -> SessionRef {
    let mut session = SessionRef::new(CHANNEL, ACCOUNT);
    session.peer = Some(id.into());
    session
}

/// The event with what was said before.
fn past(turns: &[Turn]) -> Bytes {
    let turns = turns.iter().map(|turn| {
        json!({
            "id": turn.id, "user": turn.user, "assistant": turn.assistant, "asked": turn.asked, "at": turn.at,
            "mark": turn.mark.as_ref().map(ToString::to_string), "usage": turn.usage,
        })
    });
    line(&json!({ "event": "past", "data": turns.collect::<Vec<_>>() }))
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

#[cfg(test)]
mod tests;
