//! What a string with escapes says.

use super::scan::plain_end;

/// The contents of a string, whose escapes are known to be well formed. `None` if a surrogate
/// stands alone: no text can hold it.
#[cold]
pub(super) fn unescape(inner: &str) -> Option<String> {
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
            'u' => unicode(&mut escape)?,
            // A quotation mark, a slash or another backslash.
            itself => itself,
        };
        text.push(character);
        rest = escape.as_str();
    }
}

/// The character after `\u`. Characters beyond 16 bits are written as two surrogates.
fn unicode(text: &mut std::str::Chars<'_>) -> Option<char> {
    let first = hex(text)?;
    if !matches!(first, 0xd800..=0xdbff) {
        return char::from_u32(first);
    }
    if (text.next()?, text.next()?) != ('\\', 'u') {
        return None;
    }
    let second = hex(text)?;
    if !matches!(second, 0xdc00..=0xdfff) {
        return None;
    }
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

fn hex(text: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut number = 0;
    for _ in 0..4 {
        number = number << 4 | text.next()?.to_digit(16)?;
    }
    Some(number)
}
