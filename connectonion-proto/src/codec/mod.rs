//! Encoding into a buffer or a shared text, and frames as they may be logged; decoding stands on the
//! frames.

mod redact;

use rpc_core::Refused;
use rpc_core::decode::{RawJson, SharedJson};
use serde::Serialize;

pub use redact::redact;
pub use rpc_core::encode::{encode, encode_into};

/// Makes the JSON value that frames hold: arguments of a tool, a conversation, a list of items.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<SharedJson, Refused> {
    let mut text = String::new();
    encode_into(value, &mut text)?;
    let raw = RawJson::new(&text).map_err(|error| Refused::Encode {
        message: error.to_string(),
    })?;
    Ok(SharedJson::from(&raw))
}
