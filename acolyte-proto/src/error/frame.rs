//! [`FrameError`]: why a text is not a frame.

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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{error}", tag.as_ref().map(|tag| format!("`{tag}`: ")).unwrap_or_default())]
#[non_exhaustive]
pub struct FrameError {
    /// The id of the request that the text belongs to.
    pub id: Option<RpcId>,
    /// The frame's type, if this crate knows it.
    pub tag: Option<Str>,
    /// The reason.
    pub error: DecodeError,
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

    /// Returns the id for the answer to an invalid request: its own, or `rpc_unknown`.
    #[must_use]
    pub fn reply_to(&self) -> RpcId {
        self.id.clone().unwrap_or_else(RpcId::unreadable)
    }
}

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
