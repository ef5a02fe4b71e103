//! Decoding the escapes of a string.

use super::scan::plain_end;

/// Decodes the contents of a string whose escapes are known to be well formed. `None` for a lone
/// surrogate, which text cannot hold.
#[cold]
pub(super) fn unescape(inner: &str) -> Option<String> {
    unescape_or(inner, None)
}

/// Like [`unescape`], with U+FFFD for a lone surrogate.
#[cold]
pub(super) fn unescape_lossy(inner: &str) -> Option<String> {
    unescape_or(inner, Some(char::REPLACEMENT_CHARACTER))
}

fn unescape_or(inner: &str, lone: Option<char>) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let (run, after) = rest.split_at_checked(plain_end(rest.as_bytes(), 0))?;
        text.push_str(run);
        if after.is_empty() {
            return Some(text);
        }
        let mut escape = after.chars();
        // The backslash.
        escape.next();
        let character = match escape.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => unicode(&mut escape).or(lone)?,
            // A quotation mark, a slash or another backslash.
            itself => itself,
        };
        text.push(character);
        rest = escape.as_str();
    }
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
    fn a_surrogate_alone_is_no_text_or_a_mark_of_its_place() {
        for (inner, lossy) in [
            (r"a\ud83d\ude00b", "a😀b"),
            (r"a\ud83d", "a\u{fffd}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\n", "\u{fffd}\n"),
            (r"\ude00\ud83d\u0041", "\u{fffd}\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        ] {
            assert_eq!(unescape_lossy(inner).as_deref(), Some(lossy), "{inner}");
            let strict = Some(lossy).filter(|text| !text.contains(char::REPLACEMENT_CHARACTER));
            assert_eq!(unescape(inner).as_deref(), strict, "{inner}");
        }
    }
}
