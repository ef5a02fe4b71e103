//! [`Known`]: the members of frames that no type knows.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use memchr::memchr2;
use rpc_core::testing::Side;
use serde_json::Value;

use super::Protocol;
use super::dialect::rewritten;

/// Most shapes that are remembered.
const MAX_SHAPES: usize = 4096;
/// Values of these members decide which others are known.
const TAGS: [&[u8]; 4] = [b"type", b"kind", b"event", b"method"];
/// Most members of a frame that are looked at one by one.
const MAX_CANDIDATES: usize = 64;

/// A finder of unknown members. It remembers the shapes of frames without any, because to look for
/// them takes longer than all else.
#[derive(Debug, Default)]
pub(super) struct Known {
    shapes: HashSet<u64>,
}

impl Known {
    /// Returns the paths of the members of a frame that the types of its crate do not know.
    pub(super) fn unknown(
        &mut self,
        protocol: Protocol,
        from: Side,
        is_sse: bool,
        text: &str,
    ) -> Vec<String> {
        let shape = shape(from, text);
        if self.shapes.contains(&shape) {
            return Vec::new();
        }
        let write = |text: &str| rewritten(protocol, from, is_sse, text);
        let unknown = compare(text, write);
        if unknown.is_empty() {
            if self.shapes.len() >= MAX_SHAPES {
                self.shapes.clear();
            }
            self.shapes.insert(shape);
        }
        unknown
    }
}

/// Returns a number that two frames share only if they have the same members, nested in the same way,
/// and the same kinds.
fn shape(from: Side, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (from == Side::Client).hash(&mut hasher);
    let bytes = text.as_bytes();
    let (mut at, mut is_tag) = (0, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'}' | b'[' | b']' => byte.hash(&mut hasher),
            b'"' => {
                let start = at;
                while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
                    at += found + 1;
                    if bytes.get(at - 1) == Some(&b'"') {
                        break;
                    }
                    at += 1;
                }
                let string = bytes.get(start..at.saturating_sub(1)).unwrap_or_default();
                let rest = bytes.get(at..).unwrap_or_default();
                let is_name = rest.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b':');
                if is_name || is_tag {
                    string.hash(&mut hasher);
                }
                is_tag = is_name && TAGS.contains(&string);
            }
            _ => {}
        }
    }
    hasher.finish()
}

/// Compares a frame with what its types write of it.
fn compare(text: &str, write: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let Some(written) = write(text) else {
        return Vec::new();
    };
    let (Ok(original), Ok(known)) = (
        serde_json::from_str::<Value>(text),
        serde_json::from_str::<Value>(&written),
    ) else {
        return Vec::new();
    };
    let mut candidates = Vec::new();
    collect(&original, &known, &mut Vec::new(), &mut candidates);
    candidates.truncate(MAX_CANDIDATES);
    // A type may leave out what it has read: a default, a null. Other values tell.
    candidates.retain(|path| {
        let probes = [
            Value::Bool(true),
            7.into(),
            "probe".into(),
            serde_json::json!({"probe": 1}),
        ];
        probes.into_iter().all(|probe| {
            let mut probed = original.clone();
            put(&mut probed, path, probe);
            write(&probed.to_string()).as_ref() == Some(&written)
        })
    });
    candidates.iter().map(|path| path.join(".")).collect()
}

/// Collects the paths of `original` that `known` does not have.
fn collect(original: &Value, known: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match (original, known) {
        (Value::Object(original), Value::Object(known)) => {
            for (name, value) in original {
                path.push(name.clone());
                match known.get(name) {
                    Some(known) => collect(value, known, path, found),
                    None if value.is_null() => {}
                    None => found.push(path.clone()),
                }
                path.pop();
            }
        }
        (Value::Array(original), Value::Array(known)) => {
            for (index, (value, known)) in original.iter().zip(known).enumerate() {
                path.push(index.to_string());
                collect(value, known, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn put(value: &mut Value, path: &[String], new: Value) {
    let mut place = value;
    for step in path {
        let next = match place {
            Value::Object(members) => members.get_mut(step),
            Value::Array(items) => step
                .parse()
                .ok()
                .and_then(|index: usize| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        place = next;
    }
    *place = new;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(protocol: Protocol, from: Side, text: &str) -> Vec<String> {
        Known::default().unknown(protocol, from, false, text)
    }

    #[test]
    fn a_member_that_no_type_knows_is_named_by_its_path() {
        let request = r#"{"id":"1","method":"ping","jsonrpc":"2.0"}"#;
        assert_eq!(
            unknown(Protocol::Exoclaw, Side::Client, request),
            ["jsonrpc"]
        );
        let message = r#"{"event":"message","message":"m","username":"u","user_nick":"n","channel_uid":"c","is_final":true,"mood":1}"#;
        assert_eq!(unknown(Protocol::Snek, Side::Server, message), ["mood"]);
        let result = r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t","colour":"red"}}"#;
        assert_eq!(
            unknown(Protocol::Acolyte, Side::Server, result),
            ["event.colour"]
        );
    }

    #[test]
    fn what_a_type_reads_and_does_not_write_is_known() {
        let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":false,"session":null}"#;
        assert_eq!(
            unknown(Protocol::ConnectOnion, Side::Server, connected),
            [""; 0]
        );
        let raw = r#"{"id":"1","event":"tool_use","data":{"id":"t","name":"n","input":{"any":1}}}"#;
        assert_eq!(unknown(Protocol::Exoclaw, Side::Server, raw), [""; 0]);
    }

    #[test]
    fn a_shape_is_made_of_names_and_kinds_alone() {
        let of = |text: &str| shape(Side::Client, text);
        let first = of(r#"{"type":"a","b":{"c":"x"}}"#);
        assert_eq!(
            first,
            of(r#"{ "type" : "a", "b": {"c": "a \"quote\": {"} }"#)
        );
        for other in [
            r#"{"type":"b","b":{"c":"x"}}"#,
            r#"{"type":"a","b":{"d":"x"}}"#,
            r#"{"type":"a","b":{},"c":"x"}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
        assert_ne!(first, shape(Side::Server, r#"{"type":"a","b":{"c":"x"}}"#));
    }
}
