//! The grammar of JSON's tokens, over bytes: where a string, a number or a word ends.
//!
//! These functions take an index and return one. They handle no values and no errors, so that
//! everything stays in registers.

/// The index of the byte that does not fit; the length of the text if it ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit(pub(super) usize);

pub(super) const WORD: usize = 8;
/// Two words fill a vector register on every machine.
pub(super) const PAIR: usize = 16;
/// How many bytes of a long string are tested together.
const BLOCK: usize = 64;
/// How many pairs are tested one by one before blocks.
const FIRST_PAIRS: usize = 3;

/// 1 in every byte.
const ONES: u64 = u64::MAX / 255;

/// Returns the index, from `at`, of the first byte that is not white space.
#[inline]
pub(super) fn past_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the index, from `at`, of the first byte that a string cannot hold unescaped: a quotation
/// mark, a backslash or a control character. The length if there is none.
#[inline]
pub(super) fn plain_end(bytes: &[u8], at: usize) -> usize {
    // Most names are short: the first word is looked at where the string is wanted.
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk().map(|word| marks(*word)) {
        Some(0) => long_plain_end(bytes, at + WORD),
        Some(marks) => at + first(marks),
        None => long_plain_end(bytes, at),
    }
}

#[inline(never)]
fn long_plain_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at)
}

/// Like [`plain_end`], for text that is likely to be long.
#[inline(always)]
pub(super) fn run_end(bytes: &[u8], at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or_default();
    for _ in 0..FIRST_PAIRS {
        let Some((pair, after)) = rest.split_first_chunk() else {
            break;
        };
        if let Some(index) = special_in(pair) {
            return bytes.len() - rest.len() + index;
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk()
        && is_plain(block)
    {
        rest = after;
    }
    while let Some((pair, after)) = rest.split_first_chunk() {
        if let Some(index) = special_in(pair) {
            return bytes.len() - rest.len() + index;
        }
        rest = after;
    }
    if let Some((word, after)) = rest.split_first_chunk() {
        match marks(*word) {
            0 => rest = after,
            marks => return bytes.len() - rest.len() + first(marks),
        }
    }
    let at = bytes.len() - rest.len();
    match bytes.last_chunk() {
        // The last word, without what is before the rest. What moves in from above is zero, which counts
        // as a control character: the search ends there.
        Some(word) if !rest.is_empty() => {
            let word = u64::from_le_bytes(*word) >> (8 * (WORD - rest.len()));
            at + first(marks(word.to_le_bytes()))
        }
        _ => at + rest.iter().take_while(|byte| !is_special(byte)).count(),
    }
}

/// Like [`run_end`], for a text that may be a short word.
#[inline(always)]
pub(super) fn text_end(bytes: &[u8]) -> usize {
    // Its halves overlap.
    if let 4..WORD = bytes.len()
        && let (Some([a, b, c, d]), Some([e, f, g, h])) = (bytes.first_chunk(), bytes.last_chunk())
        && marks([*a, *b, *c, *d, *e, *f, *g, *h]) == 0
    {
        return bytes.len();
    }
    run_end(bytes, 0)
}

pub(super) const fn is_special(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Returns the index of the first special byte of two words.
#[inline]
pub(super) fn special_in(pair: &[u8; PAIR]) -> Option<usize> {
    let (words, _) = pair.as_chunks();
    let mut both = [0; 2];
    // Both at once, before a branch, so that they are computed side by side.
    for (marked, word) in both.iter_mut().zip(words) {
        *marked = marks(*word);
    }
    let [low, high] = both;
    if low | high == 0 {
        None
    } else if low != 0 {
        Some(first(low))
    } else {
        Some(WORD + first(high))
    }
}

/// Returns whether the block has no special byte.
#[inline]
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let (words, _) = block.as_chunks();
    words.iter().fold(0, |all, word| all | marks(*word)) == 0
}

/// Marks the high bit of each special byte. Exact up to the first one; the byte above a special one
/// may be marked too, because the subtractions borrow from it.
#[inline]
pub(super) const fn marks(word: [u8; WORD]) -> u64 {
    let word = u64::from_le_bytes(word);
    // One bit flipped, the quotation mark follows the control characters.
    let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    // Bytes of more than 0x7f are parts of other characters.
    (quote_or_control | backslash) & !word & (ONES * 0x80)
}

/// The index of the first marked byte.
#[inline]
pub(super) const fn first(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// The index of a string's closing quotation mark, from a byte inside it.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize, has_escape: &mut bool) -> Result<usize, Misfit> {
    let end = plain_end(bytes, at);
    match bytes.get(end) {
        Some(b'"') => Ok(end),
        _ => {
            *has_escape = true;
            escaped_end(bytes, end)
        }
    }
}

/// Like [`string_end`], from the end of the string's plain part.
fn escaped_end(bytes: &[u8], mut at: usize) -> Result<usize, Misfit> {
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => at = escape_end(bytes, at + 1)?,
            _ => return Err(Misfit(at)),
        }
        at = plain_end(bytes, at);
    }
}

