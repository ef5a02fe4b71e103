//! Tools for testing machines under virtual time: no socket, no runtime, no waiting.
//!
//! - [`Pair`]: a client and a server machine wired together, with latency, cuts and injection;
//! - [`trace`]: one text format for all transcripts;
//! - [`conformance`]: the rules of [`Machine`](crate::Machine) as functions for any machine;
//! - [`schedule`]: random schedules that a seed repeats;
//! - [`json`]: comparing frames as JSON values;
//! - [`vectors`]: running test vectors from files.

pub mod conformance;
pub mod json;
mod pair;
pub mod schedule;
pub mod trace;
pub mod vectors;

pub use pair::{Pair, Side};

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn fail(message: &str) -> ! {
    panic!("{message}");
}
