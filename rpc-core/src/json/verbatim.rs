//! JSON that is written unchanged, by the convention that `serde_json` uses internally.

use serde::ser::{SerializeStruct, Serializer};

use super::token;

/// The name of a number kept as digits, which `serde_json` uses with `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Returns whether a struct of this name is text to write verbatim.
#[inline]
pub(super) fn is_verbatim(name: &str) -> bool {
    name == token::RAW || name == NUMBER
}

/// Passes JSON text to a serializer of this crate or of `serde_json`, which writes it unchanged.
/// The text is not checked: it must be JSON.
pub(crate) fn serialize_verbatim<S: Serializer>(
    json: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(token::RAW, 1)?;
    raw.serialize_field(token::RAW, json)?;
    raw.end()
}
