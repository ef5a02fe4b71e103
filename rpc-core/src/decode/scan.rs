//! Finding the end of a string's plain part, many bytes at a time.

const WORD: usize = 8;
/// Bytes that are tested together in a long string: few enough to stay in vector registers.
const BLOCK: usize = 32;
/// Words that are tested one by one before blocks: most strings end within them.
const FIRST_WORDS: usize = 3;

/// 1 in every byte.
const ONES: u64 = u64::MAX / 255;

/// The index, from `from` on, of the first byte that no string holds as it is: a quotation mark, a
/// backslash or a control character. The length if there is none.
pub(super) fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut rest = bytes.get(from..).unwrap_or_default();
    for _ in 0..FIRST_WORDS {
        let Some((word, after)) = rest.split_first_chunk::<WORD>() else {
            return end_in_tail(bytes, rest);
        };
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return bytes.len() - rest.len() + first(marks);
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>()
        && is_plain(block)
    {
        rest = after;
    }
    while let Some((word, after)) = rest.split_first_chunk::<WORD>() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return bytes.len() - rest.len() + first(marks);
        }
        rest = after;
    }
    end_in_tail(bytes, rest)
}

/// The same in the last bytes of the text, which are less than a word.
#[inline]
fn end_in_tail(bytes: &[u8], tail: &[u8]) -> usize {
    let start = bytes.len() - tail.len();
    let end = match (tail.len(), bytes.last_chunk::<WORD>()) {
        (0, _) => 0,
        // The last word, without what is before the tail. What moves in from above is zero, which
        // counts as a control character: the search ends there.
        (len, Some(word)) => first(marks(u64::from_le_bytes(*word) >> (8 * (WORD - len)))),
        (len, None) => tail.iter().position(is_special).unwrap_or(len),
    };
    start + end
}

const fn is_special(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Whether no byte of the block is special.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let (words, _) = block.as_chunks::<WORD>();
    let all = |marked, word: &[u8; WORD]| marked | marks(u64::from_le_bytes(*word));
    words.iter().fold(0, all) == 0
}

/// The high bit of each byte that is special. Exact up to the first of them; a byte right above a
/// special one may be marked too, because the subtractions borrow from it.
#[inline]
const fn marks(word: u64) -> u64 {
    // One bit flipped, the quotation mark follows the control characters.
    let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    // Bytes of more than 0x7f are parts of other characters.
    (quote_or_control | backslash) & !word & (ONES * 0x80)
}

/// The index of the first marked byte.
#[inline]
const fn first(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
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
    fn every_byte_is_told_apart_at_every_place() {
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
        fn the_same_end_is_found_as_byte_by_byte(
            bytes in proptest::collection::vec(
                prop_oneof![8 => any::<u8>(), 1 => Just(b'"'), 30 => Just(b'a'), 1 => Just(b'\\')], 0..200),
            from in 0_usize..64,
        ) {
            let from = from.min(bytes.len());
            prop_assert_eq!(plain_end(&bytes, from), one_by_one(&bytes, from));
        }
    }
}
