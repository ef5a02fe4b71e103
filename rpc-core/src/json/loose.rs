//! [`LooseStr`]: a member that is usually a string.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::Str;
use super::lenient::{ByType, by_type};

/// A member that is usually a string, where another type must not make the frame unreadable.
/// Exhaustive: every JSON value but null is one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[allow(clippy::exhaustive_enums)]
pub enum LooseStr {
    /// A string.
    Str(Str),
    /// `true` or `false`.
    Bool(bool),
    /// Any other value; it is skipped, and written as null.
    Other,
}

impl LooseStr {
    /// Returns the text, if it is a string.
    #[must_use]
    pub fn text(self) -> Option<Str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Bool(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for LooseStr {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        by_type(from)
    }
}

impl ByType for LooseStr {
    #[inline]
    fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
        match first {
            b'"' => Str::deserialize(from).map(Self::Str),
            b't' | b'f' => bool::deserialize(from).map(Self::Bool),
            _ => IgnoredAny::deserialize(from).map(|_| Self::Other),
        }
    }
}
