//! Encoding into a buffer or a shared text; decoding stands on the frames.

pub use rpc_core::encode::{encode, encode_into};
