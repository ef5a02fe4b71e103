//! [`Memory`]: what was done in conversations before, on a log.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::id::{ResourceId, SessionId};
use rpc_core::store::{
    Session, SessionEntry, SessionLog, SessionLogConfig, SessionState, Store, StoreError,
};
use rpc_core::sync::Mutex;
use serde::{Deserialize, Serialize};
use snek_proto::llm::chat::{ChatMessage, Role};
use tokio::sync::OnceCell;

use crate::daemon::diff::Diff;
use crate::daemon::workspace::Change;
use crate::model::extra;
use crate::text::shortened;

/// The name of the log.
const LOG: &str = "daemon_sessions";
/// The subject of the changes of all sessions.
const CHANGES: &str = "changes";
/// How long a conversation is remembered that does not go on, and the bytes of all of them.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const MAX_BYTES: u64 = 512 * 1024 * 1024;
/// Messages that the model has refused, and of conversations that are looked at without the log.
const MAX_SCOPES: usize = 64;
/// Chats that are kept of each.
const MAX_CHATS: usize = 20;
/// Characters that are kept of a question, and of its answer.
const MAX_CHARS: usize = 300;
/// Bytes that are kept of what only providers know.
const MAX_GIVEN: usize = 16 * 1024 * 1024;
/// Bytes that are kept of files before and after changes.
const MAX_CHANGED: usize = 32 * 1024 * 1024;

/// What was done in conversations before. A chat with a `sessionId` is kept under its `resourceId`, where other
/// conversations find it; without one it is kept for its own conversation.
pub(super) struct Memory {
    store: Arc<dyn Store>,
    log: OnceCell<SessionLog>,
    /// As they were last known.
    scopes: tokio::sync::Mutex<HashMap<String, Session<Kept>>>,
    /// The newest messages that the model has refused: a client may go on to send them.
    refused: Mutex<VecDeque<String>>,
    /// The newest answers with which a provider has given what it wants back, each with its conversation.
    given: Mutex<VecDeque<(SessionId, ChatMessage)>>,
}

/// What is kept under a subject of the log: the last of each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    chats: VecDeque<Chat>,
    #[serde(default)]
    changes: VecDeque<Changed>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chat {
    session: String,
    question: String,
    answer: String,
}

/// A change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Changed {
    session: Option<String>,
    #[serde(flatten)]
    change: Change,
}

impl Changed {
    fn bytes(&self) -> usize {
        self.change.old.as_ref().map_or(0, String::len) + self.change.new.len()
    }
}

impl Kept {
    fn extend(&mut self, more: Self) {
        self.chats.extend(more.chats);
        self.changes.extend(more.changes);
        while self.chats.len() > MAX_CHATS {
            self.chats.pop_front();
        }
        let mut bytes: usize = self.changes.iter().map(Changed::bytes).sum();
        while bytes > MAX_CHANGED
            && let Some(oldest) = self.changes.pop_front()
        {
            bytes -= oldest.bytes();
        }
    }
}

impl SessionState for Kept {
    fn apply(&mut self, entry: &SessionEntry, _: bool) -> bool {
        let Ok(more) = serde_json::from_slice(&entry.body) else {
            return false;
        };
        match entry.is_whole {
            true => *self = more,
            false => self.extend(more),
        }
        true
    }
}

