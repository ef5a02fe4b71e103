//! Load on a server: calls that are due whatever becomes of those before, and what callers see of it.
//!
//! [`Schedule`] says when calls are due, [`Stats`] what became of them; neither reads a clock. [`Scenario`] knows
//! the protocols, [`Run`] makes the calls, and what it has [`Finished`] sums them up.

mod alarm;
mod connection;
mod report;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod stats;
#[cfg(test)]
mod tests;

pub(crate) use run::{Finished, Load, Run, RunError};
pub(crate) use scenario::{Caller, Kind, Scenario};
pub(crate) use stats::Schedule;
