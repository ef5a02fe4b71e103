//! Tests of the registry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "helpers of tests")]

mod clocked;
mod crowd;
mod life;
mod model;
mod naive;
mod recorded;
mod runs;
