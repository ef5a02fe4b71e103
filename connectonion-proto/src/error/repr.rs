//! Values as Python prints them, for the words of the known hosts about unknown types.

use std::fmt::Write;

use rpc_core::Json;

/// The number of characters shown of a peer's text.
const MOST: usize = 64;

/// Returns a text in quotation marks. Invisible characters are escaped, and a long text is cut.
pub(super) fn text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut shown = String::from(quote);
    for letter in text.chars().take(MOST) {
        match letter {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter if letter == quote => {
                shown.push('\\');
                shown.push(letter);
            }
            letter if is_hidden(letter) => escape(&mut shown, letter),
            letter => shown.push(letter),
        }
    }
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown.push(quote);
    shown
}

/// Returns whether a character must not reach a terminal: it changes the look of others, or is
/// invisible.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || letter.is_whitespace() && letter != ' '
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn escape(to: &mut String, letter: char) {
    let code = u32::from(letter);
    // Writing to a text never fails.
    let _ = match code {
        0..=0xff => write!(to, "\\x{code:02x}"),
        0x100..=0xffff => write!(to, "\\u{code:04x}"),
        _ => write!(to, "\\U{code:08x}"),
    };
}

/// Returns a value as Python prints it, or as JSON; a long one is cut.
pub(super) fn value(value: &Json) -> String {
    match value.get() {
        "null" => "None".to_owned(),
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        json => match value.as_str() {
            Some(words) => text(&words),
            None => json
                .chars()
                .map(|letter| if is_hidden(letter) { ' ' } else { letter })
                .take(MOST)
                .collect(),
        },
    }
}
