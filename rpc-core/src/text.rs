//! [`beginning`]: a text cut to size. [`visible`]: what untrusted text must not do where it is shown. [`hex`]: bytes as
//! text.

use std::borrow::Cow;

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

/// Returns whether a character has no picture of its own: what Unicode calls ignorable by default, and fillers.
///
/// ```
/// assert!("\u{ad}\u{200b}\u{3164}\u{fe0f}\u{e0041}".chars().all(rpc_core::text::is_invisible));
/// assert!(!"a é\u{301} \u{a0}👩".contains(rpc_core::text::is_invisible));
/// ```
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns a text in which what [controls](is_control) the screen or is [invisible](is_invisible) is escaped. What
/// makes a picture of an emoji stays, and in prose also the marks that join letters, or give their direction.
///
/// ```
/// use rpc_core::text::visible;
///
/// assert_eq!(visible("rm\u{200b} a\u{200d}b \u{1b}[2J", false), r"rm\u{200b} a\u{200d}b \u{1b}[2J");
/// assert_eq!(visible("می\u{200c}خواهم\u{202e}", true), "می\u{200c}خواهم\\u{202e}");
/// assert_eq!(visible("👩\u{200d}🚀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}", false), "👩\u{200d}🚀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}");
/// ```
#[must_use]
pub fn visible(text: &str, is_prose: bool) -> Cow<'_, str> {
    let (mut shown, mut done, mut before) = (String::new(), 0, ' ');
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, after)| *after);
        let is_part = match c {
            '\u{fe0e}' | '\u{fe0f}' => is_emoji(before) || after == '\u{20e3}',
            '\u{200d}' if is_emoji(after) => is_emoji(before) || before == '\u{fe0f}',
            _ => false,
        };
        let joins = is_prose
            && matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200f}');
        if (is_control(c) || is_invisible(c)) && !is_part && !joins {
            shown.push_str(text.get(done..at).unwrap_or_default());
            shown.extend(c.escape_default());
            done = at + c.len_utf8();
        }
        before = c;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(done..).unwrap_or_default());
    shown.into()
}

/// Returns whether a character is in one of the blocks that emoji are made of.
const fn is_emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
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
    fn a_mark_stays_only_where_it_makes_an_emoji() {
        for text in [
            "a\u{fe0f}",
            "😀\u{fe0f}\u{fe0f}",
            "👩\u{200d}a",
            "a\u{200d}👩",
            "🏴\u{e0067}",
            "\u{3164}",
        ] {
            assert!(visible(text, false).contains("\\u{"), "{text:?}");
        }
        for text in [
            "❤\u{fe0f}\u{200d}🔥",
            "👨🏽\u{200d}💻",
            "#\u{fe0f}\u{20e3}",
            "ℹ\u{fe0f}",
            "é",
        ] {
            assert_eq!(visible(text, false), text);
        }
    }

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
