//! [`FrameError`]: why a text is not a frame.

use std::fmt;

use rpc_core::json::{self, TagKind, Tagged};
use rpc_core::{DecodeError, Limits, Str};
use serde::Deserialize;

use crate::id::RpcId;
use crate::loose;

/// The error for a text that is not a frame, with the parts that could be read. Decoding it again
/// fails again.
///
/// A server answers an invalid request with [`reply_to`](Self::reply_to); a client ends the request
/// that an invalid answer belongs to, so that nothing waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameError {
    id: Option<RpcId>,
    tag: Option<Str>,
    error: DecodeError,
}

impl FrameError {
    /// Reads the id and type of a text that is not a frame, or neither: a part of a broken text
    /// could belong to a request that was never finished.
    #[cold]
    pub(crate) fn of<T: Tagged>(frame: &str, limits: &Limits, error: DecodeError) -> Self {
        let head: Head = json::decode_js(frame, limits).unwrap_or_default();
        let is_known = |tag: &Str| T::kind(tag) != TagKind::Unknown;
        Self {
            id: RpcId::read(&head.id),
            tag: head.tag.filter(is_known),
            error,
        }
    }

    /// Returns the id of the request that the text belongs to.
    #[must_use]
    pub const fn id(&self) -> Option<&RpcId> {
        self.id.as_ref()
    }

    /// Returns the frame's type, if this crate knows it.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn decode_error(&self) -> &DecodeError {
        &self.error
    }

    /// Returns the id for the answer to an invalid request: its own, or `rpc_unknown`.
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(deserialize_with = "loose::text")]
    id: Str,
    #[serde(rename = "type", deserialize_with = "loose::text")]
    tag: Option<Str>,
}
