//! JSON that is passed through as it is, by the agreement that `serde_json` has with itself.

use serde::ser::{SerializeStruct, Serializer};

use super::token;

/// The name of a number kept as digits, which `serde_json` has with `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

/// Whether a struct of this name is a text to be written verbatim.
#[inline]
pub(super) fn is_verbatim(name: &str) -> bool {
    name == token::RAW || name == NUMBER
}

/// Hands a JSON text to a serializer of this crate or of `serde_json`, which writes it as it is.
/// The text is not looked at again: it must be JSON.
pub(crate) fn serialize_verbatim<S: Serializer>(
    json: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(token::RAW, 1)?;
    raw.serialize_field(token::RAW, json)?;
    raw.end()
}
