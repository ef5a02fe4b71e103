//! Decoding: one pass from a text to a borrowed frame, and [`DecodeError`].
//!
//! A codec lists the members of all its frames in one flat struct, implements [`Members`] for it
//! and calls [`object`]. What that gives:
//!
//! - The size is checked before anything is read, and a text whose first byte is not `{` is
//!   refused at once.
//! - Strings without escapes are borrowed from the text, so that such a frame costs no
//!   allocation. (A payload kept raw that is nested at least twice costs one: the scanner of
//!   `serde_json` notes the brackets that are open.)
//! - `null` counts as absent, a known member that comes twice is an error, and an unknown one is
//!   skipped without being parsed.
//! - A payload of any depth is passed through raw. Depth is checked where a value is parsed:
//!   [`parse`].
//!
//! ```
//! use rpc_core::Limits;
//! use rpc_core::decode::{self, Field, MapAccess, Members, Slot};
//! use std::borrow::Cow;
//!
//! #[derive(Default)]
//! struct Frame<'a> {
//!     kind: Slot<Cow<'a, str>>,
//! }
//!
//! impl<'a> Members<'a> for Frame<'a> {
//!     fn member<A: MapAccess<'a>>(
//!         &mut self,
//!         name: &str,
//!         field: Field<'_, A>,
//!     ) -> Result<(), A::Error> {
//!         match name {
//!             "kind" => field.str("kind", &mut self.kind),
//!             _ => field.skip(),
//!         }
//!     }
//! }
//!
//! let frame: Frame<'_> = decode::object(r#"{"kind":"ping","x":[1]}"#, &Limits::default())?;
//! assert_eq!(frame.kind.get().map(|kind| &**kind), Some("ping"));
//! # Ok::<(), decode::DecodeError>(())
//! ```

mod error;
mod field;
mod find;
mod raw;
mod shared;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use error::{DecodeError, DecodeErrorKind};
pub use field::{Field, LooseStr, Members, Slot};
pub use find::find_member;
pub use raw::RawJson;
pub use serde::de::MapAccess;
pub use shared::{FrameCopy, SharedJson, SharedStr};

use crate::limits::Limits;
use error::Notes;
use field::ObjectSeed;

/// The deepest nesting that `serde_json` parses, whatever [`Limits::max_depth`] says.
const PARSER_DEPTH: usize = 127;

/// Decodes a text that must be one JSON object, in one pass.
///
/// # Errors
/// [`DecodeError`]; decoding the same text again fails again.
pub fn object<'a, M: Members<'a>>(text: &'a str, limits: &Limits) -> Result<M, DecodeError> {
    check_size(text.len(), limits)?;
    check_object(text)?;
    let notes = Notes::default();
    let mut parser = serde_json::Deserializer::from_str(text);
    let members = ObjectSeed::<M>::new(&notes)
        .deserialize(&mut parser)
        .and_then(|members| parser.end().map(|()| members));
    members.map_err(|error| notes.explain(&error, text))
}

/// Checks a message's size against [`Limits::max_message_bytes`].
///
/// # Errors
/// [`DecodeErrorKind::TooLarge`].
pub fn check_size(size: usize, limits: &Limits) -> Result<(), DecodeError> {
    let max = limits.max_message_bytes;
    if size > max {
        return Err(DecodeError::new(DecodeErrorKind::TooLarge { size, max }));
    }
    Ok(())
}

/// Checks that the first byte after JSON white space is `{`. An array would otherwise pass for an
/// object whose members come by position.
///
/// # Errors
/// [`DecodeErrorKind::NotAnObject`].
pub fn check_object(text: &str) -> Result<(), DecodeError> {
    if first_byte(text) == Some(b'{') {
        Ok(())
    } else {
        Err(DecodeError::new(DecodeErrorKind::NotAnObject).locate(text, 0))
    }
}

/// The first byte after JSON white space: it tells an object from an array, a string and so on.
#[must_use]
pub fn first_byte(text: &str) -> Option<u8> {
    text.bytes()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Parses a piece of JSON, for example a payload that was kept raw.
///
/// Nesting deeper than [`Limits::max_depth`] is refused without recursion. `serde_json` itself
/// refuses more than 127 levels, so a larger limit changes nothing here. Line and column of an
/// error count from the start of `json`; [`DecodeError::within`] moves them.
///
/// # Errors
/// [`DecodeError`]; parsing the same text again fails again.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a str, limits: &Limits) -> Result<T, DecodeError> {
    if limits.max_depth < PARSER_DEPTH {
        check_depth(json, limits.max_depth)?;
    }
    serde_json::from_str(json).map_err(|error| Notes::default().explain(&error, json))
}

/// Parses a JSON object into [`Members`], with the checks of [`parse`].
///
/// # Errors
/// [`DecodeError`]; parsing the same text again fails again.
pub fn parse_object<'a, M: Members<'a>>(json: &'a str, limits: &Limits) -> Result<M, DecodeError> {
    if limits.max_depth < PARSER_DEPTH {
        check_depth(json, limits.max_depth)?;
    }
    object(json, limits)
}

/// Implements `Deserialize` for a type whose members are [`Members`]: reads them from an object,
/// never from an array.
///
/// # Errors
/// The deserializer's.
pub fn from_map<'de, M: Members<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<M, D::Error> {
    ObjectSeed::<M>::new(&Notes::default()).deserialize(from)
}

/// Parses a JSON array of at most [`Limits::max_items`] items, with the checks of [`parse`].
///
/// # Errors
/// [`DecodeErrorKind::TooManyItems`], or as for [`parse`].
pub fn parse_list<'a, T: Deserialize<'a>>(
    json: &'a str,
    limits: &Limits,
) -> Result<Vec<T>, DecodeError> {
    if limits.max_depth < PARSER_DEPTH {
        check_depth(json, limits.max_depth)?;
    }
    let notes = Notes::default();
    let seed = ListSeed {
        max: limits.max_items,
        notes: &notes,
        item: PhantomData,
    };
    let mut parser = serde_json::Deserializer::from_str(json);
    let list = seed
        .deserialize(&mut parser)
        .and_then(|list: Vec<T>| parser.end().map(|()| list));
    list.map_err(|error| notes.explain(&error, json))
}

/// Checks nesting with a scan that does not recurse. The text need not be valid JSON.
///
/// # Errors
/// [`DecodeErrorKind::TooDeep`].
pub fn check_depth(json: &str, max: usize) -> Result<(), DecodeError> {
    let mut depth = 0usize;
    let mut bytes = json.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    let error = DecodeError::new(DecodeErrorKind::TooDeep { max });
                    return Err(error.locate(json, at));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some((_, byte)) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            bytes.next();
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The text of a raw JSON value that is a string: borrowed if it has no escapes. `None` if the
/// value is not a string, or one that no text can hold (a lone surrogate).
#[must_use]
pub fn raw_str(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.as_bytes().contains(&b'\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The text of a raw JSON value that is a string or a number (a number's text is its digits as
/// they were sent). `None` for anything else.
#[must_use]
pub fn raw_id(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'"') => raw_str(raw),
        Some(b'-' | b'0'..=b'9') => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

struct ListSeed<'n, T> {
    max: usize,
    notes: &'n Notes,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == self.max {
                return Err(self
                    .notes
                    .fail(DecodeErrorKind::TooManyItems { max: self.max }));
            }
            list.push(item);
        }
        Ok(list)
    }
}
