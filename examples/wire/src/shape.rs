//! [`Shape`]: the names in a frame and how they are nested, found without decoding it.

use std::ops::Range;

use memchr::memchr2;
use rpc_core::testing::Side;

use super::Protocol;

/// Values of these members decide which others are known.
const TAGS: [&[u8]; 4] = [b"type", b"kind", b"event", b"method"];
/// How many bytes of a string are looked at one by one.
const NEAR: usize = 16;
/// Most different items of an array that the next one is compared with.
const MAX_ITEMS: usize = 16;

#[inline]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let is_it = |byte: &u8| matches!(byte, b'"' | b'\\');
    // Names are short, and escapes near to each other: a call costs more.
    match bytes.split_first_chunk::<NEAR>() {
        Some((near, far)) => near
            .iter()
            .position(is_it)
            .or_else(|| memchr2(b'"', b'\\', far).map(|at| at + NEAR)),
        None => bytes.iter().position(is_it),
    }
}

/// A look at frames, which uses its memory again.
#[derive(Debug, Default)]
pub(super) struct Shape {
    bytes: Vec<u8>,
    levels: Vec<Level>,
    /// Where the items of the open arrays stand that differ from each other.
    items: Vec<Range<usize>>,
}

/// An object or array that is open.
#[derive(Debug)]
struct Level {
    is_array: bool,
    start: usize,
    /// The first of its items.
    items: usize,
}

impl Shape {
    /// Returns what two frames share only if they have the same members, nested in the same way, and the same kinds:
    /// braces, and the names with a quote. Of the items of an array that are alike, the first.
    pub(super) fn of(&mut self, protocol: Protocol, from: Side, text: &str) -> &[u8] {
        self.bytes.clear();
        self.levels.clear();
        self.items.clear();
        self.bytes.extend([protocol as u8, from as u8]);
        let bytes = text.as_bytes();
        let (mut at, mut is_tag) = (0, false);
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => self.open(*byte),
                b'}' | b']' => self.close(*byte),
                b'"' => {
                    let start = at;
                    while let Some(found) = quote_or_backslash(bytes.get(at..).unwrap_or_default())
                    {
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
                        self.bytes.extend_from_slice(string);
                        self.bytes.push(b'"');
                    }
                    is_tag = is_name && TAGS.contains(&string);
                }
                _ => {}
            }
        }
        &self.bytes
    }

    fn open(&mut self, byte: u8) {
        self.levels.push(Level {
            is_array: byte == b'[',
            start: self.bytes.len(),
            items: self.items.len(),
        });
        self.bytes.push(byte);
    }

    fn close(&mut self, byte: u8) {
        self.bytes.push(byte);
        let Some(level) = self.levels.pop() else {
            return;
        };
        self.items.truncate(level.items);
        let Some(array) = self.levels.last().filter(|it| it.is_array) else {
            return;
        };
        let item = level.start..self.bytes.len();
        let others = self.items.get(array.items..).unwrap_or_default();
        let mut others = others.iter().rev().take(MAX_ITEMS);
        if others.any(|it| self.bytes.get(it.clone()) == self.bytes.get(item.clone())) {
            self.bytes.truncate(level.start);
        } else {
            self.items.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_made_of_names_and_kinds_alone() {
        let shape = |from, text: &str| {
            let mut shape = Shape::default();
            shape.of(Protocol::Acolyte, from, text).to_vec()
        };
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

    #[test]
    fn items_of_an_array_that_are_alike_count_once() {
        let of = |text: &str| {
            let mut shape = Shape::default();
            shape.of(Protocol::Acolyte, Side::Client, text).to_vec()
        };
        let one = of(r#"{"a":[{"b":[{"c":1}]}],"d":[]}"#);
        for same in [
            r#"{"a":[{"b":[{"c":1}]},{"b":[{"c":2}]}],"d":[]}"#,
            r#"{"a":[{"b":[{"c":1},{"c":"x"}]},{"b":[{"c":2}]}],"d":["x","y"]}"#,
        ] {
            assert_eq!(one, of(same), "{same}");
        }
        for other in [
            r#"{"a":[{"b":[{"c":1}]},{"b":[{"x":2}]}],"d":[]}"#,
            r#"{"a":[{"b":[{"c":1}]}],"d":[{}]}"#,
            r#"{"a":{"b":[{"c":1}]},"d":[]}"#,
        ] {
            assert_ne!(one, of(other), "{other}");
        }
        assert_ne!(of(r#"{"a":{},"a":{}}"#), of(r#"{"a":{}}"#));
        assert_eq!(of("]]}"), of("]]}"));
    }
}
