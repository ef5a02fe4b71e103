//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod client_conformance;
mod client_recordings;
mod daemon;
mod examples;
mod faults_client;
mod faults_server;
mod faults_sse;
mod frames;
mod losses;
mod mounted;
mod net_client;
mod nodes;
mod order;
mod recordings;
mod replayed;
mod serve;
mod serve_crowd;
mod serve_http;
mod server_rules;
mod sim;
mod spec;
mod transcript;
mod transports;
mod vectors;
