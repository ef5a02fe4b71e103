//! [`ChatError`] and [`ErrorDetail`], how a chat fails, and the words of a refusal.

use std::borrow::Cow;
use std::fmt;

use rpc_core::DecodeError;

use crate::frame::Extra;
use crate::id::{ErrorId, RpcId};

/// The `error` of a request that is not one: bad JSON, a bad id, an unknown type, a wrong payload.
pub const INVALID_MESSAGE: &str = "Invalid RPC message";
/// Starts the `error` of a chat whose id is in use.
pub const ALREADY_RUNNING: &str = "Chat request already running for id: ";
/// Starts the `error` of a chat that finds no place to wait.
pub const QUEUE_FULL: &str = "RPC queue is full (";

/// The `error` of a chat whose id is in use.
#[must_use]
pub fn already_running(id: &RpcId) -> String {
    format!("{ALREADY_RUNNING}{id}")
}

/// The `error` of a chat that finds no place among so many that wait.
#[must_use]
pub fn queue_full(queued: usize) -> String {
    format!("{QUEUE_FULL}{queued} queued). Try again shortly.")
}

/// What a refusal is about, by its words: the protocol has no codes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The request was not one. Repeating it fails again.
    InvalidMessage,
    /// The request's id is in use. Safe to repeat with another id.
    AlreadyRunning,
    /// Too many chats wait on this connection. Safe to repeat later.
    QueueFull,
    /// Anything else.
    Other,
}

impl RefusalKind {
    /// What these words are about.
    #[must_use]
    pub fn of(error: &str) -> Self {
        if error == INVALID_MESSAGE {
            Self::InvalidMessage
        } else if error.starts_with(ALREADY_RUNNING) {
            Self::AlreadyRunning
        } else if error.starts_with(QUEUE_FULL) {
            Self::QueueFull
        } else {
            Self::Other
        }
    }
}

/// Codes that known servers use in `errorCode` and [`ErrorDetail::code`]. The set is open: expect
/// others, also those of an operating system such as `ENOENT`.
pub mod code {
    /// The chat was aborted. Servers of this crate only.
    pub const ABORTED: &str = "E_ABORTED";
    /// By far the most common.
    pub const UNKNOWN: &str = "E_UNKNOWN";
    /// Something took too long.
    pub const TIMEOUT: &str = "E_TIMEOUT";
    /// A tool found no such file.
    pub const FILE_NOT_FOUND: &str = "E_FILE_NOT_FOUND";
    /// A budget of tokens or of tool calls is used up.
    pub const BUDGET_EXHAUSTED: &str = "E_BUDGET_EXHAUSTED";
    /// The chat named no model that the server knows.
    pub const MODEL_NOT_CONFIGURED: &str = "E_MODEL_NOT_CONFIGURED";
    /// The model's provider cannot be used.
    pub const MODEL_PROVIDER_UNAVAILABLE: &str = "E_MODEL_PROVIDER_UNAVAILABLE";
    /// A tool was asked to leave the workspace.
    pub const SANDBOX_VIOLATION: &str = "E_SANDBOX_VIOLATION";
}

/// How a chat failed: `chat.error`, the event `error`, and the end of a failed stream over HTTP.
/// Acolyte specification, *Event model* and *Invariants*.
///
/// Whether repeating the chat is safe is not told: its tools may have done their work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ChatError<'a> {
    /// What to show people.
    pub message: Cow<'a, str>,
    /// Names the failure in the server's log. One of another form is left out.
    pub id: Option<ErrorId>,
    /// What kind of failure: see [`code`], an open set.
    pub code: Option<Cow<'a, str>>,
    /// More about it.
    pub detail: Option<ErrorDetail<'a>>,
}

impl<'a> ChatError<'a> {
    /// An error with these words.
    pub fn new(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            message: message.into(),
            id: None,
            code: None,
            detail: None,
        }
    }

    /// Sets [`id`](Self::id).
    #[must_use]
    pub fn with_id(mut self, id: ErrorId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets [`code`](Self::code).
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'a, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets [`detail`](Self::detail).
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail<'a>) -> Self {
        self.detail = Some(detail);
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ChatError<'static> {
        ChatError {
            message: Cow::Owned(self.message.into_owned()),
            id: self.id,
            code: self.code.map(|code| Cow::Owned(code.into_owned())),
            detail: self.detail.map(ErrorDetail::into_owned),
        }
    }
}

/// More about an error. Every value is of an open set, and `kind` and `category` of known servers
/// are often wrong: show them, do not decide by them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ErrorDetail<'a> {
    /// As [`ChatError::code`].
    pub code: Option<Cow<'a, str>>,
    /// Seen: `timeout`, `file-not-found`, `budget-exhausted`, `other`.
    pub category: Option<Cow<'a, str>>,
    /// Seen: `timeout`, `file_not_found`, `budget_exhausted`, `sandbox_violation`, `unknown`.
    pub kind: Option<Cow<'a, str>>,
    /// Seen: `generate`, `tool-result`, `tool-error`, `server`.
    pub source: Option<Cow<'a, str>>,
    /// The tool that failed.
    pub tool: Option<Cow<'a, str>>,
    /// Members that this crate does not know.
    pub extra: Extra<'a>,
}

impl<'a> ErrorDetail<'a> {
    /// A detail that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`code`](Self::code).
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'a, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets [`category`](Self::category).
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Cow<'a, str>>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Sets [`kind`](Self::kind).
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<Cow<'a, str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Sets [`source`](Self::source).
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cow<'a, str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets [`tool`](Self::tool).
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<Cow<'a, str>>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ErrorDetail<'static> {
        let text = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        ErrorDetail {
            code: text(self.code),
            category: text(self.category),
            kind: text(self.kind),
            source: text(self.source),
            tool: text(self.tool),
            extra: self.extra.into_owned(),
        }
    }
}

/// A text that is no frame, and what of it could be read all the same. Decoding it again fails
/// again.
///
/// A server answers a bad request with [`reply_to`](Self::reply_to); a client ends what waits for
/// a bad answer, so that nothing waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameError {
    id: Option<RpcId>,
    tag: Option<String>,
    error: DecodeError,
}

impl FrameError {
    pub(crate) const fn new(id: Option<RpcId>, tag: Option<String>, error: DecodeError) -> Self {
        Self { id, tag, error }
    }

    /// The id of the request that the text belongs to.
    #[must_use]
    pub const fn id(&self) -> Option<&RpcId> {
        self.id.as_ref()
    }

    /// The frame's type, if it is one that this crate knows.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// What is wrong.
    #[must_use]
    pub const fn decode_error(&self) -> &DecodeError {
        &self.error
    }

    /// The id that the answer to a bad request carries: its own, or `rpc_unknown`.
    #[must_use]
    pub fn reply_to(&self) -> RpcId {
        self.id.clone().unwrap_or_else(RpcId::unreadable)
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tag {
            Some(tag) => write!(f, "`{tag}`: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for FrameError {}

impl From<FrameError> for DecodeError {
    fn from(error: FrameError) -> Self {
        error.error
    }
}
