//! [`Notice`]: a message for people.

use rpc_core::{Str, words};
use serde::{Deserialize, Serialize};

use crate::loose;

/// A message for people that does not end the chat. Sent by servers from 0.22.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notice {
    /// Its severity.
    #[serde(default, deserialize_with = "loose::text")]
    pub level: NoticeLevel,
    /// The message to show.
    pub message: Str,
    /// Where it comes from.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Str>,
}

words! {
    /// The severity of a notice.
    #[derive(Default)]
    pub enum NoticeLevel {
        /// Something may be wrong.
        #[default]
        "warn" => Warn,
        /// Something is wrong.
        "error" => Error,
        .. => Other,
    }
}

impl Notice {
    /// Creates a warning with this message.
    pub fn warn(message: impl Into<Str>) -> Self {
        Self {
            level: NoticeLevel::Warn,
            message: message.into(),
            source: None,
        }
    }

    /// Creates an error with this message, which does not end the chat.
    pub fn error(message: impl Into<Str>) -> Self {
        Self {
            level: NoticeLevel::Error,
            ..Self::warn(message)
        }
    }
}
