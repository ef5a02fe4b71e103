//! [`Signed`]: the payload, the address and the signature of a frame that somebody answers for.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::Serialize;

use super::body::Body;
use super::json::{Json, last_member};
use super::keep::Keep;
use super::number::Number;

/// Who sends a frame, and the proof: `payload`, `from` and `signature`. ConnectOnion specification,
/// *Authentication*.
///
/// Each may be absent: what is missing is for the server to say, with the words that clients know.
/// The payload stays as it was sent, because the signature is over its text.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Signed<S = SharedStr, J = SharedJson> {
    /// What is signed: a JSON object, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<J>,
    /// The sender's address, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<S>,
    /// The signature in hex, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<S>,
}

impl<S, J> Signed<S, J> {
    /// A payload with its proof.
    pub fn new(payload: impl Into<J>, from: impl Into<S>, signature: impl Into<S>) -> Self {
        Self {
            payload: Some(payload.into()),
            from: Some(from.into()),
            signature: Some(signature.into()),
        }
    }

    /// No payload and no proof.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            payload: None,
            from: None,
            signature: None,
        }
    }

    /// Whether there is nothing of it: the frame is not signed.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.payload.is_none() && self.from.is_none() && self.signature.is_none()
    }
}

impl<S, J> Default for Signed<S, J> {
    fn default() -> Self {
        Self::none()
    }
}

impl<S, J: Json> Signed<S, J> {
    /// A member of the payload, as it was sent; of several the last. Nobody has checked the
    /// signature here.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<RawJson<'_>> {
        last_member(self.payload.as_ref()?.json(), name)
    }

    /// A member of the payload that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.member(name)?.into_str()
    }

    /// A member of the payload that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<Number> {
        Number::parse(self.member(name)?.get())
    }
}

impl<'a> Signed<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            payload: body.object("payload")?,
            from: body.text_of("from")?,
            signature: body.text_of("signature")?,
        })
    }

    /// The proof of a frame of any type, whose other members are not looked at.
    pub(crate) fn of_frame(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut body = Body::new(text);
        body.read(limits)?;
        Self::read(&body)
    }

    /// A copy whose pieces share one copy of the frame.
    pub(crate) fn to_shared(&self, copy: &FrameCopy<'_>) -> Signed {
        self.keep(copy)
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Signed<K::Text, K::Json> {
        Signed {
            payload: how.jsons(&self.payload),
            from: how.texts(&self.from),
            signature: how.texts(&self.signature),
        }
    }
}

/// Prints the address only: the payload may hold an invite code, and a signature is good for five
/// minutes.
impl<S: fmt::Debug, J> fmt::Debug for Signed<S, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}
