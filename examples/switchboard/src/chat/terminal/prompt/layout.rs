//! [`layout`]: a text with line breaks in the rows of a screen, and where its characters stand.

use unicode_width::UnicodeWidthChar as _;

/// The prefix of the rows after a line break.
const NEXT: &str = ". ";

/// The rows of a text.
pub(super) struct Layout {
    /// The rows, with their widths.
    pub(super) rows: Vec<(String, usize)>,
    /// The row and the column of each character, and of the end.
    pub(super) places: Vec<(usize, usize)>,
}

/// Breaks a text into rows, wherever one is full.
pub(super) fn layout(text: &str, columns: usize) -> Layout {
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let (mut row, mut width) = (String::new(), 0);
    for char in text.chars() {
        if char == '\n' {
            places.push((rows.len(), width));
            rows.push((std::mem::replace(&mut row, NEXT.to_owned()), width));
            width = NEXT.len();
            continue;
        }
        // Whatever was pasted: nothing in it moves the cursor.
        let (shown, wide) = match char {
            '\t' => (' ', 1),
            char if char.is_control() => ('?', 1),
            char => (char, char.width().unwrap_or(0)),
        };
        if width + wide > columns {
            rows.push((std::mem::take(&mut row), width));
            width = 0;
        }
        places.push((rows.len(), width));
        row.push(shown);
        width += wide;
    }
    places.push((rows.len(), width));
    rows.push((row, width));
    // A cursor behind a full row is in the next one.
    if let Some(end) = places.last_mut().filter(|(_, column)| *column >= columns) {
        *end = (end.0 + 1, 0);
    }
    Layout { rows, places }
}
