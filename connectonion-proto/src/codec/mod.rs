//! Encoding into a buffer or a shared text, and redacted frames for logs. Decoding is a method of
//! the frame types.

mod redact;

use rpc_core::{Json, Refused};
use serde::Serialize;

pub use redact::redact;
pub use rpc_core::encode::{encode, encode_into};

/// Encodes a value as the raw JSON that frames hold: arguments of a tool, a conversation, a list.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<Json, Refused> {
    Json::of(value)
}
