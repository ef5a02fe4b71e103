//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod canonical;
mod signatures;

use switchboard_testing::vectors;
pub(crate) use switchboard_testing::vectors::Vector;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");

/// Checks every vector of a topic.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    vectors::run(FOLDER, topic, check);
}
