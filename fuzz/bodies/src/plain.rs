//! What `serde_json` makes of a text: the other side of every comparison.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A text as `serde_json` reads it.
pub(crate) enum Plain {
    /// It is no JSON.
    Nothing,
    /// It is JSON, but a map cannot hold it as it is: a name comes twice in an object, a string
    /// has half a surrogate, a number is too large, or it is too deep.
    Odd,
    /// Everything in it has one meaning.
    Clear(Value),
}

impl Plain {
    pub(crate) fn read(text: &str) -> Self {
        // Skips a value of any depth, and does not look into strings and numbers.
        if serde_json::from_str::<IgnoredAny>(text).is_err() {
            return Self::Nothing;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) if names_come_once(text) => Self::Clear(value),
            _ => Self::Odd,
        }
    }
}

/// Whether no object anywhere has two members of one name.
fn names_come_once(text: &str) -> bool {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
        return items.iter().all(|item| names_come_once(item.get()));
    }
    let mut names = BTreeSet::new();
    let members = members(text).unwrap_or_default();
    let mut members = members.into_iter();
    members.all(|(name, value)| names.insert(name) && names_come_once(value.get()))
}

/// What JavaScript's `trim` gives.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|letter: char| {
        letter == '\u{feff}' || letter != '\u{85}' && letter.is_whitespace()
    })
}

/// Whether two numbers are the same except for the last bits, which `serde_json` may miss.
pub(crate) fn near((one, other): (f64, f64)) -> bool {
    (one - other).abs() <= one.abs() * 1e-14 + 1e-300
}

/// The members of an object in their order, also those whose names come twice. `None` if the text is
/// no object.
pub(crate) fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let members = parser.deserialize_map(Members).ok()?;
    parser.end().ok().map(|()| members)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}
