//! [`Notice`]: something that people should know.

use rpc_core::{Str, words};
use serde::{Deserialize, Serialize};

use crate::loose;

/// Something that people should know and that does not end the chat. Servers from 0.22.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notice {
    /// How bad it is.
    #[serde(default, deserialize_with = "loose::text")]
    pub level: NoticeLevel,
    /// What to show.
    pub message: Str,
    /// Where it comes from.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Str>,
}

words! {
    /// How bad a notice is.
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
    /// A warning with these words.
    pub fn warn(message: impl Into<Str>) -> Self {
        Self {
            level: NoticeLevel::Warn,
            message: message.into(),
            source: None,
        }
    }

    /// An error with these words, which does not end the chat.
    pub fn error(message: impl Into<Str>) -> Self {
        Self {
            level: NoticeLevel::Error,
            ..Self::warn(message)
        }
    }
}
