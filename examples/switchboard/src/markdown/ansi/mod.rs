//! [`render`]: Markdown as lines of a terminal, [`Stream`]: while it grows; [`wrap`] and [`diff`] are for plain
//! text and changes.

mod blocks;
mod diff;
mod stream;
mod table;
mod text;

use unicode_width::UnicodeWidthStr as _;

use self::blocks::Renderer;
use self::text::{Look, Span};
use crate::text::printable_lines;

pub use diff::diff;
pub use stream::Stream;
pub(crate) use stream::{not_returned, visible};

/// What lines may contain besides text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours and other attributes, as SGR sequences. Without them, the marks of
    /// Markdown stay where nothing else shows what they mean: `**`, `` ` ``, `#`.
    pub colour: bool,
}

/// Renders Markdown as lines of at most `width` columns, of 20 or more.
///
/// The text is untrusted: the lines contain no control characters but SGR sequences, and each line resets
/// what it sets. HTML stays text, except for `<br>`. All words of the text are in the lines; lines of code stay
/// as long as they are, so that they can be copied. The address of a link follows its text unless they are the same.
///
/// An empty line follows each block, so the lines of the parts of a text that is split at
/// [`closed`](super::closed) are the lines of the text. For a text that grows see [`Stream`].
pub fn render(text: &str, width: usize, style: Style) -> Vec<String> {
    let mut renderer = Renderer::new(width, style);
    for event in super::events(text) {
        renderer.take(event);
    }
    renderer.into_lines()
}

/// Breaks plain text at words into lines of at most `width` columns. The first one begins with
/// `first_indent`, the others with `indent`; a word that is longer than a line is cut. Control characters
/// in the text are escaped.
pub fn wrap(text: &str, width: usize, first_indent: &str, indent: &str) -> Vec<String> {
    let [first, rest] = [first_indent, indent].map(|indent| width.saturating_sub(indent.width()));
    let span = [Span::new(&printable_lines(text), Look::PLAIN)];
    let rows = text::fold_hanging(&span, first, rest);
    let rows = rows.into_iter().enumerate();
    rows.map(|(number, row)| {
        let indent = if number == 0 { first_indent } else { indent };
        let line = format!("{indent}{}", text::paint(&row, Style::default()));
        line.trim_end().to_owned()
    })
    .collect()
}

#[cfg(test)]
mod tests;
