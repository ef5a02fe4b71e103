//! Reading and writing JSON: [`Str`] and [`Json`] for the contents of frames, [`decode`] and
//! [`parse`] with a fast deserializer, objects with a tag ([`tagged!`](crate::tagged)), and a
//! serializer that writes byte for byte what `serde_json` does, in fewer instructions.
//!
//! For who writes a protocol; a program needs [`Str`] and [`Json`] only.
//!
//! Wire types are plain `serde` types: `serde_json` reads and writes them too. This module adds
//! speed, unlimited depth for values that are passed through, and [`DecodeError`].
//!
//! Half of a surrogate pair (`\ud83d` alone), which JavaScript sends where it cuts a text, is read
//! as U+FFFD everywhere; [`mend`] does that to a text that `serde_json` reads.

mod access;
mod de;
pub(crate) mod error;
mod escape;
mod find;
mod flatten;
mod in_order;
mod key;
pub mod lenient;
mod loose;
mod members;
mod mend;
mod open;
mod refuse;
mod scan;
mod skip;
pub(crate) mod str;
#[doc(hidden)]
pub mod tagged;
#[cfg(test)]
mod tests;
mod token;
mod unescape;
pub(crate) mod value;
mod verbatim;
mod words;
mod writer;

use serde::Deserialize;

pub(crate) use de::Deserializer;
pub(crate) use error::DecodeError;
pub use error::DecodeErrorKind;
#[doc(hidden)]
pub use find::each_json;
pub use find::{each_member, find_member};
#[doc(hidden)]
pub use in_order::InOrder;
pub use loose::LooseStr;
pub use mend::{from_slice, mend};
pub use open::open;
#[doc(hidden)]
pub use serde;
pub(crate) use str::Str;
pub use tagged::Nothing;
#[doc(hidden)]
pub use tagged::{TagKind, Tagged, read_alone};
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub use unescape::read_string;
pub(crate) use value::Json;
pub(crate) use verbatim::serialize_verbatim;
pub(crate) use writer::Writer;

use crate::limits::Limits;

/// Decodes a frame: text that is one JSON object.
///
/// # Errors
/// [`DecodeError`]; decoding the same text again fails again.
#[inline]
pub fn decode<'de, T: Deserialize<'de>>(text: &'de str, limits: &Limits) -> Result<T, DecodeError> {
    whole(object(text, limits)?)
}

/// Like [`decode`], but reads as JavaScript does: of members with the same name the last one
/// counts.
///
/// # Errors
/// As for [`decode`].
#[inline]
pub fn decode_js<'de, T: Deserialize<'de>>(
    text: &'de str,
    limits: &Limits,
) -> Result<T, DecodeError> {
    whole(object(text, limits)?).or_else(|error| match error.kind() {
        DecodeErrorKind::Syntax => Err(error),
        // Hardly any text repeats a name, so the first look does not ask for it.
        _ => whole(Deserializer::new(text, limits).last_wins()),
    })
}

/// Like [`decode`], and also returns the whole text if `keep` says that the type does not hold all
/// of it.
///
/// # Errors
/// [`DecodeError`]; decoding the same text again fails again.
#[inline]
pub fn decode_keeping<'de, T: Deserialize<'de>>(
    text: &'de str,
    limits: &Limits,
    keep: impl FnOnce(&T) -> bool,
) -> Result<(T, Option<Json>), DecodeError> {
    let value = decode(text, limits)?;
    let whole = keep(&value).then(|| Json::scanned(text.trim_ascii()));
    Ok((value, whole))
}

/// Parses a JSON value, for example a payload that was kept as raw JSON.
///
/// Rejects nesting deeper than [`Limits::max_depth`], or 127 levels. Skipped and raw values may be
/// deeper. Line and column of an error count from the start of `json`.
///
/// # Errors
/// [`DecodeError`]; parsing the same text again fails again.
pub fn parse<'de, T: Deserialize<'de>>(json: &'de str, limits: &Limits) -> Result<T, DecodeError> {
    whole(Deserializer::new(json, limits))
}

#[inline]
fn object<'de>(text: &'de str, limits: &Limits) -> Result<Deserializer<'de>, DecodeError> {
    check_size(text.len(), limits)?;
    let mut reader = Deserializer::new(text, limits);
    match reader.token() {
        Some(b'{') => Ok(reader),
        _ => Err(DecodeError::new(DecodeErrorKind::NotAnObject).locate(text, 0)),
    }
}

#[inline]
fn whole<'de, T: Deserialize<'de>>(mut reader: Deserializer<'de>) -> Result<T, DecodeError> {
    let mut read = T::deserialize(&mut reader);
    // In place: large values are not moved once more.
    if read.is_ok() {
        if let Err(error) = reader.end() {
            read = Err(error);
        }
    } else {
        read = read.map_err(|error| error.locate_once(reader.text, reader.at));
    }
    read
}

/// Checks a message's size against [`Limits::max_message_bytes`].
///
/// # Errors
/// [`DecodeErrorKind::TooLarge`] if it is larger: refuse the message.
#[inline]
pub fn check_size(size: usize, limits: &Limits) -> Result<(), DecodeError> {
    let max = limits.max_message_bytes;
    if size > max {
        return Err(DecodeError::new(DecodeErrorKind::TooLarge { size, max }));
    }
    Ok(())
}

/// Returns the first byte after JSON white space, which determines the type of the value.
#[must_use]
pub fn first_byte(text: &str) -> Option<u8> {
    text.bytes()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}
