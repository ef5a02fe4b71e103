//! Encoding into a buffer or a shared text. Decoding is a method of each frame type.

pub use rpc_core::encode::{encode, encode_into};
