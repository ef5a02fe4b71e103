//! Load on a server: calls that are due whatever becomes of those before, and what callers see of it.
//!
//! [`Schedule`] and [`Dispatch`] say when and where calls leave, [`Stats`] their outcome; neither reads
//! a clock. [`Scenario`] knows the protocols, [`Run`] does it, [`Report`] sums it up.

mod alarm;
mod connection;
mod post;
pub mod report;
pub mod run;
pub mod schedule;
mod sse;
pub mod stats;
pub mod talk;
#[cfg(test)]
mod tests;
pub mod usage;

pub use report::Report;
pub use run::{Finished, Load, Progress, Run, RunError};
pub use schedule::{Dispatch, Schedule};
pub use stats::Stats;
pub use talk::{Caller, Kind, Scenario};
