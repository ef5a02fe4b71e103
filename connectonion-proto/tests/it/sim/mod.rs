//! Random lives under virtual time. `.ci/nightly` builds them with optimisation to live many: see
//! [`switchboard_testing::sim`].
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

#[cfg(feature = "server")]
mod cluster;
mod host;
mod life;
mod user;
