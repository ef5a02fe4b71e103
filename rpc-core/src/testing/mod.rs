//! Tools for testing machines under virtual time: no socket, no runtime, no waiting.
//!
//! - [`Pair`]: a client and a server machine wired together, with latency, cuts and injection;
//! - [`conformance`]: the rules of [`Machine`](crate::Machine) as functions for any machine;
//! - [`replay`]: a recording becomes a test of a machine;
//! - [`schedule`]: random schedules that a seed repeats.

pub mod conformance;
mod pair;
pub mod replay;
pub mod schedule;

pub use pair::{Pair, Side};
