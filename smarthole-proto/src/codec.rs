//! Encoding into a buffer or shared text; the frame types have the decoders.

pub use rpc_core::encode::{encode, encode_into};
