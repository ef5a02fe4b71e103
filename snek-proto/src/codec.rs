//! Encoding into a buffer or a shared text; decoding stands on the frames.

use bytes::{BufMut, BytesMut};
use rpc_core::{CallId, Refused, Text};
use serde::Serialize;

pub use crate::frame::{Failure, Success};

/// A request of the client, for encoding, with the members in the specification's order.
#[derive(Clone, Copy, Serialize)]
pub struct Request<'a, A, K> {
    /// The method's name.
    pub method: &'a str,
    /// The positional arguments: must be written as a JSON array.
    pub args: A,
    /// The named arguments: must be written as a JSON object.
    pub kwargs: K,
    /// The id that the answer will carry.
    #[serde(rename = "callId")]
    pub call_id: CallId,
}

/// Prints method and id only: arguments hold passwords.
impl<A, K> std::fmt::Debug for Request<'_, A, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}

/// No positional arguments: `[]`.
pub type NoArgs = [(); 0];

/// No named arguments: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct NoKwargs {}

/// Appends a frame to a buffer.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON. The buffer may then hold a part of it.
pub fn encode_into(frame: &impl Serialize, buffer: &mut BytesMut) -> Result<(), Refused> {
    serde_json::to_writer(buffer.writer(), frame).map_err(|error| Refused::Encode {
        message: error.to_string(),
    })
}

/// Encodes a frame once, for any number of receivers.
///
/// # Errors
/// [`Refused::Encode`] if the value is not JSON.
pub fn encode(frame: &impl Serialize) -> Result<Text, Refused> {
    serde_json::to_string(frame)
        .map(Text::from)
        .map_err(|error| Refused::Encode {
            message: error.to_string(),
        })
}
