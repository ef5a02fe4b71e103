//! A server's replies: [`Connected`], [`Output`], [`RuntimeInputAck`], [`ErrorFrame`],
//! [`SessionStatus`].

use std::fmt;

use rpc_core::json::lenient::{
    id, optional_array, optional_id, optional_loose, optional_object, or_default,
};
use rpc_core::{Json, Str, members};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::json::{is_false, text_or_null};
use super::number::Number;

use crate::id::{EventId, SessionId};

/// The state of a session. ConnectOnion specification, *CONNECTED*. Exhaustive: these are the states
/// of the specification, and the reply about a session that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The session is new.
    #[default]
    New,
    /// The session's agent is running. Also read from its old name, `executing`.
    #[serde(alias = "executing")]
    Running,
    /// The session does not exist, or is not the caller's: only in a [`SessionStatus`].
    NotFound,
    /// The session existed and was idle. An unknown word counts as this one.
    #[serde(other)]
    Connected,
}

impl SessionState {
    /// Returns the word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Connected => "connected",
            Self::Running => "running",
            Self::NotFound => "not_found",
        }
    }
}

members! {
    /// The client is admitted. ConnectOnion specification, *CONNECTED*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "CONNECTED")]
    pub struct Connected {
        /// The client's session, which may differ from the requested one.
        pub session_id: SessionId as "id",
        /// The state of the session.
        pub status: SessionState,
        /// Whether a conversation follows.
        pub server_newer: Option<bool>,
        /// The server's conversation, if it is newer than the client's: a [`Session`](super::Session),
        /// as it was sent.
        pub session: Option<Json> as "optional_object",
        /// The same for display: an array of [`ChatItem`](super::ChatItem)s, as it was sent; empty if a
        /// server has left it out.
        pub chat_items: Option<Json> as "optional_array",
        /// A newer host's description of itself, as it was sent.
        pub protocol: Option<Json>,
        /// The modes of a newer host, as they were sent.
        pub session_modes: Option<Json>,
        /// Whether the host applies every answer only to the question that it names, and refuses late
        /// ones, so that an answer may safely be sent twice. Not in the specification; this crate's
        /// host sets it when a run goes on.
        #[serde(default, deserialize_with = "or_default")]
        #[serde(skip_serializing_if = "is_false")]
        pub bound_answers: bool,
        /// Whether the host recommends to sign, because it let the client in without a signature. Not
        /// on the wire of the specification, which says that a host at `careful` recommends it.
        #[serde(default, deserialize_with = "or_default")]
        #[serde(skip_serializing_if = "is_false")]
        pub signature_recommended: bool,
    }

    /// The agent is done. ConnectOnion specification, *OUTPUT*.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "OUTPUT")]
    pub struct Output {
        /// The agent's result; a value other than a text as JSON, and null as an empty text.
        pub result: Str as "text_or_null",
        /// The session.
        pub session_id: Option<SessionId> as "optional_id",
        /// How long it took, in milliseconds.
        pub duration_ms: Option<Number>,
        /// The conversation: a [`Session`](super::Session), as it was sent.
        pub session: Option<Json> as "optional_object",
        /// The same for display: an array of [`ChatItem`](super::ChatItem)s, as it was sent. Not in the
        /// specification; hosts always send it.
        pub chat_items: Option<Json> as "optional_array",
        /// Why the host has not stored the result, for people: it may forget it. Not in the specification;
        /// hosts of this crate send it.
        pub not_stored: Option<Str>,
    }

    /// A prompt that came while the agent was running is queued. ConnectOnion specification,
    /// *`RUNTIME_INPUT_ACK`*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "RUNTIME_INPUT_ACK")]
    pub struct RuntimeInputAck {
        /// The session.
        pub session_id: Option<SessionId> as "optional_id",
        /// The id of the later `user_input` event, sent when the agent reads the prompt.
        pub id: EventId as "id",
    }

    /// An error; the connection stays open. ConnectOnion specification, *ERROR*.
    #[derive(Clone, Default, PartialEq, Eq, Serialize)]
    #[serde(tag = "type", rename = "ERROR")]
    pub struct ErrorFrame {
        /// The error message, for people. Also read from `error`; a value other than a text as JSON.
        pub message: Str,
        /// The beginning of the unreadable text.
        pub received: Option<Str>,
        /// The code, for programs: a number or a word, as it was sent. Newer hosts only.
        pub code: Option<Json>,
        /// The reason, for programs. Newer hosts only.
        pub reason: Option<Str>,
        /// The id of the event that was answered too late. Newer hosts only.
        pub request_id: Option<EventId>,
        /// The session, where relevant.
        pub session_id: Option<SessionId>,
        /// Whether the same frame may succeed later. Newer hosts only.
        pub retryable: Option<bool>,
    }

    /// The members of an [`ErrorFrame`] that is read.
    #[derive(Deserialize)]
    struct ErrorMembers {
        message: Option<Str> as "optional_loose",
        error: Option<Str> as "optional_loose",
        received: Option<Str> as "optional_loose",
        code: Option<Json>,
        reason: Option<Str> as "optional_loose",
        request_id: Option<EventId> as "optional_id",
        session_id: Option<SessionId> as "optional_id",
        retryable: Option<bool>,
    }
}

