//! Strings: what has no escapes is found many bytes at a time and copied in long runs.

/// Bytes are tested this many at a time, by a few vector instructions that the compiler finds.
const CHUNK: usize = 32;

/// What is likely to follow in the same frame.
const ROOM: usize = 64;

/// Appends `text` as it is. A buffer that is too small for a long text must not double for the few
/// bytes after it.
#[inline]
pub(super) fn write_plain(out: &mut String, text: &str) {
    out.reserve(text.len() + ROOM);
    out.push_str(text);
}

/// Appends `text` as a JSON string.
pub(super) fn write_string(out: &mut String, text: &str) {
    let clean = clean_run(text.as_bytes());
    out.push('"');
    if clean == text.len() {
        write_plain(out, text);
    } else {
        write_escaped(out, text, clean);
    }
    out.push('"');
}

/// Appends the name of a member and its colon.
// Where the name is known, the compiler does the test, and copies whole words.
#[inline(always)]
pub(super) fn write_name(out: &mut String, name: &'static str) {
    let has_escaped = name
        .bytes()
        .fold(false, |found, byte| found | is_escaped(byte));
    if has_escaped {
        write_string(out, name);
        out.push(':');
    } else {
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
    }
}

/// Appends what stands between the quotation marks.
pub(super) fn write_contents(out: &mut String, text: &str) {
    write_escaped(out, text, clean_run(text.as_bytes()));
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
        // After a short run another short one is likely.
        clean = if clean < CHUNK {
            clean_words(text.as_bytes())
        } else {
            clean_run(text.as_bytes())
        };
    }
}

/// How many bytes stand before the first that is escaped.
#[inline(never)]
fn clean_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<CHUNK>() {
        if has_escaped(chunk) {
            break;
        }
        rest = after;
    }
    bytes.len() - rest.len() + clean_words(rest)
}

/// The same for short runs.
#[inline]
fn clean_words(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    let mut clean = 0;
    for word in words {
        let escaped = escaped_in(word);
        if escaped != 0 {
            return clean + escaped.trailing_zeros() as usize / 8;
        }
        clean += 8;
    }
    // The rest makes up a word with some bytes before it.
    if let Some(last) = bytes.last_chunk()
        && escaped_in(last) == 0
    {
        return bytes.len();
    }
    for &byte in rest {
        if is_escaped(byte) {
            break;
        }
        clean += 1;
    }
    clean
}

/// Whether JSON asks for an escape.
#[inline]
const fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Has no branch inside, so that it becomes vector instructions.
#[inline]
fn has_escaped(chunk: &[u8; CHUNK]) -> bool {
    let words = chunk.as_chunks().0.iter();
    words.fold(0, |found, word| found | escaped_in(word)) != 0
}

/// Marks the bytes of a word that are escaped in their highest bits. The lowest mark is always
/// right; a borrow may set the one above it.
#[inline]
const fn escaped_in(word: &[u8; 8]) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_le_bytes(*word);
    // Flipping one bit brings the quotation mark right behind the control characters.
    let control_or_quote = (word ^ all(2)).wrapping_sub(all(b' ' + 1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(1));
    (control_or_quote | backslash) & !word & all(0x80)
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
