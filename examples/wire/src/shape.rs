//! [`Shape`]: the names in a frame and how they are nested, found without decoding it.

use std::ops::Range;

use memchr::{memchr, memchr2};
use rpc_core::testing::Side;

use super::Protocol;

/// Values of these members decide which others are known.
const TAGS: [&[u8]; 4] = [b"type", b"kind", b"event", b"method"];
/// How many bytes of a string are looked at one by one.
const NEAR: usize = 16;
/// Most different items of an array that the next one is compared with.
const MAX_ITEMS: usize = 16;

/// Texts of more bytes are long, as they stand in JSON: 170 characters if all of them are escaped.
const LONG: usize = 2048;

/// Names of members that hold secrets, or what is cut.
const fn secrets(protocol: Protocol, from: Side) -> &'static [&'static [u8]] {
    match (protocol, from) {
        (Protocol::Snek, Side::Server) => &[b"method", b"args", b"kwargs"],
        (Protocol::Exoclaw, _) => &[b"token"],
        (Protocol::ConnectOnion, _) => &[
            b"signature",
            b"invite_code",
            b"payment",
            b"received",
            b"data",
        ],
        _ => &[],
    }
}

fn is_data_url(string: &[u8]) -> bool {
    let head = string.get(..5);
    head.is_some_and(|head| head.eq_ignore_ascii_case(b"data:"))
}

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

