//! Writing strings: text without escapes is found many bytes at a time and copied in long runs.

use super::scan::{is_special, plain_end, text_end};

/// Extra room for the rest of the frame.
const ROOM: usize = 64;

/// Appends `text` unchanged. A buffer that is too small for a long text does not double for the few
/// bytes after it.
#[inline]
pub(super) fn write_plain(out: &mut String, text: &str) {
    out.reserve(text.len() + ROOM);
    out.push_str(text);
}

/// Appends `text` as a JSON string.
pub(super) fn write_string(out: &mut String, text: &str) {
    let clean = text_end(text.as_bytes());
    out.push('"');
    if clean == text.len() {
        write_plain(out, text);
    } else {
        write_escaped(out, text, clean);
    }
    out.push('"');
}

/// Appends a member's name and colon.
#[inline(always)]
pub(super) fn write_name(out: &mut String, name: &str) {
    write_known(out, name, "\":");
}

/// Appends a string whose text is known at compile time, and `end` after it.
// The compiler does the test, and copies whole words.
#[inline(always)]
pub(super) fn write_known(out: &mut String, text: &str, end: &'static str) {
    let has_special = text
        .bytes()
        .fold(false, |found, byte| found | is_special(&byte));
    out.push('"');
    if has_special {
        write_contents(out, text);
    } else {
        out.push_str(text);
    }
    out.push_str(end);
}

/// Appends the text between the quotation marks, with escapes.
pub(super) fn write_contents(out: &mut String, text: &str) {
    write_escaped(out, text, plain_end(text.as_bytes(), 0));
}

/// Appends a text whose first `clean` bytes need no escapes.
#[inline(never)]
fn write_escaped(out: &mut String, mut text: &str, mut clean: usize) {
    out.reserve(text.len() + ROOM);
    // What is escaped is a character of its own, so a run ends between characters.
    while let Some((run, rest)) = text.split_at_checked(clean) {
        out.push_str(run);
        let mut rest = rest.chars();
        let Some(escaped) = rest.next() else {
            return;
        };
        write_escape(out, escaped);
        text = rest.as_str();
        clean = plain_end(text.as_bytes(), 0);
    }
}

#[inline]
fn write_escape(out: &mut String, escaped: char) {
    out.push_str(match escaped {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        _ => return write_control(out, escaped),
    });
}

#[cold]
fn write_control(out: &mut String, escaped: char) {
    out.push_str("\\u00");
    for nibble in [u32::from(escaped) >> 4, u32::from(escaped) & 0xf] {
        out.push(char::from_digit(nibble, 16).unwrap_or_default());
    }
}
