//! Checks that concern more than one crate, and the example programs as a user runs them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bot_cli;
mod programs;
mod tour;
