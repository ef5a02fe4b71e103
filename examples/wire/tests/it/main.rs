//! The wire tool as a library: secrets, the shapes and the order of frames.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod order;
mod secrets;
mod shapes;
mod spellings;
