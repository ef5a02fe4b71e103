//! Test vectors: one JSON file per topic, each of which says what its members mean.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use super::fail;

/// One vector: a JSON object of the list `vectors` of its file.
#[derive(Clone, Debug)]
pub struct Vector(Value);

impl Vector {
    /// What tells it from the others: its `name`, or its `text` if it has no name.
    ///
    /// # Panics
    /// If it has neither.
    #[must_use]
    pub fn name(&self) -> &str {
        self.try_str("name").unwrap_or_else(|| self.str("text"))
    }

    /// A member that must be a text.
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    #[track_caller]
    pub fn str(&self, member: &str) -> &str {
        match self.try_str(member) {
            Some(text) => text,
            None => self.lacks("text", member),
        }
    }

    /// A member, if it is there and a text.
    #[must_use]
    pub fn try_str(&self, member: &str) -> Option<&str> {
        self.get(member).as_str()
    }

    /// A member that must be a whole number.
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    #[track_caller]
    pub fn number(&self, member: &str) -> u64 {
        match self.get(member).as_u64() {
            Some(number) => number,
            None => self.lacks("whole number", member),
        }
    }

    /// Whether a member is `true`.
    #[must_use]
    pub fn is(&self, member: &str) -> bool {
        *self.get(member) == Value::Bool(true)
    }

    /// Whether there is a member, `null` too.
    #[must_use]
    pub fn has(&self, member: &str) -> bool {
        self.0.get(member).is_some()
    }

    /// A member of any type; `null` if it is not there.
    #[must_use]
    pub fn get(&self, member: &str) -> &Value {
        self.0.get(member).unwrap_or(&Value::Null)
    }

    /// The items of a member that must be a list.
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    #[track_caller]
    pub fn list(&self, member: &str) -> &[Value] {
        match self.get(member).as_array() {
            Some(items) => items,
            None => self.lacks("list", member),
        }
    }

    /// The texts of a list; none if it is not there.
    ///
    /// # Panics
    /// If it is not a list of texts.
    #[must_use]
    #[track_caller]
    pub fn strs(&self, member: &str) -> Vec<&str> {
        if !self.has(member) {
            return Vec::new();
        }
        let items = self.list(member);
        let texts: Vec<_> = items.iter().filter_map(Value::as_str).collect();
        if texts.len() < items.len() {
            self.lacks("list of texts", member);
        }
        texts
    }

    #[track_caller]
    fn lacks(&self, kind: &str, member: &str) -> ! {
        fail(&format!("no {kind} {member}: {}", self.0))
    }
}

/// The vectors of the file `topic` in this folder. What is written `<64 a>` in a text stands for 64
/// times the letter.
///
/// # Panics
/// If there is no such file with vectors.
#[must_use]
#[track_caller]
pub fn load(folder: impl AsRef<Path>, topic: &str) -> Vec<Vector> {
    let path = folder.as_ref().join(topic).with_extension("json");
    let text = super::read(&path);
    let text = text.unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
    let file = super::json::parse(&text);
    match file.get("vectors").and_then(Value::as_array) {
        Some(list) if !list.is_empty() => list.iter().cloned().map(written_out).collect(),
        _ => fail(&format!("{topic} has no vectors")),
    }
}

/// Checks every vector of a topic, and only then fails, with the names of those for which `check`
/// has panicked.
///
/// # Panics
/// If one fails, and as [`load`] does.
#[track_caller]
pub fn run(folder: impl AsRef<Path>, topic: &str, check: impl Fn(&Vector)) {
    let vectors = load(folder, topic);
    let failed: Vec<_> = vectors
        .iter()
        .filter(|vector| catch_unwind(AssertUnwindSafe(|| check(vector))).is_err())
        .map(Vector::name)
        .collect();
    if !failed.is_empty() {
        let (some, all) = (failed.len(), vectors.len());
        fail(&format!(
            "{topic}: {some} of {all} vectors fail: {failed:#?}"
        ));
    }
}

fn written_out(mut vector: Value) -> Vector {
    write_out(&mut vector);
    Vector(vector)
}

fn write_out(value: &mut Value) {
    match value {
        Value::String(text) => *text = long(text),
        Value::Array(items) => items.iter_mut().for_each(write_out),
        Value::Object(members) => members.values_mut().for_each(write_out),
        _ => {}
    }
}

/// The text with every `<64 a>` written out.
fn long(text: &str) -> String {
    let Some((before, behind)) = text.split_once('<') else {
        return text.to_owned();
    };
    let repeated = behind.split_once('>').and_then(|(inside, rest)| {
        let (times, part) = inside.split_once(' ')?;
        Some((part.repeat(times.parse().ok()?), rest))
    });
    match repeated {
        Some((part, rest)) => format!("{before}{part}{}", long(rest)),
        None => format!("{before}<{}", long(behind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_expanded_everywhere() {
        for (short, written) in [
            ("<3 ab>", "ababab"),
            ("a<2 b>c<1 d>", "abbcd"),
            ("<0 x>", ""),
            ("<b> <2 x>", "<b> xx"),
            ("a < 2 b > c", "a < 2 b > c"),
            ("<", "<"),
        ] {
            assert_eq!(long(short), written, "{short}");
        }
        let vector = written_out(serde_json::json!({"a": [{"b": "<2 x>"}], "c": 2}));
        assert_eq!(vector.list("a")[0]["b"], "xx");
        assert_eq!(vector.number("c"), 2);
    }

    #[test]
    fn members_are_read_by_type() {
        let vector = Vector(serde_json::json!({
            "text": "t", "yes": true, "no": false, "null": null, "list": ["a", "b"],
        }));
        assert_eq!((vector.name(), vector.try_str("yes")), ("t", None));
        assert!(vector.is("yes") && !vector.is("no") && !vector.is("absent"));
        assert!(vector.has("null") && !vector.has("absent"));
        assert_eq!(vector.strs("list"), ["a", "b"]);
        assert!(vector.strs("absent").is_empty());
        assert!(catch_unwind(|| vector.str("absent").len()).is_err());
        assert!(catch_unwind(|| vector.strs("yes").len()).is_err());
    }
}
