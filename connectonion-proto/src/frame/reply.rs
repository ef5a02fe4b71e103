//! What a server answers: [`Connected`], [`Output`], [`RuntimeInputAck`], [`ErrorFrame`],
//! [`SessionStatus`].

use std::borrow::Cow;
use std::fmt;

use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::body::Body;
use super::json::Json;
use super::keep::Keep;
use super::number::Number;
use super::word::{Standing, Word};

/// How a session stood when its client connected. ConnectOnion specification, *CONNECTED*. The
/// specification has these three, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// It is new.
    New,
    /// It was there, and idle.
    Connected,
    /// Its agent is working.
    Running,
}

impl SessionState {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Connected => "connected",
            Self::Running => "running",
        }
    }

    /// The state of this name. `executing` is what old hosts call running; a word that nobody knows
    /// is a session that is there.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "new" => Self::New,
            "running" | "executing" => Self::Running,
            _ => Self::Connected,
        }
    }
}

/// The client is let in. ConnectOnion specification, *CONNECTED*.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connected<S = SharedStr, J = SharedJson> {
    /// The session that it has now, which may be another than it asked for.
    pub session_id: S,
    /// How the session stood.
    pub status: SessionState,
    /// The conversation, if the server has a newer one than the client handed over.
    pub newer: Option<Newer<J>>,
    /// What a newer host says about itself, as it was sent.
    pub protocol: Option<J>,
    /// The modes of a newer host, as they were sent.
    pub session_modes: Option<J>,
    /// Whether the host takes every answer only for the question that it names, and refuses one that
    /// comes too late, so that an answer may safely be sent twice. Not in the specification; this
    /// crate's host says so when a run goes on.
    pub bound_answers: bool,
}

/// The server's conversation, which is newer than the client's. On the wire `server_newer`,
/// `session` and `chat_items`, which come together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Newer<J = SharedJson> {
    /// The conversation: a [`Session`](super::Session), as it was sent.
    pub session: J,
    /// The same for people: an array of [`ChatItem`](super::ChatItem)s, as it was sent; empty if a
    /// server has left it out.
    pub chat_items: J,
}

impl<J> Newer<J> {
    /// A conversation.
    #[must_use]
    pub const fn new(session: J, chat_items: J) -> Self {
        Self {
            session,
            chat_items,
        }
    }
}

impl Connected {
    /// A client is let in.
    pub fn new(session_id: impl Into<SharedStr>, status: SessionState) -> Self {
        Self {
            session_id: session_id.into(),
            status,
            newer: None,
            protocol: None,
            session_modes: None,
            bound_answers: false,
        }
    }

    /// Sets [`bound_answers`](Self::bound_answers).
    #[must_use]
    pub const fn with_bound_answers(mut self, bound: bool) -> Self {
        self.bound_answers = bound;
        self
    }

    /// Sets [`newer`](Self::newer).
    #[must_use]
    pub fn with_newer(mut self, newer: Newer) -> Self {
        self.newer = Some(newer);
        self
    }
}

