//! Checks that concern more than one crate, and the example programs as a user runs them.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod agent_cli;
mod agent_reach;
mod agent_store;
mod agent_terminal;
mod agent_work;
mod bot_chat;
mod bot_cli;
mod commands;
mod confinement;
mod crowd_cli;
mod daemon_cli;
mod daemon_terminal;
mod gateway;
mod gateway_cli;
mod gateway_http;
mod metrics;
mod otlp;
mod output;
mod programs;
mod promises;
mod proxies;
mod pty;
mod readme_packages;
mod readmes;
mod router_cli;
mod router_terminal;
mod screens;
mod signals;
mod switchboard;
#[cfg(unix)]
mod text_commands;
mod texts;
mod tls;
mod tree;
mod uniform;
#[allow(dead_code, reason = "the other tests that use it need all of it")]
#[path = "../../../../exoclaw-proto/tests/it/wire.rs"]
mod wire;
mod wire_check;
mod wire_load;
mod wire_replay;
mod wire_view;
