//! Ids: the client's [`CallId`], [`ToolCallId`], and [`WireId`], a request's id as the peer sent it.

use std::borrow::Cow;
use std::fmt;

use rpc_core::{DecodeError, Json};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::frame::ToolUse;
use crate::limits::MAX_ID_BYTES;

/// The id of a request of this client: 16 lower-case hex digits on the wire, so never `"0"`.
pub type CallId = rpc_core::CallId;

/// The id of a call of a tool: any text, by which its result refers to it.
pub type ToolCallId = rpc_core::Id<ToolUse>;

/// The id of an error about text whose id could not be read.
pub const UNREADABLE_ID: &str = "0";

/// The `id` of a request: a JSON string or number, kept as it was sent.
///
/// Answers carry its [text](Self::text), as with the known gateway: a number is returned as a
/// string.
#[derive(Clone)]
pub struct WireId(Json);

impl WireId {
    /// Creates an id from a raw string or number.
    ///
    /// # Errors
    /// [`DecodeError`] for any other value, for a number out of range, and for more than
    /// 1,024 bytes.
    pub fn new(raw: impl Into<Json>) -> Result<Self, DecodeError> {
        let raw = raw.into();
        if raw.get().len() > MAX_ID_BYTES {
            return Err(DecodeError::bad_value("id", "short enough"));
        }
        match read(&raw) {
            Some(_) => Ok(Self(raw)),
            None => Err(DecodeError::wrong_type("id", "a string or a number")),
        }
    }

    /// Returns the id as a text: a string's contents, or the number as the known gateway writes it
    /// (`7` is `7`, `1e3` is `1000.0`).
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        // Readable since it was made.
        read(&self.0).unwrap_or_default()
    }

    /// Returns the id as JSON, as it was sent.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the id as answers carry it: a string, or a number if `numbers` are returned as such.
    pub(crate) fn into_answer(self, numbers: bool) -> Json {
        let as_read = match self.0.as_str() {
            // Without an escape a string is written as it was read.
            Some(text) => matches!(text, Cow::Borrowed(_)),
            None => numbers,
        };
        if as_read {
            return self.0;
        }
        Json::string(&self.text())
    }
}

fn read(raw: &Json) -> Option<Cow<'_, str>> {
    match raw.first_byte() {
        b'"' => raw.as_str(),
        b'-' | b'0'..=b'9' => number_text(raw.get()),
        _ => None,
    }
}

/// Returns a number in its shortest form: 64-bit integers as they are, all others as a double.
fn number_text(digits: &str) -> Option<Cow<'_, str>> {
    let whole = digits != "-0" && (digits.parse::<u64>().is_ok() || digits.parse::<i64>().is_ok());
    if whole {
        return Some(Cow::Borrowed(digits));
    }
    let double = digits.parse::<f64>().ok().filter(|n| n.is_finite())?;
    serde_json::to_string(&double).ok().map(Cow::Owned)
}

/// Compares the texts: `7` and `"7"` name the same request.
impl PartialEq for WireId {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for WireId {}

impl fmt::Debug for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

/// Writes the [text](WireId::text): always a string.
impl Serialize for WireId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Json::deserialize(from)?;
        if raw.is_null() {
            return Err(D::Error::missing_field("id"));
        }
        Self::new(raw).map_err(|error| D::Error::custom(error.kind()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Json {
        Json::new(json).unwrap()
    }

    #[test]
    fn a_numeric_id_is_formatted_like_the_known_gateway() {
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
    fn other_values_are_not_ids() {
        for json in ["null", "true", "[]", "{}", "1e999"] {
            assert!(WireId::new(raw(json)).is_err(), "{json}");
        }
    }

    #[test]
    fn an_overlong_id_counts_as_absent() {
        let text = |len| format!("\"{}\"", "x".repeat(len - 2));
        assert!(WireId::new(raw(&text(MAX_ID_BYTES))).is_ok());
        assert!(WireId::new(raw(&text(MAX_ID_BYTES + 1))).is_err());
        assert!(WireId::new(raw(&"1".repeat(MAX_ID_BYTES + 1))).is_err());
    }
}
