//! Integration tests of the ConnectOnion crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod keys;
mod allocations;
mod frames;
mod frames_props;
mod invalid_json;
mod killed;
mod merge;
mod scratch;
mod net_client;
mod scripted;
mod session;
mod session_crowd;
mod session_model;
mod signing;
mod storage;
mod transcripts;
mod vectors;
