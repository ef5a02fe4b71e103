//! Texts of peers at a terminal: nothing in them controls it.

use std::borrow::Cow;

pub use rpc_core::text::is_control;
use rpc_core::text::visible;

/// How many bytes of a text are looked at together.
const BLOCK: usize = 32;

/// A colour of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// For minor details.
    Dim = 2,
    /// For headings.
    Bold = 1,
    /// Cyan.
    Cyan = 36,
    /// Magenta.
    Magenta = 35,
    /// Yellow.
    Yellow = 33,
    /// Green.
    Green = 32,
    /// Red.
    Red = 31,
    /// Blue.
    Blue = 34,
}

impl Colour {
    /// Returns a text in this colour, followed by a reset.
    #[must_use]
    pub fn paint(self, text: &str) -> String {
        format!("\x1b[{}m{text}\x1b[0m", self.code())
    }

    /// Appends what begins this colour.
    pub fn begin(self, text: &mut String) {
        text.push_str(&format!("\x1b[{}m", self.code()));
    }

    /// Appends what ends any colour.
    pub fn end(text: &mut String) {
        text.push_str("\x1b[0m");
    }

    /// Returns its number in escape sequences.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// Paints a text, if there are colours.
#[must_use]
pub fn paint(colour: bool, with: Colour, text: &str) -> String {
    match colour {
        true => with.paint(text),
        false => text.to_owned(),
    }
}

/// Makes an untrusted text of several lines [`printable`]. Tabs and the ends of lines (LF or CRLF) stay.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    lines_of(text, printable)
}

/// Makes untrusted prose of several lines printable, as [`printable_lines`] and [`printable_prose`] do.
#[must_use]
pub fn printable_prose_lines(text: &str) -> String {
    lines_of(text, printable_prose)
}

/// Makes untrusted text safe to write where nothing shows it, such as a pipe: escapes what controls a terminal, which
/// may be behind it, and leaves what directs and joins letters.
#[must_use]
pub fn piped_lines(text: &str) -> String {
    lines_of(text, |line| {
        let mut piped = String::with_capacity(line.len());
        for c in line.chars() {
            match c.is_control() {
                true => piped.extend(c.escape_default()),
                false => piped.push(c),
            }
        }
        piped.into()
    })
}

fn lines_of(text: &str, printable: fn(&str) -> Cow<'_, str>) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let words = part.strip_suffix("\r\n");
        let words = words.or_else(|| part.strip_suffix(['\n', '\t']));
        let (words, end) = part.split_at(words.unwrap_or(part).len());
        shown.push_str(&printable(words));
        shown.push_str(end);
    }
    shown
}

/// Returns JSON in which the characters that control a terminal or reorder text are escaped, also
/// those that JSON allows.
#[must_use]
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // JSON itself escapes the others.
    let is_odd = |c: char| c >= '\u{7f}' && is_control(c);
    if json.is_ascii() && !json.contains('\u{7f}') || !json.contains(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_odd(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

/// Makes untrusted text safe to show: escapes what controls a terminal or is invisible.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    shown(text, false)
}

/// Makes untrusted prose [`printable`], in which the marks that join or direct letters stay.
#[must_use]
pub fn printable_prose(text: &str) -> Cow<'_, str> {
    shown(text, true)
}

fn shown(text: &str, is_prose: bool) -> Cow<'_, str> {
    // What most text is made of is looked at byte by byte, many together.
    let are_plain = |bytes: &[u8]| {
        let plain = bytes.iter().map(|byte| matches!(byte, b' '..=b'~'));
        plain.fold(true, |all, plain| all & plain)
    };
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    match blocks.iter().all(|block| are_plain(block)) && are_plain(rest) {
        true => Cow::Borrowed(text),
        false => visible(text, is_prose),
    }
}

/// Returns how many there are, like `1 line` or `2 lines`.
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Cuts a text to this many characters, with a mark at the cut.
#[must_use]
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_peer_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c"), r"a\u{1b}[2Jb\u{202e}c");
        let marked = "héllo ✓ \u{200f}شبکه\u{200c}ها 👩\u{200d}🚀";
        assert_eq!(printable_prose(marked), marked);
        let turned = "\u{2067}שלום\u{2069} \u{1b}[2J\n";
        assert_eq!(piped_lines(turned), "\u{2067}שלום\u{2069} \\u{1b}[2J\n");
    }

    #[test]
    fn tabs_and_ends_of_lines_stay_in_a_text_of_lines() {
        let text = "a\tb\r\n\tc\n\r\n";
        assert_eq!(printable_lines(text), text);
        assert_eq!(
            printable_lines("\x1b[2J\r\ta\rb"),
            r"\u{1b}[2J\r".to_owned() + "\ta\\rb"
        );
    }

    #[test]
    fn json_has_no_character_that_controls_a_terminal() {
        let text = "\u{7f}\u{85}\u{9b}2J\u{61c}\u{202e}\u{2028}é😀";
        let json = serde_json::Value::from(text).to_string();
        let escaped = escaped_json(&json);
        assert!(!escaped.contains(is_control), "{escaped:?}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        assert_eq!(escaped_json("\"é\""), "\"é\"");
    }
}
