//! Tests of sessions with a storage that answers at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "helpers of tests")]

mod life;
mod model;
mod naive;
mod play;
mod runs;
mod traced;
