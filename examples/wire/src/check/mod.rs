//! Checks whether a server or a client of anybody keeps to its protocol: rows, each with a script of
//! frames and what they are answered with, and a verdict with the frames as evidence.
//!
//! The rows are in `suites/`, a file for each protocol and role; `crate::play` plays their scripts. The tests break our
//! own programs for each row, so that it fails.

pub(crate) mod report;
mod run;
mod suite;
#[cfg(test)]
mod tests;

pub(crate) use run::{Outcome, Verdict, run};
pub(crate) use suite::{Level, Row, Suite};
