//! Decoding helpers and [`DecodeError`].

/// A text that is no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame")]
pub struct DecodeError;
