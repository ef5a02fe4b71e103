//! Tools for testing machines under virtual time: no socket, no runtime, no waiting.
//!
//! - [`Pair`]: a client and a server machine wired together, with latency, cuts and injection;
//! - [`conformance`]: the rules of [`Machine`](crate::Machine) as functions for any machine;
//! - [`transcript`]: recordings, as a file that programs share;
//! - [`replay`]: a recording becomes a test of a machine;
//! - [`schedule`]: random schedules that a seed repeats;
//! - `store` (feature `tokio`): the rules of [`Store`](crate::store) as functions for any engine.

pub mod conformance;
mod pair;
pub mod replay;
pub mod schedule;
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub mod store;
pub mod transcript;

pub use pair::{Pair, Side};
