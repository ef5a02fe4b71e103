//! [`FrameError`]: a text that is no frame.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, Slot};

use crate::id::RpcId;
use crate::wire::{again, text};

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
    /// What can be read of a text that is no frame, all of it or nothing: whoever takes a piece of
    /// a broken text answers a request that nobody finished.
    #[cold]
    pub(crate) fn of(frame: &str, limits: &Limits, tags: &[&str], error: DecodeError) -> Self {
        let head = decode::object::<Head<'_>>(frame, limits).unwrap_or_default();
        let tag = head.tag.take().unwrap_or_default();
        Self {
            id: head.id.take().and_then(|id| RpcId::parse(&id).ok()),
            tag: tags.contains(&&*tag).then(|| tag.into_owned()),
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

#[derive(Default)]
struct Head<'a> {
    id: Slot<Cow<'a, str>>,
    tag: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for Head<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.read("id", again(&mut self.id), text),
            "type" => field.read("type", again(&mut self.tag), text),
            _ => field.skip(),
        }
    }
}
