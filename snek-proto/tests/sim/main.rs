//! Random lives under virtual time. A test program of its own, because it is built with optimisation
//! to live many of them: see [`switchboard_testing::sim`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of a test binary")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

mod chat;
mod cluster;
