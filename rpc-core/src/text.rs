//! [`beginning`]: a text cut to size. [`is_control`]: what untrusted text must not do where it is shown. [`hex`]:
//! bytes as text.

/// Returns the beginning of a text: as many whole characters as fit into `max` bytes.
///
/// ```
/// assert_eq!(rpc_core::text::beginning("héllo", 2), "h");
/// ```
#[must_use]
pub fn beginning(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    // A character has four bytes at most, and a text begins with one, so this ends.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns whether a character controls a terminal, ends a line, or reorders what is around it.
///
/// ```
/// assert!("\u{1b}\u{9b}\n\u{2028}\u{202e}".chars().all(rpc_core::text::is_control));
/// assert!(!"héllo 👩‍🚀".contains(rpc_core::text::is_control));
/// ```
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns bytes as hexadecimal digits in lower case.
///
/// ```
/// assert_eq!(rpc_core::text::hex(&[0, 255, 26]), "00ff1a");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = halves.filter_map(|half| char::from_digit(half.into(), 16));
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_keeps_characters_whole() {
        let text = "aé😀";
        for (max, kept) in [
            (0, 0),
            (1, 1),
            (2, 1),
            (3, 3),
            (6, 3),
            (7, 7),
            (usize::MAX, 7),
        ] {
            assert_eq!(beginning(text, max), &text[..kept], "{max}");
        }
        assert_eq!(beginning("", 5), "");
    }
}
