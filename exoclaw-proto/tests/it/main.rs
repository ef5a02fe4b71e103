//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod client;
mod conformance;
mod crowd;
mod examples;
mod faults_client;
mod faults_server;
mod gateway;
mod harness;
mod limits;
mod losses;
mod mounted;
mod net_client;
mod serve;
mod server;
mod session_keys;
mod sim;
mod spec;
mod transcripts;
mod vectors;
mod wire;
