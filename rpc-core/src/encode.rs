//! Writing a value as JSON, into a buffer or as shared text.

use serde::Serialize;

use crate::error::Refused;
use crate::json::Writer;
use crate::message::Text;

/// The initial buffer size; most frames are shorter.
const USUAL: usize = 256;

/// Appends a frame to a buffer as compact JSON, byte for byte what `serde_json` writes.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON. The buffer may then hold a part of the value.
pub fn encode_into(frame: &(impl Serialize + ?Sized), buffer: &mut String) -> Result<(), Refused> {
    frame
        .serialize(Writer::new(buffer))
        .map_err(|error| Refused::Encode {
            message: error.to_string(),
        })
}

/// Encodes a frame once, for any number of receivers.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn encode(frame: &(impl Serialize + ?Sized)) -> Result<Text, Refused> {
    let mut text = String::with_capacity(USUAL);
    encode_into(frame, &mut text)?;
    Ok(Text::from(text))
}
