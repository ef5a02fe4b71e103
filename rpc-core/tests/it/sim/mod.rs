//! Random lives of a cluster under virtual time: nodes that die, pause and lose their line to a store that
//! restarts and fills up. `.ci/nightly` builds them with optimisation to live many: see
//! [`switchboard_testing::sim`].
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
