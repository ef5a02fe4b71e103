//! Ids: [`Id`] for names that the peer chose, [`CallId`] for numbered calls of this side, and
//! generators for other ids.

mod hex;
pub(crate) mod unique;

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serializer};

pub use unique::{UniqueBits, uuid};

use crate::json::{Str, lenient};

/// A text id of kind `K`, cheap to clone. Ids of different kinds are different types.
///
/// ```
/// enum Channel {}
/// let id: rpc_core::Id<Channel> = "general".into();
/// let text = rpc_core::Str::from("general");
/// assert!(id == "general" && id == text && text == id && String::from("general") == id);
/// ```
pub struct Id<K: ?Sized> {
    text: Str,
    kind: PhantomData<fn() -> Box<K>>,
}

impl<K: ?Sized> Id<K> {
    /// Creates an id from its text.
    pub fn new(text: impl Into<Str>) -> Self {
        Self {
            text: text.into(),
            kind: PhantomData,
        }
    }

    /// Returns the text on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[automatically_derived]
impl<K: ?Sized> Clone for Id<K> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            kind: PhantomData,
        }
    }
}

/// The empty text.
impl<K: ?Sized> Default for Id<K> {
    fn default() -> Self {
        Self::new(Str::EMPTY)
    }
}

#[automatically_derived]
impl<K: ?Sized> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[automatically_derived]
impl<K: ?Sized> Eq for Id<K> {}

#[automatically_derived]
impl<K: ?Sized> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[automatically_derived]
impl<K: ?Sized> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

#[automatically_derived]
impl<K: ?Sized> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl<K: ?Sized> Borrow<str> for Id<K> {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl<K: ?Sized> std::ops::Deref for Id<K> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<K: ?Sized> AsRef<str> for Id<K> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

macro_rules! as_text {
    (compared: $($Text:ty),*; made: $($From:ty),*) => {
        $(impl<K: ?Sized> PartialEq<$Text> for Id<K> {
            fn eq(&self, other: &$Text) -> bool {
                self.text == *other
            }
        }

        impl<K: ?Sized> PartialEq<Id<K>> for $Text {
            fn eq(&self, other: &Id<K>) -> bool {
                other.text == *self
            }
        })*
        $(impl<K: ?Sized> From<$From> for Id<K> {
            fn from(text: $From) -> Self {
                Self::new(text)
            }
        })*
    };
}
as_text! { compared: str, &str, String; made: &str, String, &Str, Str, &Self }

impl<K: ?Sized> PartialEq<Str> for Id<K> {
    fn eq(&self, other: &Str) -> bool {
        self.text == *other
    }
}

impl<K: ?Sized> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl<K: ?Sized> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K: ?Sized> From<&String> for Id<K> {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl<K: ?Sized> From<&Id<K>> for Str {
    fn from(id: &Id<K>) -> Self {
        id.text.clone()
    }
}

impl<K: ?Sized> From<Id<K>> for Str {
    fn from(id: Id<K>) -> Self {
        id.text
    }
}

impl<K: ?Sized> serde::Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Reads a string, or a number as its digits.
impl<'de, K: ?Sized> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        lenient::id(from)
    }
}

/// The text form of a call id on the wire.
pub trait IdForm: Copy + Eq + Hash {
    /// Writes the id.
    ///
    /// # Errors
    /// Only what `out` returns.
    fn write(raw: u64, out: &mut dyn fmt::Write) -> fmt::Result;

    /// Reads exactly what [`write`](Self::write) writes; returns `None` for anything else.
    fn parse(text: &str) -> Option<u64>;

    /// Serializes the id as a string. Override it for a form that has its text at hand.
    ///
    /// # Errors
    /// Only what `serializer` returns.
    fn serialize<S: Serializer>(raw: u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&CallId::<Self>::from_raw(raw))
    }
}

/// Sixteen lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hex16 {}

impl IdForm for Hex16 {
    fn write(raw: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(hex::text(&hex::digits(raw)))
    }

    fn parse(text: &str) -> Option<u64> {
        hex::parse(text)
    }

    fn serialize<S: Serializer>(raw: u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(hex::text(&hex::digits(raw)))
    }
}

/// The id of a call of this side, in the wire form `F`.
///
/// It is the address of the call in [`PendingCalls`](crate::PendingCalls), mixed with a seed per
/// connection. Copying, comparing and looking it up costs no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId<F = Hex16> {
    raw: u64,
    form: PhantomData<fn() -> F>,
}

impl<F> CallId<F> {
    /// Creates an id from its number.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self {
            raw,
            form: PhantomData,
        }
    }

    /// Returns the number behind the text.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.raw
    }
}

impl<F: IdForm> CallId<F> {
    /// Parses an id in its exact wire form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        F::parse(text).map(Self::from_raw)
    }
}

impl<F: IdForm> fmt::Display for CallId<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        F::write(self.raw, f)
    }
}

impl<F: IdForm> fmt::Debug for CallId<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        F::write(self.raw, f)
    }
}

impl<F: IdForm> serde::Serialize for CallId<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        F::serialize(self.raw, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hex_id_reads_back_only_in_its_exact_form() {
        let id = CallId::<Hex16>::from_raw(0xfeed);
        assert_eq!(id.to_string(), "000000000000feed");
        assert_eq!(CallId::parse("000000000000feed"), Some(id));
        for wrong in [
            "feed",
            "000000000000FEED",
            "00000000000feed ",
            "00000000000feedé",
            "",
        ] {
            assert_eq!(CallId::<Hex16>::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_call_id_is_written_as_a_json_string() {
        let id = CallId::<Hex16>::from_raw(1);
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"0000000000000001\"");
    }
}
