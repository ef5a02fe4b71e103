//! Strings: clean runs are found many bytes at a time and copied whole.

/// Clean bytes of a long text are tested this many at a time; the compiler makes vector
/// instructions of it.
const CHUNK: usize = 32;
/// Long runs are copied in pieces of this size, while what was tested is still in the cache.
const RUN: usize = 1024;
/// Longer names are looked at as any other text; the test of shorter ones vanishes at compile time.
const SHORT: usize = 24;

/// Appends `text` as a JSON string.
pub(super) fn write_string(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    write_contents(out, text);
    out.push('"');
}

/// Appends the name of a member and its colon. Names in the source are short and hold nothing to
/// escape, which the compiler sees where it knows the name.
#[inline]
pub(super) fn write_name(out: &mut String, name: &'static str) {
    let bytes = name.as_bytes();
    if bytes.len() <= SHORT && !bytes.iter().any(|&byte| is_escaped(byte)) {
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
    } else {
        write_string(out, name);
        out.push(':');
    }
}

/// Appends what stands between the quotation marks.
pub(super) fn write_contents(out: &mut String, mut text: &str) {
    loop {
        // The run ends before a byte that is a character of its own, or at the end of a character.
        let clean = clean_run(text);
        let Some((run, rest)) = text.split_at_checked(clean) else {
            return;
        };
        out.push_str(run);
        let Some(&byte) = rest.as_bytes().first() else {
            return;
        };
        text = rest;
        if is_escaped(byte) {
            write_escape(out, byte);
            text = rest.get(1..).unwrap_or_default();
        }
    }
}

/// How many bytes from the start can be copied: up to the first that is escaped, but no more than
/// about [`RUN`].
#[inline]
fn clean_run(text: &str) -> usize {
    let mut end = text.len();
    if end > RUN {
        end = RUN;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
    }
    let bytes = text.as_bytes().get(..end).unwrap_or_default();
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    let mut at = CHUNK * chunks.iter().take_while(|chunk| !has_escaped(chunk)).count();
    let (words, rest) = bytes.get(at..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        let hits = escaped_in(u64::from_le_bytes(*word));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + rest.iter().take_while(|&&byte| !is_escaped(byte)).count()
}

/// Whether JSON has an escape for this byte and asks for it.
#[inline]
const fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Without a branch per byte, so that it takes a few vector instructions.
#[inline]
fn has_escaped(chunk: &[u8; CHUNK]) -> bool {
    chunk.iter().fold(false, |found, &byte| found | is_escaped(byte))
}

/// Marks the bytes of a word that are escaped in their highest bits. The lowest mark is always
/// right; a borrow may set one above it.
#[inline]
const fn escaped_in(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // Flipping one bit brings the quotation mark right behind the control characters.
    let controls_and_quotes = (word ^ all(2)).wrapping_sub(all(b' ' + 1));
    let backslashes = (word ^ all(b'\\')).wrapping_sub(all(1));
    (controls_and_quotes | backslashes) & !word & all(0x80)
}

#[inline]
fn write_escape(out: &mut String, byte: u8) {
    out.push_str(match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        0x08 => "\\b",
        0x0c => "\\f",
        _ => return write_control(out, byte),
    });
}

#[cold]
fn write_control(out: &mut String, byte: u8) {
    out.push_str("\\u00");
    for nibble in [byte >> 4, byte & 0xf] {
        out.push(char::from_digit(nibble.into(), 16).unwrap_or_default());
    }
}
