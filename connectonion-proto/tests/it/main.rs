//! Integration tests of the ConnectOnion crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

mod client;
mod cluster;
mod conformance;
mod examples;
mod faults_client;
mod faults_run;
mod faults_server;
mod frames;
mod frames_props;
mod host;
mod host_access;
mod host_blocked;
mod host_commands;
mod host_console;
mod host_defaults;
mod host_inputs;
mod host_killed;
mod host_life;
mod host_runtime;
mod hub;
mod hub_bytes;
mod hub_events;
mod hub_moved;
mod hub_play;
mod hub_recover;
mod hub_unstored;
mod keys;
mod losses;
mod mounted;
#[cfg(feature = "nats")]
mod nats;
mod net_answers;
mod net_attach;
mod net_client;
mod net_gate;
mod net_host;
mod net_resume;
mod nodes;
mod reading;
mod recorded;
mod scratch;
mod scripted;
mod server;
mod signing;
mod sim;
mod spec;
mod staff;
mod storage;
mod stored;
mod transcripts;
mod uploads;
mod vectors;
