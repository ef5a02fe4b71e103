//! Random lives of a cluster under virtual time: nodes that die, pause and lose their line to a store that
//! restarts and fills up. A test program of its own, because it is built with optimisation to live many of
//! them: see [`switchboard_testing::sim`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of a test binary")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

mod client;
mod fence;
mod keys;
mod lives;
mod node;
mod owner;
mod publish;
mod store;
mod world;
