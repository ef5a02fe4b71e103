//! Checks that concern more than one crate.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod fuzz_seeds;
mod tree;
mod uniform;
