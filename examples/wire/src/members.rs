//! [`Known`]: the members of frames that no type knows.

use rpc_core::testing::Side;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::Protocol;
use super::frame::typed;

/// Most shapes that are remembered.
const MAX_SHAPES: usize = 4096;
/// The longest shape that is remembered, in bytes.
const MAX_SHAPE: usize = 16 * 1024;
/// Most members of a frame that are looked at one by one.
const MAX_CANDIDATES: usize = 64;

/// Newer clients of ConnectOnion sign each frame, and repeat what is signed beside it.
const SIGNED: [&str; 6] = ["from", "nonce", "payload", "signature", "timestamp", "to"];

/// A finder of unknown members. It remembers the shapes of frames and what they have of them, because to
/// look for them takes longer than all else.
#[derive(Debug, Default)]
pub(super) struct Known {
    shapes: FxHashMap<Box<[u8]>, Vec<String>>,
}

impl Known {
    /// Returns the paths of the members of a frame of this shape that the types of its crate do not know.
    pub(super) fn unknown(
        &mut self,
        shape: &[u8],
        whose: (Protocol, Side, bool),
        text: &str,
    ) -> Vec<String> {
        // A null is not described, and no shape has it.
        if let Some(unknown) = self.shapes.get(shape)
            && (unknown.is_empty() || !text.contains("null"))
        {
            return unknown.clone();
        }
        let write = |text: &str| typed(whose, text, true, true).ok()?.written;
        let mut unknown = compare(text, write);
        if (whose.0, whose.1) == (Protocol::ConnectOnion, Side::Client) {
            unknown.retain(|path| !SIGNED.contains(&&**path));
        }
        // A path through an array is of one item, and a shape of all that are alike.
        let is_same = unknown.is_empty() || !(shape.contains(&b'[') || text.contains("null"));
        if is_same && shape.len() <= MAX_SHAPE {
            if self.shapes.len() >= MAX_SHAPES {
                self.shapes.clear();
            }
            self.shapes.insert(shape.into(), unknown.clone());
        }
        unknown
    }
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
    collect(&original, &known, "", &mut candidates);
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
            if let Some(value) = probed.pointer_mut(path) {
                *value = probe;
            }
            write(&probed.to_string()).as_ref() == Some(&written)
        })
    });
    let name = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let names = |path: &String| {
        path.split('/')
            .skip(1)
            .map(name)
            .collect::<Vec<_>>()
            .join(".")
    };
    candidates.iter().map(names).collect()
}

/// Collects the JSON pointers of what `original` has and `known` has not.
fn collect(original: &Value, known: &Value, path: &str, found: &mut Vec<String>) {
    match (original, known) {
        (Value::Object(original), Value::Object(known)) => {
            for (name, value) in original {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match known.get(name) {
                    Some(known) => collect(value, known, &path, found),
                    None if value.is_null() => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(original), Value::Array(known)) => {
            for (index, (value, known)) in original.iter().zip(known).enumerate() {
                collect(value, known, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn unknown(protocol: Protocol, from: Side, text: &str) -> Vec<String> {
        let mut shape = Shape::default();
        let shape = shape.of(protocol, from, text);
        Known::default().unknown(shape, (protocol, from, false), text)
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
    fn members_that_newer_clients_sign_are_known() {
        let signed = r#"{"type":"ASK_USER_RESPONSE","answer":"red","nonce":"n","timestamp":1,"to":"0x1","payload":{"answer":"red"},"from":"0x2","signature":"00","mood":1}"#;
        let found = |from| unknown(Protocol::ConnectOnion, from, signed);
        assert_eq!(found(Side::Client), ["mood"]);
    }

    #[test]
    fn members_that_a_type_reads_and_does_not_write_are_known() {
        let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new","server_newer":false,"session":null}"#;
        assert_eq!(
            unknown(Protocol::ConnectOnion, Side::Server, connected),
            [""; 0]
        );
        let raw = r#"{"id":"1","event":"tool_use","data":{"id":"t","name":"n","input":{"any":1}}}"#;
        assert_eq!(unknown(Protocol::Exoclaw, Side::Server, raw), [""; 0]);
    }
}
