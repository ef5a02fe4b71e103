//! [`AppError`] and [`ErrorDetail`]: how a chat or a tool failed.

use rpc_core::Str;
use rpc_core::json::lenient::{self, ByType};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::frame::{Extra, keep_extra};
use crate::id::ErrorId;
use crate::loose;

/// The message of a failure that comes without one.
const WORDLESS: Str = Str::from_static("unknown error");

/// A failure of a chat: `chat.error`, the event `error`, and the end of a failed stream over HTTP.
/// Acolyte specification, *Event model* and *Invariants*.
///
/// It does not say whether repeating the chat is safe: its tools may have done their work.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(from = "ErrorMembers")]
#[error("{message}")]
pub struct AppError {
    /// The message for people.
    #[serde(rename = "errorMessage")]
    pub message: Str,
    /// The id of the failure in the server's log. An id of another form is left out.
    #[serde(rename = "errorId", skip_serializing_if = "Option::is_none")]
    pub id: Option<ErrorId>,
    /// The kind of failure: see [`error::code`](crate::error::code), an open set.
    #[serde(rename = "errorCode", skip_serializing_if = "Option::is_none")]
    pub code: Option<Str>,
    /// Details.
    #[serde(rename = "error", skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<ErrorDetail>>,
}

impl AppError {
    /// Creates an error with this message.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self {
            message: message.into(),
            id: None,
            code: None,
            detail: None,
        }
    }
}

/// The details of an error. All values are open sets, and `kind` and `category` of known servers
/// are often wrong: show them, but do not rely on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct ErrorDetail {
    /// The same as [`AppError::code`].
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Str>,
    /// Seen: `timeout`, `file-not-found`, `budget-exhausted`, `other`.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Str>,
    /// Seen: `timeout`, `file_not_found`, `budget_exhausted`, `sandbox_violation`, `unknown`.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// Seen: `generate`, `tool-result`, `tool-error`, `server`.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Str>,
    /// The tool that failed.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Str>,
    /// Members that this crate does not know.
    #[serde(flatten, skip_deserializing)]
    pub extra: Extra,
}

keep_extra!(ErrorDetail);

/// An error as received. It may be the end of a chat, so anything is accepted.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ErrorMembers {
    #[serde(deserialize_with = "loose::text")]
    error_message: Option<Str>,
    #[serde(deserialize_with = "loose::text")]
    error_id: Str,
    #[serde(deserialize_with = "loose::text")]
    error_code: Option<Str>,
    #[serde(deserialize_with = "lenient::by_type")]
    error: ErrorValue,
}

/// The member `error`: the details, or the message, where another peer puts it there.
#[derive(Default)]
enum ErrorValue {
    #[default]
    None,
    Words(Str),
    Detail(Box<ErrorDetail>),
}

impl ByType for ErrorValue {
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
        match first {
            b'"' => Str::deserialize(from).map(Self::Words),
            b'{' => Box::deserialize(from).map(Self::Detail),
            _ => IgnoredAny::deserialize(from).map(|_| Self::None),
        }
    }
}

rpc_core::from_failures!(AppError, Self::failed);

impl From<ErrorMembers> for AppError {
    fn from(read: ErrorMembers) -> Self {
        let (words, detail) = match read.error {
            ErrorValue::None => (None, None),
            ErrorValue::Words(words) => (Some(words), None),
            ErrorValue::Detail(detail) => {
                let message = detail.extra.get("message");
                let words = message.and_then(|message| message.as_str().map(Str::from));
                (words, Some(detail))
            }
        };
        Self {
            message: read.error_message.or(words).unwrap_or(WORDLESS),
            id: ErrorId::read(&read.error_id),
            code: read.error_code,
            detail,
        }
    }
}