impl Memory {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            log: OnceCell::new(),
            scopes: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
            given: Mutex::default(),
        }
    }

    /// Returns what is kept under a subject, with what is new, or without what `keeps` refuses. What cannot be
    /// kept is lost.
    async fn kept(&self, id: &str, new: Kept, keeps: impl Fn(&Changed) -> bool) -> Kept {
        let kept = self.try_kept(id, new, keeps).await;
        kept.unwrap_or_else(|error| {
            tracing::warn!(%error, "sessions are not kept");
            Kept::default()
        })
    }

    async fn try_kept(
        &self,
        id: &str,
        new: Kept,
        keeps: impl Fn(&Changed) -> bool,
    ) -> Result<Kept, StoreError> {
        let config = SessionLogConfig {
            max_age: Some(MAX_AGE),
            max_bytes: Some(MAX_BYTES),
            ..SessionLogConfig::new(LOG)
        };
        let log = self
            .log
            .get_or_try_init(|| SessionLog::open(&*self.store, config))
            .await?;
        let mut scopes = self.scopes.lock().await;
        if scopes.len() >= MAX_SCOPES {
            scopes.clear();
        }
        let session = scopes.entry(id.to_owned()).or_default();
        log.read(id, session).await?;
        let mut next: Kept = session.state().cloned().unwrap_or_default();
        let before = next.changes.len();
        next.changes.retain(keeps);
        let is_less = next.changes.len() < before;
        if !is_less && new.chats.is_empty() && new.changes.is_empty() {
            return Ok(next);
        }
        let added = serde_json::to_vec(&new).unwrap_or_default();
        next.extend(new);
        let len = next.changes.iter().map(Changed::bytes).sum::<usize>();
        let is_whole = is_less || log.is_due(session, len + MAX_CHATS * MAX_CHARS);
        let body = match is_whole {
            true => serde_json::to_vec(&next).unwrap_or_default(),
            false => added,
        };
        let entry = SessionEntry {
            body: body.into(),
            is_whole,
            ..SessionEntry::default()
        };
        log.append(id, session, entry, next.clone(), || true)
            .await?;
        Ok(next)
    }

    /// Keeps a change, so that it can be undone.
    pub(super) async fn changed(&self, session: Option<&SessionId>, change: &Change) {
        let changed = Changed {
            session: session.map(|id| id.as_str().to_owned()),
            change: Change {
                is_over_command: false,
                diff: Diff::default(),
                ..change.clone()
            },
        };
        let new = Kept {
            changes: [changed].into(),
            ..Kept::default()
        };
        self.kept(CHANGES, new, |_| true).await;
    }

    /// Returns the changes of a session, or of all, that can be undone, oldest first.
    pub(super) async fn changes(&self, session: Option<&SessionId>) -> Vec<Change> {
        let kept = self.kept(CHANGES, Kept::default(), |_| true).await;
        let is_its =
            |it: &Changed| session.is_none_or(|id| it.session.as_deref() == Some(id.as_str()));
        let changes = kept.changes.into_iter().filter(is_its);
        changes.map(|it| it.change).collect()
    }

    /// Forgets a change that is undone.
    pub(super) async fn undone(&self, change: &Change) {
        let is_other = |it: &Changed| it.change != *change;
        self.kept(CHANGES, Kept::default(), is_other).await;
    }

    /// Keeps a message that the model has refused.
    pub(super) fn refuse(&self, message: &str) {
        let mut refused = self.refused.lock();
        refused.push_back(message.to_owned());
        if refused.len() > MAX_SCOPES {
            refused.pop_front();
        }
    }

    /// Returns whether the model has refused this message.
    pub(super) fn is_refused(&self, message: &str) -> bool {
        self.refused.lock().iter().any(|it| it == message)
    }

    /// Keeps an answer with what only its provider knows: a client sends the text alone.
    pub(super) fn keep_given(&self, session: Option<&SessionId>, answer: ChatMessage) {
        let Some(session) =
            session.filter(|_| answer.tool_calls.is_empty() && extra::size(&answer) > 0)
        else {
            return;
        };
        let mut given = self.given.lock();
        given.push_back((session.clone(), answer));
        let mut bytes: usize = given.iter().map(|(_, it)| extra::size(it)).sum();
        while bytes > MAX_GIVEN
            && let Some((_, oldest)) = given.pop_front()
        {
            bytes -= extra::size(&oldest);
        }
    }

    /// Gives the answers of a conversation what came with them.
    pub(super) fn give_back(&self, session: Option<&SessionId>, past: &mut [ChatMessage]) {
        let given = self.given.lock();
        let given = given.iter().rev();
        for message in past.iter_mut().rev() {
            let text = message.content.text();
            let is_same = |it: &ChatMessage| it.content.text().trim() == text.trim();
            let found = given
                .clone()
                .find(|(of, it)| Some(of) == session && is_same(it));
            if let Some((_, answer)) = found.filter(|_| message.role == Role::Assistant) {
                message.clone_from(answer);
            }
        }
    }

    /// Keeps a chat that is done.
    pub(super) async fn keep(&self, request: &ChatRequest, reply: &Reply) {
        let (Some(session), Some(name)) = (&request.session_id, scope(request)) else {
            return;
        };
        let chat = Chat {
            session: session.as_str().to_owned(),
            question: brief(&request.message),
            answer: brief(&reply.output),
        };
        let new = Kept {
            chats: [chat].into(),
            ..Kept::default()
        };
        self.kept(name, new, |_| true).await;
    }

    /// What a chat's model gets of those before, if there is anything. What the request's own history has
    /// is left out.
    pub(super) async fn recall(&self, request: &ChatRequest) -> Option<String> {
        let kept = self.kept(scope(request)?, Kept::default(), |_| true).await;
        let session = request.session_id.as_ref().map(SessionId::as_str);
        let is_told = |chat: &&Chat| !request.history.is_empty() && session == Some(&*chat.session);
        let mut text = String::new();
        for chat in kept.chats.iter().filter(|chat| !is_told(chat)) {
            let _ = write!(text, "\n- asked: {}; done: {}", chat.question, chat.answer);
        }
        (!text.is_empty()).then(|| format!("Known facts:{text}"))
    }
}

/// What a chat's memory belongs to.
fn scope(request: &ChatRequest) -> Option<&str> {
    let resource = request.resource_id.as_ref().map(ResourceId::as_str);
    resource.or_else(|| Some(request.session_id.as_ref()?.as_str()))
}

/// The beginning of a text, in one line.
fn brief(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    shortened(&words.join(" "), MAX_CHARS).into_owned()
}