/// The index after an escape, from the byte after its backslash.
#[inline(always)] // Else it depends on other code of the crate, and raw values cost 2 % more.
pub(super) fn escape_end(bytes: &[u8], at: usize) -> Result<usize, Misfit> {
    match bytes.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => {
            let digits = bytes.get(at + 1..).unwrap_or_default().iter().take(4);
            match digits.take_while(|byte| byte.is_ascii_hexdigit()).count() {
                4 => Ok(at + 5),
                fewer => Err(Misfit(at + 1 + fewer)),
            }
        }
        _ => Err(Misfit(at)),
    }
}

/// The index after a word.
#[inline]
pub(super) fn word_end(bytes: &[u8], at: usize, word: &str) -> Result<usize, Misfit> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.starts_with(word.as_bytes()) {
        Ok(at + word.len())
    } else {
        Err(Misfit(at))
    }
}

/// The index after a number.
#[inline]
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> Result<usize, Misfit> {
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    // No digit follows a zero at the start.
    at = match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'0'), Some(b'0'..=b'9')) => return Err(Misfit(at + 1)),
        _ => digits_end(bytes, at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits_end(bytes, at)?;
    }
    Ok(at)
}

/// A number from 0 up of few digits, so that none is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Short {
    Whole(u64),
    Real(f64),
}

/// A short number and the index after it. `None` for any other, and for one with an exponent.
#[inline]
pub(super) fn short_number(bytes: &[u8], at: usize) -> Option<(Short, usize)> {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = rest.get(..SHORT).unwrap_or(rest);
    let (whole, mut len) = digits(rest, 0);
    let begins_well = len == 1 || len > 1 && rest.first() != Some(&b'0');
    let mut number = Short::Whole(whole);
    if let Some(b'.') = rest.get(len) {
        let (all, more) = digits(rest.get(len + 1..).unwrap_or_default(), whole);
        // A double holds both exactly, so that the quotient is rounded once: to the nearest one.
        let power = POWERS.get(more).filter(|power| **power > 1.0)?;
        number = Short::Real(exact(all)? / power);
        len += 1 + more;
    }
    let end = at + len;
    let is_end = !matches!(bytes.get(end), Some(b'0'..=b'9' | b'.' | b'e' | b'E'));
    (is_end && begins_well).then_some((number, end))
}

/// The length of numbers that are short: none has more than 64 bits.
const SHORT: usize = 18;

/// Powers of ten, up to as many digits as may follow the point.
#[rustfmt::skip]
const POWERS: [f64; 17] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
];

/// The number as a double, if that holds it exactly.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "it is exact")]
fn exact(number: u64) -> Option<f64> {
    (number <= 1 << f64::MANTISSA_DIGITS).then_some(number as f64)
}

/// Appends the digits at the start to a number, and returns how many they are.
#[inline]
fn digits(bytes: &[u8], mut number: u64) -> (u64, usize) {
    let mut count = 0;
    for digit in bytes.iter().map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        number = 10 * number + u64::from(digit);
        count += 1;
    }
    (number, count)
}

/// The index after one digit or more.
#[inline]
fn digits_end(bytes: &[u8], start: usize) -> Result<usize, Misfit> {
    let mut at = start;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == start {
        return Err(Misfit(at));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_by_one(bytes: &[u8], from: usize) -> usize {
        let special = bytes.iter().skip(from).position(is_special);
        special.map_or(bytes.len(), |at| from + at)
    }

    #[test]
    fn every_byte_is_classified_at_every_position() {
        for len in 0..80 {
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'~'; len];
                    bytes[at] = byte;
                    assert_eq!(
                        plain_end(&bytes, 0),
                        one_by_one(&bytes, 0),
                        "{byte} at {at}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_short_number_is_read_as_the_standard_library_reads_it(
            text in "-?[0-9]{0,19}(\\.[0-9]{0,18})?(e[0-9])?[,}]?",
        ) {
            if let Some((number, end)) = short_number(text.as_bytes(), 0) {
                prop_assert_eq!(number_end(text.as_bytes(), 0), Ok(end));
                match number {
                    Short::Whole(whole) => prop_assert_eq!(text[..end].parse(), Ok(whole)),
                    Short::Real(real) => prop_assert_eq!(text[..end].parse(), Ok(real)),
                }
            }
        }

        #[test]
        fn the_end_agrees_with_a_bytewise_scan(
            bytes in proptest::collection::vec(
                prop_oneof![8 => any::<u8>(), 1 => Just(b'"'), 30 => Just(b'a'), 1 => Just(b'\\')], 0..200),
            from in 0_usize..64,
        ) {
            let from = from.min(bytes.len());
            prop_assert_eq!(plain_end(&bytes, from), one_by_one(&bytes, from));
        }
    }
}
