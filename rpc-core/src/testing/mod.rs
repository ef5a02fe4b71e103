//! Tools for testing machines under virtual time: no socket, no runtime, no waiting.
//!
//! - [`Pair`]: a client and a server machine wired together, with latency, cuts and injection;
//! - [`trace`]: one text format for all transcripts;
//! - [`conformance`]: the rules of [`Machine`](crate::Machine) as functions for any machine;
//! - [`sim`]: seeded schedules that print the failing seed;
//! - [`json`]: comparing frames as JSON values;
//! - [`vectors`]: running test vectors from files;
//! - `losses`: the loss of a line at every frame of a scenario (feature `tokio`);
//! - `faults`: peers that misbehave over real sockets (feature `ws`).

pub mod conformance;
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub mod faults;
pub mod json;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod losses;
mod pair;
pub mod sim;
pub mod trace;
pub mod vectors;

pub use pair::{Pair, Side};

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn fail(message: &str) -> ! {
    panic!("{message}");
}
