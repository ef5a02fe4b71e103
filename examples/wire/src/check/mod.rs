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
pub(crate) mod report;
mod run;
mod script;
mod signed;
mod suite;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use conn::Frame;
pub(crate) use peer::{Command, Dial};
pub(crate) use run::{Entry, Outcome, Peer, Settings, Verdict, run};
pub(crate) use script::Headers;
pub(crate) use suite::{Level, Row, Suite};
pub(crate) use variables::Variables;
