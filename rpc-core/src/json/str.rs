//! [`Str`]: immutable text that is cheap to clone.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// Owned, immutable text. Up to 23 bytes are stored inline, longer text in one `Arc<str>`, so a
/// clone copies no text.
///
/// ```
/// let name = rpc_core::Str::from("general");
/// assert_eq!(name, "general");
/// assert!(name.starts_with("gen"));
/// ```
#[derive(Clone, Default, Eq, PartialOrd, Ord, Hash)]
pub struct Str(SmolStr);

impl Str {
    /// The empty text.
    pub const EMPTY: Self = Self::from_static("");

    /// Creates a text from a `'static` string.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(SmolStr::new_static(text))
    }

    /// Returns the text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Deref for Str {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for Str {
    #[inline]
    fn from(text: &str) -> Self {
        Self(SmolStr::new(text))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Cow<'_, str>> for Str {
    fn from(text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<&Str> for Str {
    fn from(text: &Str) -> Self {
        text.clone()
    }
}

impl From<Str> for String {
    fn from(text: Str) -> Self {
        text.0.into()
    }
}

/// Compares with every text: `str`, `String`, [`Id`](crate::Id), another `Str`.
impl<T: AsRef<str> + ?Sized> PartialEq<T> for Str {
    #[inline]
    fn eq(&self, other: &T) -> bool {
        self.as_str() == other.as_ref()
    }
}

impl PartialEq<Str> for str {
    fn eq(&self, other: &Str) -> bool {
        other == self
    }
}

impl PartialEq<Str> for &str {
    fn eq(&self, other: &Str) -> bool {
        other == *self
    }
}

impl PartialEq<Str> for String {
    fn eq(&self, other: &Str) -> bool {
        other == self
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl Serialize for Str {
    #[inline]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Str {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(StrVisitor)
    }
}

struct StrVisitor;

impl Visitor<'_> for StrVisitor {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    #[inline]
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Str, E> {
        Ok(text.into())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Str, E> {
        Ok(text.into())
    }
}
