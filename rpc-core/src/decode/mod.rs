//! Decoding: one pass from a text to a borrowed frame, and [`DecodeError`].
//!
//! A codec lists the members of all its frames in one flat struct, implements [`Members`] for it
//! and calls [`object`]. What that gives:
//!
//! - The size is checked before anything is read, and a text whose first byte is not `{` is
//!   refused at once.
//! - Strings without escapes are borrowed from the text, so that such a frame costs no
//!   allocation. Long ones are searched 64 bytes at a time.
//! - `null` counts as absent, a known member that comes twice is an error, and an unknown one is
//!   skipped without being parsed.
//! - A payload of any depth is passed through raw, as a [`RawJson`]: gone over once, to check that
//!   it is JSON, and written again without another look. Depth is checked where a value is parsed:
//!   [`parse`].
//! - A payload whose type depends on a member that came before it is read in the same pass:
//!   [`Field::read`].
//!
//! The pass is a [`Reader`] of our own; `serde_json` reads what has a type that only `serde` knows,
//! and is the reference that the fuzz target `json_reader` compares with. From the bytes upwards:
//! `scan` finds the ends of tokens, `skip` those of values, `Reader` makes texts and numbers of
//! them, `Field` puts them into slots and says in which member something was wrong.
//!
//! ```
//! use rpc_core::Limits;
//! use rpc_core::decode::{self, DecodeError, Field, Members, Slot};
//! use std::borrow::Cow;
//!
//! #[derive(Default)]
//! struct Frame<'a> {
//!     kind: Slot<Cow<'a, str>>,
//! }
//!
//! impl<'a> Members<'a> for Frame<'a> {
//!     fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
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
mod object;
mod raw;
mod reader;
mod scan;
mod shared;
mod skip;
#[cfg(test)]
mod tests;
mod unescape;
mod unknown;

use serde::Deserialize;

pub use error::{DecodeError, DecodeErrorKind};
pub use field::{Field, LooseStr, Members, Slot};
pub use find::find_member;
pub use object::Object;
pub use raw::{RawJson, RawRef};
pub use reader::Reader;
pub use shared::{FrameCopy, SharedJson, SharedStr};
pub use unknown::Unknown;

use crate::limits::Limits;
use error::from_parser;
use scan::{Misfit, string_end};

/// The deepest nesting that `serde_json` parses, whatever [`Limits::max_depth`] says.
const PARSER_DEPTH: usize = 127;

/// Decodes a text that must be one JSON object, in one pass.
///
/// # Errors
/// [`DecodeError`]; decoding the same text again fails again.
pub fn object<'a, M: Members<'a> + Default>(
    text: &'a str,
    limits: &Limits,
) -> Result<M, DecodeError> {
    let mut members = M::default();
    object_into(text, limits, &mut members)?;
    Ok(members)
}

/// As [`object`], into members that are there already.
///
/// # Errors
/// [`DecodeError`]; decoding the same text again fails again.
pub fn object_into<'a>(
    text: &'a str,
    limits: &Limits,
    members: &mut dyn Members<'a>,
) -> Result<(), DecodeError> {
    check_size(text.len(), limits)?;
    let mut reader = Reader::new(text);
    if reader.first_byte() != Some(b'{') {
        return Err(DecodeError::new(DecodeErrorKind::NotAnObject).locate(text, 0));
    }
    reader.object_into(members)?;
    reader.end()
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
    serde_json::from_str(json).map_err(|error| from_parser(&error, json))
}

/// Parses a JSON object into [`Members`], with the checks of [`parse`].
///
/// # Errors
/// [`DecodeError`]; parsing the same text again fails again.
pub fn parse_object<'a, M: Members<'a> + Default>(
    json: &'a str,
    limits: &Limits,
) -> Result<M, DecodeError> {
    if limits.max_depth < PARSER_DEPTH {
        check_depth(json, limits.max_depth)?;
    }
    object(json, limits)
}

/// Parses a JSON array of at most [`Limits::max_items`] items, with the checks of [`parse`].
///
/// # Errors
/// [`DecodeErrorKind::TooManyItems`], or as for [`parse`].
pub fn parse_list<'a, T: Deserialize<'a>>(
    json: &'a str,
    limits: &Limits,
) -> Result<Vec<T>, DecodeError> {
    list(json, limits, Reader::parse)
}

/// The items of a JSON array of at most [`Limits::max_items`], raw, with the checks of [`parse`].
///
/// # Errors
/// [`DecodeErrorKind::TooManyItems`], or as for [`parse`].
pub fn raw_list<'a>(json: &'a str, limits: &Limits) -> Result<Vec<RawJson<'a>>, DecodeError> {
    list(json, limits, Reader::raw_or_null)
}

/// Parses a JSON array of objects, as [`parse_list`] does, with [`Members`] in place of `serde`:
/// about twice as fast. `make` turns the members of one object into an item.
///
/// # Errors
/// As for [`parse_list`], and what `make` returns.
pub fn parse_objects<'a, M: Members<'a> + Default, T>(
    json: &'a str,
    limits: &Limits,
    make: impl Fn(M) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    list(json, limits, |reader| {
        let mut members = M::default();
        reader.object_into(&mut members)?;
        make(members)
    })
}

fn list<'a, T>(
    json: &'a str,
    limits: &Limits,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    if limits.max_depth < PARSER_DEPTH {
        check_depth(json, limits.max_depth)?;
    }
    let mut list = Vec::new();
    let mut reader = Reader::new(json);
    reader.items(limits.max_items, |reader| {
        list.push(item(reader)?);
        Ok(())
    })?;
    reader.end()?;
    Ok(list)
}

/// Checks nesting with a scan that does not recurse. The text need not be valid JSON.
///
/// # Errors
/// [`DecodeErrorKind::TooDeep`].
fn check_depth(json: &str, max: usize) -> Result<(), DecodeError> {
    let bytes = json.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    let error = DecodeError::new(DecodeErrorKind::TooDeep { max });
                    return Err(error.locate(json, at));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(bytes, at + 1).unwrap_or_else(|Misfit(at)| at),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}
