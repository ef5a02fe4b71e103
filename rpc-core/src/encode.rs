//! Writing a value as JSON, into a buffer or as a shared text.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

use crate::error::Refused;
use crate::message::Text;

/// Appends a frame to a buffer.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON. The buffer may then hold a part of it.
pub fn encode_into(frame: &impl Serialize, buffer: &mut BytesMut) -> Result<(), Refused> {
    serde_json::to_writer(buffer.writer(), frame).map_err(|error| refused(&error))
}

/// Encodes a frame once, for any number of receivers.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn encode(frame: &impl Serialize) -> Result<Text, Refused> {
    let text = serde_json::to_string(frame).map_err(|error| refused(&error))?;
    Ok(Text::from(text))
}

fn refused(error: &serde_json::Error) -> Refused {
    Refused::Encode {
        message: error.to_string(),
    }
}
