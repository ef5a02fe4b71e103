//! Runs the vectors of `tests/vectors`: one JSON file per topic, each of which says what its
//! members mean.

mod direct;
mod frames;
mod registrations;
mod sequences;
mod timestamps;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

/// One vector.
pub(crate) struct Vector(Value);

impl Vector {
    pub(crate) fn name(&self) -> &str {
        self.str("name")
    }

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

    /// A member of any type; absent is null.
    pub(crate) fn get(&self, member: &str) -> &Value {
        self.0.get(member).unwrap_or(&Value::Null)
    }

    /// A member that must be a whole number.
    pub(crate) fn number(&self, member: &str) -> u64 {
        self.get(member)
            .as_u64()
            .unwrap_or_else(|| panic!("no number {member}: {}", self.0))
    }

    /// The items of a list.
    pub(crate) fn list(&self, member: &str) -> &[Value] {
        self.get(member).as_array().unwrap()
    }

    /// The texts of a list.
    pub(crate) fn strs(&self, member: &str) -> Vec<&str> {
        let items = self.list(member).iter();
        items.map(|item| item.as_str().unwrap()).collect()
    }
}

/// Checks every vector of a topic, and only then fails, with the names of those that failed.
pub(crate) fn run(topic: &str, check: impl Fn(&Vector)) {
    let path = format!("{}/tests/vectors/{topic}.json", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(path).unwrap();
    let mut file: Value = serde_json::from_str(&file).unwrap();
    write_out(&mut file["vectors"]);
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

/// Writes every `<64 a>` out as 64 times the letter.
fn write_out(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(long) = written_out(text) {
                *text = long;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_out),
        Value::Object(members) => members.values_mut().for_each(write_out),
        _ => {}
    }
}

fn written_out(text: &str) -> Option<String> {
    let (before, rest) = text.split_once('<')?;
    let (times, rest) = rest.split_once(' ')?;
    let (part, behind) = rest.split_once('>')?;
    let behind = written_out(behind).unwrap_or_else(|| behind.to_owned());
    let times = times.parse().ok()?;
    Some(format!("{before}{}{behind}", part.repeat(times)))
}
