//! Integration tests of the ConnectOnion crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod allocations;
mod frames;
mod frames_props;
mod invalid_json;
mod keys;
mod killed;
mod merge;
mod net_client;
mod net_resume;
mod scratch;
mod scripted;
mod session;
mod session_crowd;
mod session_model;
mod signing;
mod storage;
mod transcripts;
mod vectors;
