//! Random lives under virtual time. A test program of its own, because it is built with optimisation
//! to live many of them: see [`switchboard_testing::sim`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

#[path = "../it/hub_play.rs"]
#[allow(dead_code, reason = "the tests of the hub need more of it")]
#[allow(unreachable_pub, reason = "helpers of a test binary")]
mod hub_play;
mod hub_sim;
#[cfg(feature = "server")]
#[path = "../it/staff.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
#[allow(unreachable_pub, reason = "helpers of a test binary")]
mod staff;
#[path = "../it/stored.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
#[allow(unreachable_pub, reason = "helpers of a test binary")]
mod stored;

#[cfg(feature = "server")]
#[allow(unreachable_pub, reason = "helpers of a test binary")]
mod cluster;
mod host;
mod life;
mod user;
