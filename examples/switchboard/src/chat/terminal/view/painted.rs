//! [`wrap_painted`]: breaks lines that have colours already.

use unicode_width::UnicodeWidthChar as _;

use crate::text::escaped_json;

/// What rows after the first one of a line begin with.
const INDENT: &str = "  ";
/// The narrowest screen for which lines are broken.
const NARROWEST: usize = 20;

/// Breaks a line at words. A word longer than a row is cut. Colours (`ESC [ .. m`) take no room, and go on in
/// the next row. JSON stays on one line, so that it can be copied.
pub(super) fn wrap_painted(line: &str, width: usize) -> Vec<String> {
    if width < NARROWEST || line.starts_with('{') {
        return vec![escaped_json(line).into_owned()];
    }
    line.replace('\t', "    ")
        .lines()
        .flat_map(|line| rows(line, width))
        .collect()
}

fn rows(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut columns) = (String::new(), 0);
    // Where the last word begins: in bytes, and in columns.
    let mut word = (0, 0);
    let mut is_colour = false;
    for char in line.chars() {
        is_colour |= char == '\x1b';
        if is_colour {
            is_colour = !char.is_ascii_alphabetic();
            row.push(char);
            continue;
        }
        let wide = char.width().unwrap_or(0);
        while columns + wide > width {
            // The blank at which a row ends is left out.
            let cut = if char == ' ' || word.0 == 0 {
                (row.len(), columns)
            } else {
                word
            };
            let rest = row.split_off(cut.0);
            rows.push(row.trim_end().to_owned());
            row = format!("{INDENT}{rest}");
            columns = INDENT.len() + columns - cut.1;
            word = (0, 0);
        }
        if char == ' ' && !rows.is_empty() && row == INDENT {
            continue;
        }
        row.push(char);
        columns += wide;
        if char == ' ' && !row.trim().is_empty() {
            word = (row.len(), columns);
        }
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::text::Colour;

    fn plain(row: &str) -> String {
        let mut is_colour = false;
        let kept = row.chars().filter(|char| {
            is_colour |= *char == '\x1b';
            let kept = !is_colour;
            is_colour &= !char.is_ascii_alphabetic();
            kept
        });
        kept.collect()
    }

    #[test]
    fn a_painted_line_is_broken_at_words() {
        let taken = Colour::Green.paint("has taken it");
        let rows = wrap_painted(&format!("#1 the client of my notes {taken}, late"), 30);
        let seen: Vec<_> = rows.iter().map(|row| plain(row)).collect();
        assert_eq!(seen, ["#1 the client of my notes has", "  taken it, late"]);
        assert!(rows[0].contains("\x1b[32m"), "{rows:?}");
    }

    #[test]
    fn json_stays_in_one_line() {
        let json = format!(r#"{{"event":"{}"}}"#, "x y ".repeat(20));
        assert_eq!(wrap_painted(&json, 30), [json]);
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_no_word_is_lost(
            words in proptest::collection::vec("[a-z語]{1,40}", 1..12), width in 20_usize..60
        ) {
            let rows = wrap_painted(&words.join(" "), width);
            for row in &rows {
                prop_assert!(row.width() <= width, "{:?}", row);
            }
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&rows.concat()), letters(&words.concat()));
        }
    }
}