/// Returns where the beginning of a long string of JSON may end: between two characters.
fn cut(string: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr(b'\\', string.get(at..LONG).unwrap_or_default()) {
        let start = at + found;
        let len = match string.get(start + 1..start + 4) {
            // The first of two surrogates.
            Some([b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B']) => 12,
            Some([b'u', ..]) => 6,
            _ => 2,
        };
        if start + len > LONG {
            return start;
        }
        at = start + len;
    }
    let is_inside = |at: &usize| string.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=LONG).rev().find(|at| !is_inside(at)).unwrap_or(0)
}

/// A look at frames, which uses its memory again.
#[derive(Debug, Default)]
pub(super) struct Shape {
    bytes: Vec<u8>,
    levels: Vec<Level>,
    /// Where the items of the open arrays stand that differ from each other.
    items: Vec<Range<usize>>,
    /// The frame up to its last long text, with the beginnings of long texts only.
    short: String,
}

/// What a look at a frame has found.
pub(super) struct Look<'a> {
    /// What two frames share only if they have the same members, nested in the same way, and the same
    /// kinds: braces, and the names with a quote. Of the items of an array that are alike, the first.
    pub(super) shape: &'a [u8],
    /// Whether it may hold a secret. If not, [`redact`](super::dialect::redact) leaves any valid frame
    /// as it is.
    pub(super) may_hold_secret: bool,
    /// The frame with the beginnings of its long texts only, if it has any.
    pub(super) short: Option<&'a str>,
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
    /// Looks at a frame.
    pub(super) fn of(&mut self, protocol: Protocol, from: Side, text: &str) -> Look<'_> {
        self.short.clear();
        // What of the text is in `short` or was left out.
        let mut done = 0;
        let secrets = secrets(protocol, from);
        let mut is_secret = false;
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
                    let (start, mut is_escaped) = (at, false);
                    while let Some(found) = quote_or_backslash(bytes.get(at..).unwrap_or_default())
                    {
                        at += found + 1;
                        if bytes.get(at - 1) == Some(&b'"') {
                            break;
                        }
                        is_escaped = true;
                        at += 1;
                    }
                    let string = bytes.get(start..at.saturating_sub(1)).unwrap_or_default();
                    let rest = bytes.get(at..).unwrap_or_default();
                    let is_name = rest.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b':');
                    is_secret |= match is_name {
                        true => {
                            let is_it = |it: &&[u8]| it.eq_ignore_ascii_case(string);
                            is_escaped || secrets.iter().any(is_it)
                        }
                        // The beginning may be escaped, too.
                        false if protocol == Protocol::ConnectOnion => is_data_url(string),
                        false => {
                            protocol == Protocol::Snek
                                && (string.eq_ignore_ascii_case(b"login") || is_escaped && is_tag)
                        }
                    };
                    if is_name || is_tag {
                        self.bytes.extend_from_slice(string);
                        self.bytes.push(b'"');
                    }
                    is_tag = is_name && TAGS.contains(&string);
                    if string.len() > LONG && !is_name {
                        let end = start + cut(string);
                        // Whatever is no text by itself is not shown at all.
                        let kept = text.get(done..end).unwrap_or_default();
                        self.short.push_str(kept);
                        done = at - 1;
                    }
                }
                _ => {}
            }
        }
        if done > 0 {
            self.short.push_str(text.get(done..).unwrap_or_default());
        }
        Look {
            shape: &self.bytes,
            may_hold_secret: is_secret,
            short: (done > 0).then_some(&*self.short),
        }
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
    use std::borrow::Cow;

    use super::*;
    use crate::dialect::redact;

    #[test]
    fn a_shape_is_made_of_names_and_kinds_alone() {
        let shape = |from, text: &str| {
            let mut shape = Shape::default();
            shape.of(Protocol::Acolyte, from, text).shape.to_vec()
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
            shape
                .of(Protocol::Acolyte, Side::Client, text)
                .shape
                .to_vec()
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

    #[test]
    fn no_frame_with_a_secret_is_taken_for_one_without() {
        let long = "x".repeat(100);
        let data = [
            format!(r#"{{"type":"INPUT","files":[{{"name":"a","data":"{long}"}}]}}"#),
            format!(r#"{{"type":"INPUT","images":["DATA:image/png;base64,{long}"]}}"#),
            format!(r#"{{"type":"INPUT","files":[{{"d\u0061ta":"{long}"}}]}}"#),
        ];
        let frames = [
            r#"{"method":"login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"method":"log\u0069n","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"m\u0065thod":"login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"method":1,"args":["hunter2"],"callId":"1","data":null}"#,
            r#"{"method":"Login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"mehtod":"login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"event":"message","kwargs":{"password":"hunter2"}}"#,
            r#"{"token":"hunter2"}"#,
            r#"{"Token":"hunter2","id":"1","method":"ping"}"#,
            r#"{"tok\u0065n":"hunter2"}"#,
            r#"{"id":"1","method":"x","params":{"a":[{"token":"hunter2"}]}}"#,
            r#"{"type":"CONNECT","payload":{"invite_code":"hunter2"},"signature":"hunter2"}"#,
            r#"{"type":"X","a":[{"b":{"\u0073ignature" : "hunter2"}}]}"#,
            r#"{"type":"ERROR","message":"no","received":"{signature: hunter2"}"#,
            r#"{"type":"X","payment":["hunter2"]}"#,
        ];
        let mut held = 0;
        for protocol in Protocol::ALL {
            for text in frames.into_iter().chain(data.iter().map(|it| &**it)) {
                for from in [Side::Client, Side::Server] {
                    let mut shape = Shape::default();
                    let may = shape.of(protocol, from, text).may_hold_secret;
                    let shown = redact(protocol, from, text);
                    if let Cow::Borrowed(shown) = shown {
                        assert_eq!(shown, text, "{protocol:?} {from:?}");
                    } else {
                        let is_read = super::super::dialect::Dialect::from(protocol)
                            .read(from, text, None)
                            .is_ok();
                        assert!(may || !is_read, "{protocol:?} {from:?} {text}: {shown}");
                        held += usize::from(may);
                    }
                }
            }
        }
        assert!(held >= 20, "{held}");
    }

    #[test]
    fn what_frames_say_is_no_secret() {
        for (protocol, text) in [
            (
                Protocol::Exoclaw,
                r#"{"id":"1","event":"text","data":"a \"token\": \u0041"}"#,
            ),
            (
                Protocol::ConnectOnion,
                r#"{"type":"assistant_delta","content":"the \"data\" signature"}"#,
            ),
            (
                Protocol::Snek,
                r#"{"method":"send_message","args":["c","my login"],"callId":"1"}"#,
            ),
        ] {
            let look = Shape::default()
                .of(protocol, Side::Client, text)
                .may_hold_secret;
            assert!(!look, "{text}");
        }
    }

    #[test]
    fn a_short_frame_is_a_frame_with_the_same_beginnings() {
        let mut shape = Shape::default();
        for unit in [
            "x",
            "é",
            "\\\"",
            "\\\\",
            "\\u00e9",
            "\\ud83d\\ude00",
            "日x\\n",
        ] {
            for before in ["", "a", "ab", "abc"] {
                let long = format!("{before}{}", unit.repeat(2 * LONG));
                let text = format!(r#"{{"a":"{long}","b":{{"c":[1,"{long}","d"]}}}}"#);
                let short = shape.of(Protocol::Exoclaw, Side::Server, &text).short;
                let short: serde_json::Value = serde_json::from_str(short.unwrap()).unwrap();
                let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
                let begin = short["a"].as_str().unwrap();
                assert!(whole["a"].as_str().unwrap().starts_with(begin));
                assert!((150..=LONG).contains(&begin.chars().count()), "{unit}");
                assert_eq!(short["b"]["c"][1], short["a"]);
                assert_eq!(short["b"]["c"][2], "d");
            }
        }
        for text in [r#"{"a":"x"}"#, r#"{"a":"#, r#"{"a":""#, ""] {
            assert_eq!(shape.of(Protocol::Exoclaw, Side::Server, text).short, None);
        }
        let open = format!(r#"{{"a":"{}"#, "x".repeat(2 * LONG));
        let _ = shape.of(Protocol::Exoclaw, Side::Server, &open);
    }
}
