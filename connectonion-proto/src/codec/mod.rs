//! Encoding into a buffer or a shared text, and frames as they may be logged; decoding stands on the
//! frames.

mod redact;

use rpc_core::{Json, Refused};
use serde::Serialize;

pub use redact::redact;
pub use rpc_core::encode::{encode, encode_into};

/// Makes the JSON value that frames hold: arguments of a tool, a conversation, a list of items.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<Json, Refused> {
    Json::of(value)
}