impl Connected {
    /// Creates a frame that admits a client.
    pub fn new(session_id: impl Into<SessionId>, status: SessionState) -> Self {
        Self {
            session_id: session_id.into(),
            status,
            ..Self::default()
        }
    }

    /// Sets [`session`](Self::session), [`chat_items`](Self::chat_items) and the flag; or none of
    /// them.
    pub(crate) fn with_newer(mut self, newer: Option<(Json, Json)>) -> Self {
        self.server_newer = newer.is_some().then_some(true);
        (self.session, self.chat_items) = newer.unzip();
        self
    }

    /// Treats a session as newer unless the flag denies it. The flag alone means nothing.
    pub(super) fn read(mut self) -> Self {
        let session = self.session.take();
        let session = session.filter(|_| self.server_newer != Some(false));
        let items = self.chat_items.take().unwrap_or(Json::EMPTY_ARRAY);
        self.with_newer(session.map(|session| (session, items)))
    }
}

impl Output {
    /// Creates the end of a run with this result.
    pub fn new(session_id: impl Into<SessionId>, result: impl Into<Str>, duration_ms: u64) -> Self {
        Self {
            result: result.into(),
            session_id: Some(session_id.into()),
            duration_ms: Some(duration_ms.into()),
            ..Self::default()
        }
    }
}

impl RuntimeInputAck {
    /// Creates the acknowledgement of a queued prompt.
    pub fn new(session_id: impl Into<SessionId>, id: impl Into<EventId>) -> Self {
        Self {
            session_id: Some(session_id.into()),
            id: id.into(),
        }
    }
}

impl ErrorFrame {
    /// Creates an error with this message.
    pub fn new(message: impl Into<Str>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Sets [`session_id`](Self::session_id).
    pub(crate) fn with_session_id(mut self, id: impl Into<SessionId>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets [`code`](Self::code) to a word.
    pub(crate) fn with_code(mut self, word: &str) -> Self {
        self.code = Some(Json::string(word));
        self
    }

    /// Sets [`retryable`](Self::retryable).
    pub(crate) const fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }
}

impl<'de> Deserialize<'de> for ErrorFrame {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = ErrorMembers::deserialize(from)?;
        let message = read.message.or(read.error);
        Ok(Self {
            message: message.ok_or_else(|| D::Error::missing_field("message"))?,
            received: read.received,
            code: read.code,
            reason: read.reason,
            request_id: read.request_id,
            session_id: read.session_id,
            retryable: read.retryable,
        })
    }
}

/// Prints the host's message.
impl fmt::Display for ErrorFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorFrame {}

// Hides the unreadable text: it may be half a CONNECT.
rpc_core::debug_fields!([] ErrorFrame, this => {
    message: this.message,
    received: this.received.is_some(),
});

/// The status of a session, in reply to a [`SessionQuery`](super::SessionQuery). Not in the
/// specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "SESSION_STATUS")]
#[non_exhaustive]
pub struct SessionStatus {
    /// The session; null if the query named none.
    #[serde(default, deserialize_with = "optional_id")]
    pub session_id: Option<SessionId>,
    /// Its status.
    pub status: SessionState,
}

impl SessionStatus {
    /// Creates the status of a session.
    #[must_use]
    pub const fn new(session_id: Option<SessionId>, status: SessionState) -> Self {
        Self { session_id, status }
    }
}
