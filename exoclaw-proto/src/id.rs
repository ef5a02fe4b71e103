//! Ids: the client's [`CallId`], and [`WireId`], a request's id as the peer sent it.

use std::borrow::Cow;
use std::fmt;

use rpc_core::decode::{DecodeError, RawJson};

use crate::limits::MAX_ID_BYTES;

/// The id of a request that this client made: 16 lower-case hex digits on the wire, so never `"0"`.
pub type CallId = rpc_core::CallId;

/// The id of an error that answers no request: what was sent could not be read so far.
pub const UNREADABLE_ID: &str = "0";

/// A request's `id` as it stands in a frame: a JSON string or number, kept as it was sent.
///
/// Answers carry its [text](Self::text), as the known gateway does: a number comes back as a string.
#[derive(Clone)]
pub struct WireId<'a> {
    raw: RawJson<'a>,
}

impl<'a> WireId<'a> {
    /// Takes a raw value that is a string or a number.
    ///
    /// # Errors
    /// [`DecodeError`] for any other value, for a string that no text can hold (a lone surrogate),
    /// for a number that is out of range, and for more than [`MAX_ID_BYTES`].
    pub fn new(raw: impl Into<RawJson<'a>>) -> Result<Self, DecodeError> {
        let raw = raw.into();
        if raw.get().len() > MAX_ID_BYTES {
            return Err(DecodeError::bad_value("id", "short enough"));
        }
        let id = Self { raw };
        match id.read() {
            Some(_) => Ok(id),
            None => Err(DecodeError::wrong_type("id", "a string or a number")),
        }
    }

    /// The id as a text: a string's contents, or the number as the known gateway writes it (`7` is
    /// `7`, `1e3` is `1000.0`).
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        // Readable since it was made.
        self.read().unwrap_or_default()
    }

    /// The id as JSON, as it was sent.
    #[must_use]
    pub fn get(&self) -> &str {
        self.raw.get()
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> WireId<'static> {
        WireId {
            raw: self.raw.into_owned(),
        }
    }

    fn read(&self) -> Option<Cow<'_, str>> {
        match self.raw.first_byte() {
            Some(b'"') => self.raw.as_str(),
            Some(b'-' | b'0'..=b'9') => number_text(self.get()),
            _ => None,
        }
    }
}

impl WireId<'static> {
    /// An id that is this text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self {
            raw: RawJson::string(text),
        }
    }
}

/// A number in its shortest form: whole numbers of 64 bits as they are, all others as a double.
fn number_text(digits: &str) -> Option<Cow<'_, str>> {
    let whole = digits != "-0" && (digits.parse::<u64>().is_ok() || digits.parse::<i64>().is_ok());
    if whole {
        return Some(Cow::Borrowed(digits));
    }
    let double = digits.parse::<f64>().ok().filter(|n| n.is_finite())?;
    serde_json::to_string(&double).ok().map(Cow::Owned)
}

/// Equal if the texts are: `7` and `"7"` name the same request.
impl PartialEq for WireId<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for WireId<'_> {}

impl fmt::Debug for WireId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// Writes the [text](WireId::text): always a string.
impl serde::Serialize for WireId<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> RawJson<'_> {
        RawJson::new(json).unwrap()
    }

    #[test]
    fn a_number_reads_as_the_known_gateway_writes_it() {
        for (json, text) in [
            (r#""a\u0062""#, "ab"),
            (r#""""#, ""),
            ("7", "7"),
            ("-7", "-7"),
            ("1.0", "1.0"),
            ("1e3", "1000.0"),
            ("-0", "-0.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
        ] {
            let id = WireId::new(raw(json)).unwrap();
            assert_eq!(id.text(), text, "{json}");
            assert_eq!(id.get(), json);
            assert_eq!(
                serde_json::to_string(&id).unwrap(),
                serde_json::to_string(text).unwrap()
            );
        }
    }

    #[test]
    fn anything_else_is_no_id() {
        for json in ["null", "true", "[]", "{}", r#""\ud800""#, "1e999"] {
            assert!(WireId::new(raw(json)).is_err(), "{json}");
        }
    }

    #[test]
    fn a_long_id_is_none() {
        let text = |len| format!("\"{}\"", "x".repeat(len - 2));
        assert!(WireId::new(raw(&text(MAX_ID_BYTES))).is_ok());
        assert!(WireId::new(raw(&text(MAX_ID_BYTES + 1))).is_err());
        assert!(WireId::new(raw(&"1".repeat(MAX_ID_BYTES + 1))).is_err());
    }

    #[test]
    fn a_text_makes_an_id() {
        assert_eq!(WireId::from_text("a\"b").get(), r#""a\"b""#);
        assert_eq!(WireId::from_text("7"), WireId::new(raw("7")).unwrap());
    }
}
