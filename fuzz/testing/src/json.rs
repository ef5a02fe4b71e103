//! Comparing frames as JSON values, whatever the order of their members.

use serde_json::Value;

use super::fail;

/// Parses a frame.
///
/// # Panics
/// If it is not JSON, with the text.
#[must_use]
#[track_caller]
pub fn parse(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => fail(&format!("not JSON ({error}): {text}")),
    }
}

/// Asserts that two frames are the same JSON value.
///
/// # Panics
/// If they are not, with both texts.
#[track_caller]
pub fn assert_same(left: &str, right: &str) {
    if parse(left) != parse(right) {
        fail(&format!("frames differ:\n  left: {left}\n right: {right}"));
    }
}
