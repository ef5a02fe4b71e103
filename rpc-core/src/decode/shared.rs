//! [`SharedStr`] and [`SharedJson`]: owned pieces of one frame that share one copy of its text.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::offset_in;
use super::{DecodeError, RawJson, parse};
use crate::json::serialize_verbatim;
use crate::limits::Limits;

/// An owned, immutable text that is cheap to clone. Several of them may be pieces of one
/// allocation: a piece that is kept keeps the whole frame, so copy a short piece of a long frame
/// (`to_string`) before storing it for long.
#[derive(Clone)]
pub struct SharedStr(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Piece {
        whole: Arc<str>,
        start: usize,
        end: usize,
    },
}

impl SharedStr {
    /// A text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Repr::Static(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(text) => text,
            // The bounds were checked when the piece was made.
            Repr::Piece { whole, start, end } => whole.get(*start..*end).unwrap_or_default(),
        }
    }
}

impl Default for SharedStr {
    fn default() -> Self {
        Self::from_static("")
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> Self {
        Self(Repr::Piece {
            whole: text.into(),
            start: 0,
            end: text.len(),
        })
    }
}

impl From<String> for SharedStr {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Deref for SharedStr {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for SharedStr {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for SharedStr {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for SharedStr {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SharedStr {}

impl PartialEq<str> for SharedStr {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for SharedStr {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Hash for SharedStr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl serde::Serialize for SharedStr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// An owned JSON value, kept as it was sent and cheap to clone. Two are equal if their texts are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SharedJson(SharedStr);

impl SharedJson {
    /// The value `null`.
    pub const NULL: Self = Self(SharedStr::from_static("null"));

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no `T`, or nested more than 127 levels deep. Line and column count
    /// from the start of the value.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        parse(self.get(), &Limits::default())
    }
}

impl Default for SharedJson {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<&RawValue> for SharedJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }
}

impl From<&RawJson<'_>> for SharedJson {
    fn from(raw: &RawJson<'_>) -> Self {
        Self(raw.get().into())
    }
}

/// Prints the length only: payloads carry private text.
impl fmt::Debug for SharedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedJson({} bytes)", self.get().len())
    }
}

impl serde::Serialize for SharedJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_verbatim(self.get(), serializer)
    }
}

/// One owned copy of a frame's text, from which an event cuts its pieces without more copies.
#[derive(Clone)]
pub struct FrameCopy<'a> {
    text: &'a str,
    whole: Arc<str>,
}

impl<'a> FrameCopy<'a> {
    /// Copies the text.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self {
            text,
            whole: text.into(),
        }
    }

    /// The piece that `part` is. A part that is no piece of the text (it had escapes) is copied.
    #[must_use]
    pub fn str(&self, part: &str) -> SharedStr {
        match offset_in(self.text, part) {
            Some(start) => SharedStr(Repr::Piece {
                whole: Arc::clone(&self.whole),
                start,
                end: start + part.len(),
            }),
            None => part.into(),
        }
    }

    /// The piece that a raw value is.
    #[must_use]
    pub fn json(&self, part: &RawJson<'_>) -> SharedJson {
        SharedJson(self.str(part.get()))
    }

    /// As [`json`](Self::json), from the value's text. For a text that was decoded; any other text
    /// fails when it is parsed, and is written as it is.
    #[must_use]
    pub fn json_text(&self, part: &str) -> SharedJson {
        SharedJson(self.str(part))
    }

    /// The whole text as JSON. For a text that was decoded; any other text fails when it is parsed,
    /// and is written as it is.
    #[must_use]
    pub fn whole_json(&self) -> SharedJson {
        SharedJson(self.whole())
    }

    /// The whole text.
    #[must_use]
    pub fn whole(&self) -> SharedStr {
        SharedStr(Repr::Piece {
            whole: Arc::clone(&self.whole),
            start: 0,
            end: self.whole.len(),
        })
    }
}

/// Prints the length only.
impl fmt::Debug for FrameCopy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameCopy({} bytes)", self.text.len())
    }
}
