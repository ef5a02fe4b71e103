//! [`Unknown`]: an object of a type that a protocol does not know.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::raw::RawJson;

/// An object of a type that a protocol does not know, or not yet. It is written as it was read.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown<'a> {
    /// Its type.
    pub tag: Cow<'a, str>,
    /// The whole object.
    pub raw: RawJson<'a>,
}

impl<'a> Unknown<'a> {
    /// An object of this type.
    #[must_use]
    pub const fn new(tag: Cow<'a, str>, raw: RawJson<'a>) -> Self {
        Self { tag, raw }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Unknown<'static> {
        Unknown {
            tag: Cow::Owned(self.tag.into_owned()),
            raw: self.raw.into_owned(),
        }
    }
}

/// Prints the type only.
impl fmt::Debug for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unknown").field(&self.tag).finish()
    }
}

impl Serialize for Unknown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}
