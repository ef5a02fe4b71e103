//! Canonical JSON: the bytes that a signature covers, made from the received text.
//!
//! Peers sign what their own language writes for the payload, in one of several forms: see
//! [`Canonical`]. All forms are made from the text as it was received, so that nothing is lost:
//! numbers keep their digits, members can keep their order, and half of a surrogate pair stays as
//! it is. The layers from the bottom: `points` reads the characters of a string, `tree` finds
//! strings, numbers and members, `number` writes numbers as Python does, `write` writes a form.

mod number;
mod points;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use rpc_core::json::check_size;
use rpc_core::{DecodeError, Limits};

use crate::limits::of_server;
use tree::Value;
pub(crate) use tree::{Value as Tree, same_name};

/// A form in which a payload is signed. All of them have no white space; strings have the short
/// escapes `\" \\ \b \f \n \r \t`, and `\u00xx` for other control characters. Exhaustive: known hosts
/// refuse a signature over anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Canonical {
    /// Members sorted by code point at every level; DEL and all non-ASCII characters escaped as
    /// `\uxxxx`; numbers as received. Signed by Python clients.
    Escaped,
    /// Like [`Escaped`](Self::Escaped), but with unescaped characters; only halves of surrogate pairs
    /// are escaped. Signed by newer JavaScript clients.
    Utf8,
    /// Like [`Utf8`](Self::Utf8), but only the outermost members are sorted, as JavaScript does it
    /// (whole numbers first, then by UTF-16 unit); inner members keep the order in which they were
    /// received. Signed by older JavaScript clients.
    TopLevel,
    /// Like [`Escaped`](Self::Escaped), but with numbers as Python writes them: `1e5` is `100000.0`.
    /// A Python host derives this form from a text; it equals [`Escaped`](Self::Escaped) if the
    /// text comes from Python. This crate signs it, because every host derives it identically,
    /// whatever happens on the way.
    Python,
}

impl Canonical {
    /// All forms, in the order in which a signature is tried.
    pub const ALL: [Self; 4] = [Self::Escaped, Self::Utf8, Self::TopLevel, Self::Python];
}

/// Writes a JSON text in a canonical form.
///
/// ```
/// use connectonion_proto::auth::{Canonical, canonical_json};
///
/// let text = r#"{"to": "you", "a": {"z": 1.50, "é": null}}"#;
/// let escaped = canonical_json(text, Canonical::Escaped)?;
/// assert_eq!(escaped, r#"{"a":{"z":1.50,"\u00e9":null},"to":"you"}"#);
/// let python = canonical_json(text, Canonical::Python)?;
/// assert_eq!(python, r#"{"a":{"z":1.5,"\u00e9":null},"to":"you"}"#);
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
///
/// # Errors
/// [`DecodeError`] if the text is not JSON, has a member twice, has more than [`MAX_SERVER_MESSAGE`](crate::limits::MAX_SERVER_MESSAGE) bytes or 65,536 values,
/// or nests more than 128 levels deep. Retrying fails again.
pub fn canonical_json(text: &str, form: Canonical) -> Result<String, DecodeError> {
    let value = read(text, &of_server())?;
    Ok(value.canonical(form, text.len()))
}

/// Reads a text that is one JSON value.
///
/// # Errors
/// As for [`canonical_json`], with these limits.
pub(crate) fn read<'a>(text: &'a str, limits: &Limits) -> Result<Value<'a>, DecodeError> {
    check_size(text.len(), limits)?;
    Value::read(text, limits)
}
