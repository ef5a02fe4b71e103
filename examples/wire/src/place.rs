//! [`place`]: where in a frame something is wrong.

use unicode_width::UnicodeWidthStr as _;

use crate::text::printable;

/// How much of a frame stands before and behind the place of an error, in characters.
const REACH: (usize, usize) = (60, 40);

/// Returns the part of a text around a byte, and the column of the byte in it. Of secrets, only the
/// punctuation is shown.
pub(crate) fn place(text: &str, at: usize, is_secret: bool) -> (String, usize) {
    let show = |part: &str| match is_secret {
        true => part.chars().map(mask).collect(),
        false => printable(part).into_owned(),
    };
    let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
    let mut indices = before.char_indices().rev();
    let start = indices.nth(REACH.0 - 1).map_or(0, |(at, _)| at);
    let mut indices = behind.char_indices();
    let end = indices.nth(REACH.1).map_or(behind.len(), |(at, _)| at);
    let dots = if start > 0 { "…" } else { "" };
    let before = format!("{dots}{}", show(before.get(start..).unwrap_or_default()));
    let column = before.width();
    let behind = show(behind.get(..end).unwrap_or_default());
    (format!("{before}{behind}"), column)
}

fn mask(c: char) -> char {
    match c {
        '{' | '}' | '[' | ']' | ':' | ',' | '"' => c,
        _ => '·',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_error() {
        assert_eq!(place("abc", 1, false), ("abc".to_owned(), 1));
        assert_eq!(place("日本{", 6, false), ("日本{".to_owned(), 4));
        assert_eq!(place("{\"k\":1", 5, true), ("{\"·\":·".to_owned(), 5));
        let (text, column) = place(&"x".repeat(500), 300, false);
        assert_eq!((text.chars().count(), column), (101, 61));
        assert_eq!(place("a\x1b", 2, false), ("a\\u{1b}".to_owned(), 7));
    }
}
