//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod conformance;
mod decode_props;
mod frames;
mod pair;
mod played;
