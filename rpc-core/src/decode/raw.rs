//! [`RawJson`]: a JSON value as it was sent, that can be compared and printed safely.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde_json::value::RawValue;

use crate::json::serialize_verbatim;

/// A JSON value as it was sent, borrowed from the frame or owned. Two are equal if their texts are.
#[derive(Clone)]
pub struct RawJson<'a>(Cow<'a, RawValue>);

impl RawJson<'_> {
    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a RawValue> for RawJson<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw))
    }
}

impl From<Box<RawValue>> for RawJson<'_> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(raw))
    }
}

impl Deref for RawJson<'_> {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for RawJson<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson<'_> {}

/// Prints the length only: payloads carry private text.
impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.get().len())
    }
}

impl serde::Serialize for RawJson<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_verbatim(self.get(), serializer)
    }
}
