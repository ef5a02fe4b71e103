//! [`FrameError`]: a text that is no frame.

use std::fmt;

use rpc_core::json::{self, TagKind, Tagged};
use rpc_core::{DecodeError, Limits, Str};
use serde::Deserialize;

use crate::id::RpcId;
use crate::loose;

/// A text that is no frame, and what of it could be read all the same. Decoding it again fails
/// again.
///
/// A server answers a bad request with [`reply_to`](Self::reply_to); a client ends what waits for
/// a bad answer, so that nothing waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameError {
    id: Option<RpcId>,
    tag: Option<Str>,
    error: DecodeError,
}

impl FrameError {
    /// What can be read of a text that is no frame, all of it or nothing: whoever takes a piece of
    /// a broken text answers a request that nobody finished.
    #[cold]
    pub(crate) fn of<T: Tagged>(frame: &str, limits: &Limits, error: DecodeError) -> Self {
        let head: Head = json::decode_js(frame, limits).unwrap_or_default();
        let is_known = |tag: &Str| T::kind(tag) != TagKind::Unknown;
        Self {
            id: RpcId::parse(&head.id).ok(),
            tag: head.tag.filter(is_known),
            error,
        }
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(deserialize_with = "loose::text")]
    id: Str,
    #[serde(rename = "type", deserialize_with = "loose::text")]
    tag: Option<Str>,
}
