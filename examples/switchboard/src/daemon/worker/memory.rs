//! [`Memory`]: what was done in conversations before.

use std::collections::VecDeque;
use std::fmt::Write as _;

use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::id::{ResourceId, SessionId};

use rpc_core::sync::Mutex;
use snek_proto::llm::chat::{ChatMessage, Role};

use crate::model::extra;
use crate::text::shortened;

/// Scopes that are kept; the one that was written to longest ago is forgotten first.
const MAX_SCOPES: usize = 64;
/// Chats that are kept of each.
const MAX_CHATS: usize = 20;
/// Characters that are kept of a question, and of its answer.
const MAX_CHARS: usize = 300;
/// Bytes that are kept of what only providers know.
const MAX_GIVEN: usize = 16 * 1024 * 1024;

/// What was done in conversations before, as long as the program runs. A chat with a `sessionId` is kept under
/// its `resourceId`, where other conversations find it; without one it is kept for its own conversation.
#[derive(Default)]
pub(super) struct Memory {
    scopes: Mutex<VecDeque<Scope>>,
    /// The newest messages that the model has refused: a client may go on to send them.
    refused: Mutex<VecDeque<String>>,
    /// The newest answers with which a provider has given what it wants back, each with its conversation.
    given: Mutex<VecDeque<(SessionId, ChatMessage)>>,
}

struct Scope {
    name: String,
    chats: VecDeque<Chat>,
}

struct Chat {
    session: SessionId,
    question: String,
    answer: String,
}

impl Memory {
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
    pub(super) fn keep(&self, request: &ChatRequest, reply: &Reply) {
        let (Some(session), Some(name)) = (&request.session_id, scope(request)) else {
            return;
        };
        let mut scopes = self.scopes.lock();
        let place = scopes.iter().position(|scope| scope.name == name);
        let mut scope = place
            .and_then(|place| scopes.remove(place))
            .unwrap_or_else(|| Scope {
                name: name.to_owned(),
                chats: VecDeque::new(),
            });
        scope.chats.push_back(Chat {
            session: session.clone(),
            question: brief(&request.message),
            answer: brief(&reply.output),
        });
        if scope.chats.len() > MAX_CHATS {
            scope.chats.pop_front();
        }
        scopes.push_back(scope);
        if scopes.len() > MAX_SCOPES {
            scopes.pop_front();
        }
    }

    /// What a chat's model gets of those before, if there is anything. What the request's own history has
    /// is left out.
    pub(super) fn recall(&self, request: &ChatRequest) -> Option<String> {
        let name = scope(request)?;
        let scopes = self.scopes.lock();
        let scope = scopes.iter().find(|scope| scope.name == name)?;
        let is_told = |chat: &&Chat| {
            !request.history.is_empty() && request.session_id.as_ref() == Some(&chat.session)
        };
        let mut text = String::new();
        for chat in scope.chats.iter().filter(|chat| !is_told(chat)) {
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
