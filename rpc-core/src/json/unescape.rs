//! Decoding the escapes of a string.

#[cfg(any(test, feature = "testing"))]
use std::borrow::Cow;

#[cfg(any(test, feature = "testing"))]
use super::scan::plain_end;
use super::scan::{Misfit, PAIR, escape_end, is_special, special_in};

/// The room for the first bytes behind the first escape.
const FIRST_ROOM: usize = 4 * 1024;
/// The length of the longest character.
const LONGEST: usize = 4;

/// Reads a string behind its first quotation mark. Returns it and what follows it; `None` if it is not
/// well-formed.
#[cfg(any(test, feature = "testing"))]
pub fn read_string(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = plain_end(text.as_bytes(), 0);
    let (read, end) = match text.as_bytes().get(end) {
        Some(b'"') => (text.get(..end)?.into(), end),
        _ => unescape_from(text, 0, end)
            .map(|(text, end)| (text.into(), end))
            .ok()?,
    };
    Some((read, text.get(end + 1..)?))
}

/// Decodes a string that begins at `start` and has its first escape at `at`. Returns it with the index
/// of its closing quotation mark.
pub(super) fn unescape_from(
    whole: &str,
    start: usize,
    at: usize,
) -> Result<(String, usize), Misfit> {
    let mut text = Vec::new();
    let (_, end) = unescape_into(&mut text, whole, start, at)?;
    Ok((String::from_utf8(text).unwrap_or_default(), end))
}

/// Like [`unescape_from`], into a buffer that is used again.
pub(super) fn unescape_into<'b>(
    buffer: &'b mut Vec<u8>,
    whole: &str,
    start: usize,
    mut at: usize,
) -> Result<(&'b str, usize), Misfit> {
    let bytes = whole.as_bytes();
    let plain = bytes.get(start..at).unwrap_or_default();
    let mut len = plain.len();
    // Decoded text is not longer than the rest. A buffer for a text that ends early does not grow with
    // the texts behind it.
    let room =
        |len: usize, at: usize| len + (whole.len() - at).min(len.max(FIRST_ROOM)) + PAIR + LONGEST;
    buffer.clear();
    buffer.reserve(room(len, at));
    buffer.extend_from_slice(plain);
    loop {
        if buffer.len() < len + PAIR + LONGEST {
            buffer.resize(room(len, at), 0);
        }
        let mut room = buffer.get_mut(len..).unwrap_or_default();
        // Escapes are near to each other: a pair is copied whole, and what is behind its first special
        // byte is overwritten.
        if let Some(pair) = bytes.get(at..).and_then(|rest| rest.first_chunk())
            && let Some(copy) = room.first_chunk_mut()
        {
            *copy = *pair;
            let plain = special_in(pair).unwrap_or(PAIR);
            (at, len) = (at + plain, len + plain);
            if plain == PAIR {
                continue;
            }
            room = room.get_mut(plain..).unwrap_or_default();
        }
        match bytes.get(at) {
            // Whole characters were put together, so it is text.
            Some(b'"') => {
                buffer.truncate(len);
                return Ok((std::str::from_utf8(buffer).unwrap_or_default(), at));
            }
            Some(b'\\') => {
                let (character, next) = escaped(whole, at + 1)?;
                (at, len) = (next, len + put(character, room));
            }
            Some(byte) if !is_special(byte) => {
                if let Some(first) = room.first_mut() {
                    *first = *byte;
                }
                (at, len) = (at + 1, len + 1);
            }
            _ => return Err(Misfit(at)),
        }
    }
}

/// Writes a character and returns its length. There is room for it.
#[inline]
fn put(character: char, room: &mut [u8]) -> usize {
    match (u8::try_from(character), room.first_mut()) {
        (Ok(byte), Some(first)) if byte.is_ascii() => {
            *first = byte;
            1
        }
        _ => character.encode_utf8(room).len(),
    }
}

/// Returns the character of the escape whose backslash is before `at`, and the index behind it.
#[inline]
fn escaped(text: &str, at: usize) -> Result<(char, usize), Misfit> {
    let character = match text.as_bytes().get(at) {
        Some(b'n') => '\n',
        Some(itself @ (b'"' | b'\\' | b'/')) => char::from(*itself),
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        _ => return escaped_unit(text, at),
    };
    Ok((character, at + 1))
}

