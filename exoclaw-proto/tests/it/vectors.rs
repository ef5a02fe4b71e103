//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod bindings;
mod budgets;
mod frames;
mod openings;
mod requests;
mod sent;
mod words;

use switchboard_testing::vectors;
pub(crate) use switchboard_testing::vectors::Vector;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");

/// Checks every vector of a topic.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    vectors::run(FOLDER, topic, check);
}

/// The name of an enum's variant.
pub(crate) fn variant(value: &impl std::fmt::Debug) -> String {
    let shown = format!("{value:?}");
    let letters = shown.chars().take_while(char::is_ascii_alphanumeric);
    letters.collect()
}
