//! Integration tests of the SmartHole crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod crowd;
mod decode_props;
mod frames;
mod memory;
mod serve;
mod stage;
mod switch;
mod vectors;
mod wire;