impl<'a> Connected<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let session_id = body.id("session_id")?;
        // Whoever sends a session has a newer one; the flag alone says nothing.
        let is_newer = body.bool("server_newer")? != Some(false);
        let chat_items = match body.array("chat_items")? {
            Some(items) => items,
            None => RawJson::new("[]")?,
        };
        let session = body.object("session")?.filter(|_| is_newer);
        Ok(Self {
            session_id: session_id.ok_or_else(|| DecodeError::missing("session_id"))?,
            status: SessionState::parse(&body.need("status")?),
            newer: session.map(|session| Newer {
                session,
                chat_items,
            }),
            protocol: body.raw("protocol")?,
            session_modes: body.raw("session_modes")?,
            bound_answers: body.bool("bound_answers")? == Some(true),
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Connected<K::Text, K::Json> {
        Connected {
            session_id: how.text(&self.session_id),
            status: self.status,
            newer: self.newer.as_ref().map(|newer| Newer {
                session: how.json(&newer.session),
                chat_items: how.json(&newer.chat_items),
            }),
            protocol: how.jsons(&self.protocol),
            session_modes: how.jsons(&self.session_modes),
            bound_answers: self.bound_answers,
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Connected {
        self.keep(copy)
    }
}

impl<S: Serialize, J: Serialize> Serialize for Connected<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut frame = serializer.serialize_struct("Connected", 9)?;
        frame.serialize_field("type", "CONNECTED")?;
        frame.serialize_field("session_id", &self.session_id)?;
        frame.serialize_field("status", self.status.as_str())?;
        if let Some(newer) = &self.newer {
            frame.serialize_field("server_newer", &true)?;
            frame.serialize_field("session", &newer.session)?;
            frame.serialize_field("chat_items", &newer.chat_items)?;
        }
        if let Some(protocol) = &self.protocol {
            frame.serialize_field("protocol", protocol)?;
        }
        if let Some(modes) = &self.session_modes {
            frame.serialize_field("session_modes", modes)?;
        }
        if self.bound_answers {
            frame.serialize_field("bound_answers", &true)?;
        }
        frame.end()
    }
}

/// The agent is done. ConnectOnion specification, *OUTPUT*.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "OUTPUT")]
#[non_exhaustive]
pub struct Output<S = SharedStr, J = SharedJson> {
    /// What the agent says; of another value than a text its JSON, and of null nothing.
    pub result: S,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<S>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Number>,
    /// The conversation: a [`Session`](super::Session), as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<J>,
    /// The same for people: an array of [`ChatItem`](super::ChatItem)s, as it was sent. Not in the
    /// specification; hosts always send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_items: Option<J>,
}

impl Output {
    /// The agent is done with this result.
    pub fn new(
        result: impl Into<SharedStr>,
        session_id: impl Into<SharedStr>,
        duration_ms: u64,
    ) -> Self {
        Self {
            result: result.into(),
            session_id: Some(session_id.into()),
            duration_ms: Some(duration_ms.into()),
            session: None,
            chat_items: None,
        }
    }

    /// Sets [`session`](Self::session).
    #[must_use]
    pub fn with_session(mut self, session: SharedJson) -> Self {
        self.session = Some(session);
        self
    }

    /// Sets [`chat_items`](Self::chat_items).
    #[must_use]
    pub fn with_chat_items(mut self, items: SharedJson) -> Self {
        self.chat_items = Some(items);
        self
    }
}

impl<'a> Output<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let result = match body.loose("result")? {
            Some(result) => result,
            // An agent that has nothing to say.
            None if body.raw_or_null("result")?.is_some() => Cow::Borrowed(""),
            None => return Err(DecodeError::missing("result")),
        };
        Ok(Self {
            result,
            session_id: body.id("session_id")?,
            duration_ms: body.number("duration_ms")?,
            session: body.object("session")?,
            chat_items: body.array("chat_items")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Output<K::Text, K::Json> {
        Output {
            result: how.text(&self.result),
            session_id: how.texts(&self.session_id),
            duration_ms: self.duration_ms,
            session: how.jsons(&self.session),
            chat_items: how.jsons(&self.chat_items),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Output {
        self.keep(copy)
    }
}

/// A prompt that came while the agent was working is queued. ConnectOnion specification,
/// *`RUNTIME_INPUT_ACK`*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "RUNTIME_INPUT_ACK")]
#[non_exhaustive]
pub struct RuntimeInputAck<S = SharedStr> {
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<S>,
    /// The id of the `user_input` event that will say when it was taken in.
    pub id: S,
}

impl RuntimeInputAck {
    /// A prompt is queued.
    pub fn new(session_id: impl Into<SharedStr>, id: impl Into<SharedStr>) -> Self {
        Self {
            session_id: Some(session_id.into()),
            id: id.into(),
        }
    }
}

impl<'a> RuntimeInputAck<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let id = body.id("id")?;
        Ok(Self {
            session_id: body.id("session_id")?,
            id: id.ok_or_else(|| DecodeError::missing("id"))?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> RuntimeInputAck<K::Text> {
        RuntimeInputAck {
            session_id: how.texts(&self.session_id),
            id: how.text(&self.id),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> RuntimeInputAck {
        self.keep(copy)
    }
}

/// Something was wrong; the connection stays open. ConnectOnion specification, *ERROR*.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ERROR")]
#[non_exhaustive]
pub struct ErrorFrame<S = SharedStr, J = SharedJson> {
    /// What was wrong, for people. Read from `error` too, and of another value than a text its
    /// JSON.
    pub message: S,
    /// The beginning of what could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<S>,
    /// For programs: a number or a word, as it was sent. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<J>,
    /// Why, for programs. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<S>,
    /// The id of the event that was answered too late. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<S>,
    /// The session, where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<S>,
    /// Whether the same may work later. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl ErrorFrame {
    /// An error in these words.
    pub fn new(message: impl Into<SharedStr>) -> Self {
        Self {
            message: message.into(),
            received: None,
            code: None,
            reason: None,
            request_id: None,
            session_id: None,
            retryable: None,
        }
    }

    /// Sets [`received`](Self::received).
    #[must_use]
    pub fn with_received(mut self, received: impl Into<SharedStr>) -> Self {
        self.received = Some(received.into());
        self
    }

    /// Sets [`session_id`](Self::session_id).
    #[must_use]
    pub fn with_session_id(mut self, id: impl Into<SharedStr>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets [`code`](Self::code) to a word.
    #[must_use]
    pub fn with_code(mut self, word: &str) -> Self {
        self.code = Some(SharedJson::from(&RawJson::string(word)));
        self
    }

    /// Sets [`reason`](Self::reason).
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<SharedStr>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets [`request_id`](Self::request_id).
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<SharedStr>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// Sets [`retryable`](Self::retryable).
    #[must_use]
    pub const fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }
}

impl<S, J: Json> ErrorFrame<S, J> {
    /// The [`code`](Self::code) if it is a word.
    #[must_use]
    pub fn code_word(&self) -> Option<Cow<'_, str>> {
        RawJson::new(self.code.as_ref()?.json()).ok()?.into_str()
    }

    /// The [`code`](Self::code) if it is a number.
    #[must_use]
    pub fn code_number(&self) -> Option<Number> {
        Number::parse(self.code.as_ref()?.json())
    }
}

impl<'a> ErrorFrame<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let message = match body.loose("message")? {
            None => body.loose("error")?,
            message => message,
        };
        Ok(Self {
            message: message.ok_or_else(|| DecodeError::missing("message"))?,
            received: body.loose("received")?,
            code: body.raw("code")?,
            reason: body.loose("reason")?,
            request_id: body.id("request_id")?,
            session_id: body.id("session_id")?,
            retryable: body.bool("retryable")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ErrorFrame<K::Text, K::Json> {
        ErrorFrame {
            message: how.text(&self.message),
            received: how.texts(&self.received),
            code: how.jsons(&self.code),
            reason: how.texts(&self.reason),
            request_id: how.texts(&self.request_id),
            session_id: how.texts(&self.session_id),
            retryable: self.retryable,
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> ErrorFrame {
        self.keep(copy)
    }
}

/// The words of the host.
impl<S: AsRef<str>, J> fmt::Display for ErrorFrame<S, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_ref())
    }
}

impl<S: AsRef<str> + fmt::Debug, J> std::error::Error for ErrorFrame<S, J> {}

/// Prints nothing of what could not be read: it may be half a CONNECT.
impl<S: fmt::Debug, J> fmt::Debug for ErrorFrame<S, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorFrame")
            .field("message", &self.message)
            .field("received", &self.received.is_some())
            .finish_non_exhaustive()
    }
}

/// How a session stands, asked by a [`SessionQuery`](super::SessionQuery). Not in the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "SESSION_STATUS")]
#[non_exhaustive]
pub struct SessionStatus<S = SharedStr> {
    /// The session; null if the question named none.
    pub session_id: Option<S>,
    /// How it stands.
    pub status: Word<Standing, S>,
}

impl SessionStatus {
    /// A session stands like this.
    #[must_use]
    pub const fn new(session_id: Option<SharedStr>, status: Standing) -> Self {
        Self {
            session_id,
            status: Word::Known(status),
        }
    }
}

impl<'a> SessionStatus<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let status = body.word("status")?;
        Ok(Self {
            session_id: body.id("session_id")?,
            status: status.ok_or_else(|| DecodeError::missing("status"))?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> SessionStatus<K::Text> {
        SessionStatus {
            session_id: how.texts(&self.session_id),
            status: how.word(&self.status),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> SessionStatus {
        self.keep(copy)
    }
}
