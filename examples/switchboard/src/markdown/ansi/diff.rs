//! [`diff`]: the lines of a unified diff.

use super::Style;
use super::text::{self, Look, Span};
use crate::text::Colour;

/// What a line begins with that continues the one before: it must not look like a line of the file.
const CONTINUED: &str = "↳";

/// Renders a unified diff as lines of at most `width` columns: added lines green, removed ones red.
/// Lines keep their `+`, `-` or blank; a long line continues in rows that begin with `↳`. Control
/// characters are escaped.
pub fn diff(unified: &str, width: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let mut in_hunk = false;
    for line in unified.lines() {
        in_hunk |= line.starts_with("@@");
        let is_header = !in_hunk && (line.starts_with("--- ") || line.starts_with("+++ "));
        let look = match line.as_bytes().first() {
            _ if is_header => Look::BOLD,
            Some(b'+') => Look::colour(Colour::Green),
            Some(b'-') => Look::colour(Colour::Red),
            Some(b'@') => Look::colour(Colour::Cyan),
            Some(b'\\') => Look::DIM,
            _ => Look::PLAIN,
        };
        let line = Span::code(line, 0, look);
        let mut rows = text::cut(line.pieces(), width.saturating_sub(1)).into_iter();
        let first = rows.next().unwrap_or_default();
        lines.push(text::paint(&first, style));
        let mark = Span::new(CONTINUED, Look::DIM);
        for row in rows {
            let row: Vec<_> = mark.pieces().chain(row).collect();
            lines.push(text::paint(&row, style));
        }
    }
    lines
}
