//! [`RawJson`] and [`RawRef`]: a JSON value as it was sent.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::unescape::unescape;
use super::{DecodeError, Reader, parse};
use crate::json::serialize_verbatim;
use crate::limits::Limits;

/// A JSON value as it was sent, borrowed from the frame or owned. Two are equal if their texts are.
///
/// The text is one valid JSON value without white space around it: it was checked when the value
/// was made, so that it can be written without another look.
#[derive(Clone)]
pub struct RawJson<'a> {
    text: Cow<'a, str>,
    /// It is known to be a string without escapes.
    plain: bool,
}

impl<'a> RawJson<'a> {
    /// Takes a text that is one JSON value. White space around it is left out.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Syntax`](super::DecodeErrorKind::Syntax) if it is not JSON.
    pub fn new(text: &'a str) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(text);
        let raw = reader.raw_or_null()?;
        reader.end()?;
        Ok(raw)
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.text
    }

    /// The JSON text, by value.
    #[must_use]
    pub fn into_text(self) -> Cow<'a, str> {
        self.text
    }

    /// The same value, borrowed from this one.
    #[must_use]
    pub fn borrowed(&self) -> RawJson<'_> {
        RawJson {
            text: Cow::Borrowed(&self.text),
            plain: self.plain,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson {
            text: Cow::Owned(self.text.into_owned()),
            plain: self.plain,
        }
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// The first byte, which tells of what type the value is.
    #[must_use]
    pub fn first_byte(&self) -> Option<u8> {
        self.get().as_bytes().first().copied()
    }

    /// The contents of a string: borrowed if it has no escapes. `None` if the value is not a
    /// string, or one that no text can hold (a lone surrogate).
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        string(&self.text, self.plain)
    }

    /// As [`as_str`](Self::as_str), by value.
    #[must_use]
    pub fn into_str(self) -> Option<Cow<'a, str>> {
        match self.text {
            Cow::Borrowed(text) => string(text, self.plain),
            Cow::Owned(text) => string(&text, self.plain).map(|text| Cow::Owned(text.into_owned())),
        }
    }

    /// The text of a string or a number (a number's text is its digits as they were sent). `None`
    /// for anything else.
    #[must_use]
    pub fn as_id(&self) -> Option<Cow<'_, str>> {
        match self.first_byte() {
            Some(b'"') => self.as_str(),
            Some(b'-' | b'0'..=b'9') => Some(Cow::Borrowed(&self.text)),
            _ => None,
        }
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no `T`, or nested more than 127 levels deep. Line and column count
    /// from the start of the value.
    pub fn parse<'s, T: Deserialize<'s>>(&'s self) -> Result<T, DecodeError> {
        parse(self.get(), &Limits::default())
    }
}

impl RawJson<'static> {
    /// A string with this text.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self {
            text: Cow::Owned(serde_json::Value::from(text).to_string()),
            plain: false,
        }
    }
}

/// The contents of a JSON text that is a string.
fn string(json: &str, plain: bool) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if plain || !inner.as_bytes().contains(&b'\\') {
        Some(Cow::Borrowed(inner))
    } else {
        unescape(inner).map(Cow::Owned)
    }
}

/// A [`RawJson`] that is borrowed for certain: it can be copied, and there is nothing to drop. For
/// many of them at a time, of which few are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawRef<'a> {
    text: &'a str,
    plain: bool,
}

impl<'a> RawRef<'a> {
    /// The value `null`.
    pub const NULL: Self = Self {
        text: "null",
        plain: false,
    };

    /// A text that the reader has just gone over.
    pub(super) const fn scanned(text: &'a str, plain: bool) -> Self {
        Self { text, plain }
    }

    /// The JSON text.
    #[must_use]
    pub const fn get(self) -> &'a str {
        self.text
    }
}

impl<'a> From<RawRef<'a>> for RawJson<'a> {
    fn from(raw: RawRef<'a>) -> Self {
        Self {
            text: Cow::Borrowed(raw.text),
            plain: raw.plain,
        }
    }
}

/// Prints the length only: payloads carry private text.
impl fmt::Debug for RawRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawRef({} bytes)", self.get().len())
    }
}

impl<'a> From<&'a RawValue> for RawJson<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self {
            text: Cow::Borrowed(raw.get()),
            plain: false,
        }
    }
}

impl<'a> From<&'a Box<RawValue>> for RawJson<'a> {
    fn from(raw: &'a Box<RawValue>) -> Self {
        Self::from(&**raw)
    }
}

impl From<Box<RawValue>> for RawJson<'_> {
    fn from(raw: Box<RawValue>) -> Self {
        Self {
            text: Cow::Owned(Box::<str>::from(raw).into_string()),
            plain: false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_without_the_space_around_it() {
        let raw = RawJson::new(" [1, 2]\n").unwrap();
        assert_eq!((raw.get(), raw.first_byte()), ("[1, 2]", Some(b'[')));
        assert!(RawJson::new("").is_err() && RawJson::new("1 2").is_err());
        assert!(RawJson::new("null").unwrap().is_null());
    }

    #[test]
    fn a_reference_is_the_same_value() {
        let mut reader = Reader::new(r#" "a\n" "#);
        let raw = reader.raw_ref().unwrap();
        assert_eq!(raw.get(), r#""a\n""#);
        assert_eq!(RawJson::from(raw).into_str().as_deref(), Some("a\n"));
        assert!(RawJson::from(RawRef::NULL).is_null());
        assert_eq!(format!("{raw:?}"), "RawRef(5 bytes)");
    }

    #[test]
    fn a_string_is_borrowed_if_it_can_be() {
        let borrowed = |raw: RawJson<'_>| matches!(raw.into_str(), Some(Cow::Borrowed("ann")));
        assert!(borrowed(RawJson::new(r#""ann""#).unwrap()));
        let theirs: &RawValue = serde_json::from_str(r#""ann""#).unwrap();
        assert!(borrowed(theirs.into()));
        let escaped = RawJson::new(r#""a\u006en""#).unwrap();
        assert_eq!(escaped.as_str().as_deref(), Some("ann"));
        assert_eq!(escaped.clone().into_owned(), escaped);
        assert_eq!(RawJson::new("[]").unwrap().into_str(), None);
        assert_eq!(RawJson::string("a\"b\n").get(), r#""a\"b\n""#);
    }

    #[test]
    fn an_id_is_a_string_or_the_digits_of_a_number() {
        let id = |json| Some(RawJson::new(json).ok()?.as_id()?.into_owned());
        assert_eq!(id("1.50").as_deref(), Some("1.50"));
        assert_eq!(id(r#""x""#).as_deref(), Some("x"));
        assert_eq!(id("true"), None);
    }

    #[test]
    fn a_value_is_written_as_it_was_read() {
        let raw = RawJson::new(r#"{"a": 1.50}"#).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), r#"{"a": 1.50}"#);
        let boxed = RawValue::from_string("[ 1 ]".to_owned()).unwrap();
        assert_eq!(RawJson::from(&boxed), RawJson::from(boxed.clone()));
        assert_eq!(format!("{raw:?}"), "RawJson(11 bytes)");
    }
}
