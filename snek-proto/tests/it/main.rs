//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod acting;
mod behaviour;
mod bot;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_faults;
#[cfg(feature = "nats")]
mod cluster_nats;
mod conformance;
mod connect;
mod examples;
mod faults_bot;
mod faults_client;
mod faults_server;
mod fetch;
mod frames;
mod losses;
mod mounted;
mod net_server;
mod order;
mod pair;
mod played;
mod scripted;
mod sim;
mod spec;
mod stream;
mod telemetry;
mod texts;
mod typing;
mod vectors;
mod watched;
