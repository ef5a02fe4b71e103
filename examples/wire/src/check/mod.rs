//! Checks whether a server or a client of anybody keeps to its protocol: rows, each with a script of
//! frames and what they are answered with, and a verdict with the frames as evidence.
//!
//! The rows are in `suites/`, a file for each protocol and role; `script.rs` has the steps and `pattern.rs`
//! the patterns. The tests break our own programs for each row, so that it fails.

mod ask;
pub(crate) mod conn;
mod expect;
mod hide;
pub(crate) mod http;
mod peer;
mod play;
pub mod report;
mod run;
mod script;
mod signed;
mod suite;
pub(crate) mod tamper;
#[cfg(test)]
mod tests;
mod variables;

pub use conn::{BoxStream, Stream};
pub use peer::{Client, Command, Dial, Ended, Started};
pub use run::{Entry, Outcome, Peer, Settings, Verdict, run};
pub use suite::{Level, Row, Suite};
pub use tamper::{Faithful, Frame, Passed, Tamper};
pub use variables::Variables;
