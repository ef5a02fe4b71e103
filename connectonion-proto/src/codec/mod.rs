//! Encoding into a buffer or a shared text, and redacted frames for logs. Decoding is a method of
//! the frame types.

mod redact;

pub use redact::redact;
pub use rpc_core::encode::{encode, encode_into};
