//! [`beginning`]: a text cut to size.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_kept_whole_or_not_at_all() {
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
