//! Load on a server: calls that are due whatever becomes of those before, and what callers see of it.
//!
//! [`Schedule`] says when calls are due, [`Stats`] what became of them; neither reads a clock. [`Scenario`] knows
//! the protocols, [`Run`] makes the calls, [`Report`] sums them up.

mod alarm;
mod client;
mod connection;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
#[cfg(test)]
mod tests;

pub use report::Report;
pub use run::{Finished, Load, Run, RunError};
pub use scenario::{Caller, Kind, Scenario};
pub use stats::{Schedule, Stats};
