//! Text that is safe on a terminal.

pub use switchboard_wire::text::{
    Colour, escaped_json, is_control, printable, printable_lines, shortened,
};

/// Returns how many there are, like `1 line` or `2 lines`.
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Paints a text, if there are colours.
pub fn paint(colour: bool, with: Colour, text: &str) -> String {
    match colour {
        true => with.paint(text),
        false => text.to_owned(),
    }
}
