//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod canonical;
mod signatures;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

/// One vector.
pub(crate) struct Vector(Value);

impl Vector {
    /// A member that must be a string.
    pub(crate) fn str(&self, member: &str) -> &str {
        self.try_str(member)
            .unwrap_or_else(|| panic!("no text {member}: {}", self.0))
    }

    pub(crate) fn try_str(&self, member: &str) -> Option<&str> {
        self.0.get(member)?.as_str()
    }

    /// A member that is `true`; absent is `false`.
    pub(crate) fn is(&self, member: &str) -> bool {
        self.0.get(member) == Some(&json!(true))
    }

    /// What tells it from the others.
    pub(crate) fn name(&self) -> &str {
        self.try_str("name").unwrap_or_else(|| self.str("text"))
    }
}

/// Checks every vector of a topic, and only then fails, with the names of those that failed.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    let path = format!("{}/tests/vectors/{topic}.json", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(path).unwrap();
    let mut file: Value = serde_json::from_str(&file).unwrap();
    let Value::Array(list) = file["vectors"].take() else {
        panic!("{topic} has no vectors")
    };
    let vectors: Vec<_> = list.into_iter().map(Vector).collect();
    assert!(!vectors.is_empty(), "{topic} has no vectors");
    let failed: Vec<_> = vectors
        .iter()
        .filter(|vector| catch_unwind(AssertUnwindSafe(|| check(vector))).is_err())
        .map(Vector::name)
        .collect();
    assert!(
        failed.is_empty(),
        "{topic}: {} of {} vectors fail: {failed:#?}",
        failed.len(),
        vectors.len()
    );
}
