//! Integration tests of the ConnectOnion crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod allocations;
mod frames;
mod frames_props;
mod invalid_json;
mod keys;
mod signing;
mod transcripts;
mod vectors;
