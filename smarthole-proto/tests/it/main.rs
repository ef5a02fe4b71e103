//! Integration tests of the SmartHole crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod client;
mod client_limits;
mod conformance;
mod examples;
mod faults_client;
mod faults_plugin;
mod faults_server;
mod frames;
mod harness;
mod hub;
mod hub_checked;
mod hub_model;
mod hub_naive;
mod hub_play;
mod losses;
mod mounted;
mod net_client;
mod played;
mod plugin;
mod raw_client;
mod runtime;
mod serve;
mod serve_trouble;
mod sim;
mod spec;
mod vectors;
#[allow(dead_code, reason = "the other tests that use it need all of it")]
#[path = "../../../exoclaw-proto/tests/it/wire.rs"]
mod wire;