/// Like [`escaped`], for `\uxxxx`.
#[cold]
fn escaped_unit(text: &str, at: usize) -> Result<(char, usize), Misfit> {
    escape_end(text.as_bytes(), at)?;
    let mut rest = text.get(at + 1..).unwrap_or_default().chars();
    let character = unicode(&mut rest).unwrap_or(char::REPLACEMENT_CHARACTER);
    Ok((character, text.len() - rest.as_str().len()))
}

/// Decodes the character after `\u`. Characters beyond 16 bits are two surrogates; of a lone
/// surrogate it takes only its own digits.
fn unicode(text: &mut std::str::Chars<'_>) -> Option<char> {
    let first = hex(text)?;
    if !matches!(first, 0xd800..=0xdbff) {
        return char::from_u32(first);
    }
    let mut rest = text.clone();
    if (rest.next()?, rest.next()?) != ('\\', 'u') {
        return None;
    }
    let second = hex(&mut rest)?;
    if !matches!(second, 0xdc00..=0xdfff) {
        return None;
    }
    *text = rest;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

fn hex(text: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut number = 0;
    for _ in 0..4 {
        number = number << 4 | text.next()?.to_digit(16)?;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_marked_in_place() {
        for (inner, expected) in [
            (r"a\ud83d\ude00b", "a😀b"),
            (r"a\ud83d", "a\u{fffd}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\n", "\u{fffd}\n"),
            (r"\ude00\ud83d\u0041", "\u{fffd}\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        ] {
            let quoted = format!("{inner}\"");
            let first = inner.find('\\').unwrap();
            let (text, end) = unescape_from(&quoted, 0, first).unwrap();
            assert_eq!((&*text, end), (expected, inner.len()), "{inner}");
            let mended = format!("\"{}\"", crate::json::mend(inner));
            let theirs: String = serde_json::from_str(&mended).unwrap();
            assert_eq!(theirs, expected, "{inner}");
        }
    }

    #[test]
    fn a_malformed_string_has_an_error_position() {
        for (text, place) in [
            (r"a\x", 2),
            (r"a\u12", 5),
            (r#"a\u12G4""#, 5),
            (r#"\ud83d\u12""#, 10),
            ("\\n\u{1}\"", 2),
            (r"\n", 2),
        ] {
            let first = text.find('\\').unwrap();
            let misfit = unescape_from(text, 0, first).unwrap_err();
            assert_eq!(misfit, Misfit(place), "{text}");
        }
    }

    #[test]
    fn a_string_ends_at_its_closing_quote() {
        for run in 0..40 {
            for unit in ["x", "é", "\\n", "\\\"", "\\\\", "\\/", "\\t\\r\\b\\f"] {
                for before in ["", "ab", "\\\""] {
                    let inner = format!("{before}{}", unit.repeat(run));
                    let expected: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
                    for rest in ["", "}", ",\"code\":1000}\n"] {
                        let text = format!("{inner}\"{rest}");
                        let read = read_string(&text).unwrap();
                        assert_eq!(read, (expected.as_str().into(), rest), "{text}");
                    }
                    for end in ["", "\u{1}\"", "\n\"", "\\x\"", "\\"] {
                        assert_eq!(read_string(&format!("{inner}{end}")), None, "{inner}{end}");
                    }
                }
            }
        }
    }

    #[test]
    fn runs_of_any_length_between_escapes_are_kept() {
        for run in 0..100 {
            let (ascii, other) = ("x".repeat(run), "é".repeat(run));
            let quoted = format!(r#"{ascii}\n{other}\u00e9{ascii}\ud83d\ude00{other}\\\"{ascii}""#);
            let expected: String = serde_json::from_str(&format!("\"{quoted}")).unwrap();
            let (text, end) = unescape_from(&quoted, 0, run).unwrap();
            assert_eq!(text, expected, "{run}");
            assert_eq!(end, quoted.len() - 1, "{run}");
        }
    }
}
