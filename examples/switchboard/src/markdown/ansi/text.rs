//! [`Span`]: styled text, broken into rows of a width and written with SGR sequences.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Style;
use crate::text::{Colour, printable, printable_prose_lines};

/// Characters that no row begins with, and that none ends in, where rows break between wide characters.
const NO_BREAK_BEFORE: &str = ",.;:!?)]}%’”…、。，．：；！？）」』】〉》〕ー々";
const NO_BREAK_AFTER: &str = "([{‘“（「『【〈《〔";

/// The distance of tab stops in code, in columns.
const TAB: usize = 4;

/// How text looks: a colour, and the attributes of SGR (bold, italic...).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Bit `n` is parameter `n` of the sequence.
    attributes: u16,
    colour: Option<Colour>,
}

impl Look {
    pub(super) const PLAIN: Self = Self::attribute(0);
    pub(super) const BOLD: Self = Self::attribute(1 << 1);
    pub(super) const DIM: Self = Self::attribute(1 << 2);
    pub(super) const ITALIC: Self = Self::attribute(1 << 3);
    pub(super) const UNDERLINE: Self = Self::attribute(1 << 4);
    pub(super) const STRIKE: Self = Self::attribute(1 << 9);

    const fn attribute(attributes: u16) -> Self {
        Self {
            attributes,
            colour: None,
        }
    }

    pub(super) const fn colour(colour: Colour) -> Self {
        Self {
            attributes: 0,
            colour: Some(colour),
        }
    }

    /// This look, and what the other one adds or changes.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            attributes: self.attributes | other.attributes,
            colour: other.colour.or(self.colour),
        }
    }

    fn codes(self) -> String {
        let attributes = (1..=9).filter(|bit| self.attributes & (1 << bit) != 0);
        let codes = attributes.map(|code: u16| code.to_string());
        let colour = self.colour.map(|colour| colour.code().to_string());
        codes.chain(colour).collect::<Vec<_>>().join(";")
    }
}

/// A text with one look. `\n` in it ends a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    text: String,
    look: Look,
}

impl Span {
    /// Takes untrusted prose: what controls a terminal is escaped, a tab is a space.
    pub(super) fn new(text: &str, look: Look) -> Self {
        let text = printable_prose_lines(&text.replace('\t', " ").replace("\r\n", "\n"));
        Self { text, look }
    }

    /// Takes untrusted text of one line of code that begins in this column: a tab goes to a multiple of 4.
    pub(super) fn code(text: &str, column: usize, look: Look) -> Self {
        let mut spaced = String::new();
        for part in text.split_inclusive('\t') {
            let word = part.trim_end_matches(['\t', '\r']);
            spaced.push_str(&printable(word));
            if part.ends_with('\t') {
                let column = column + spaced.width();
                spaced.push_str(&" ".repeat(TAB - column % TAB));
            }
        }
        Self::new(&spaced, look)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The characters, as people see them, with their widths.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let graphemes = self.text.graphemes(true);
        graphemes.map(|text| Piece::new(text, self.look))
    }
}

/// A character as people see it, which may be several of Unicode's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    text: &'a str,
    look: Look,
    width: usize,
}

impl<'a> Piece<'a> {
    fn new(text: &'a str, look: Look) -> Self {
        // Terminals disagree about the width of joined emoji: the larger one never overflows.
        let apart = text.chars().filter_map(char::width).sum();
        let width = text.width().max(apart);
        Self { text, look, width }
    }

    pub(super) const fn is_newline(&self) -> bool {
        matches!(self.text.as_bytes(), b"\n")
    }

    const fn is_space(&self) -> bool {
        matches!(self.text.as_bytes(), b" ")
    }

    /// Whether a row may end before this piece, which follows another one without a space.
    fn may_follow_break(&self, before: &Self) -> bool {
        (self.width > 1 || before.width > 1)
            && !self.text.starts_with(|c| NO_BREAK_BEFORE.contains(c))
            && !before.text.ends_with(|c| NO_BREAK_AFTER.contains(c))
    }
}

/// Returns this many blanks.
pub(super) fn blanks<'a>(count: usize) -> impl Iterator<Item = Piece<'a>> {
    std::iter::repeat_n(Piece::new(" ", Look::PLAIN), count)
}

/// Returns the columns that a text takes in a terminal.
pub(super) fn columns(pieces: &[Piece<'_>]) -> usize {
    pieces.iter().map(|piece| piece.width).sum()
}

/// Returns the columns that spans take without line breaks, and those of the longest part that is
/// not broken.
pub(super) fn extent(spans: &[Span]) -> (usize, usize) {
    let (mut line, mut word) = (0, 0);
    let mut longest = (0, 0);
    let mut last: Option<Piece<'_>> = None;
    for piece in spans.iter().flat_map(Span::pieces) {
        if piece.is_newline() {
            (line, word) = (0, 0);
        } else {
            line += piece.width;
            let breaks = last.is_none_or(|last| piece.may_follow_break(&last));
            word = match (piece.is_space(), breaks) {
                (true, _) => 0,
                (false, true) => piece.width,
                (false, false) => word + piece.width,
            };
        }
        longest = (longest.0.max(line), longest.1.max(word));
        last = Some(piece);
    }
    longest
}

/// Breaks spans into rows of at most `width` columns, at words. A word that is longer than a row is cut.
pub(super) fn fold(spans: &[Span], width: usize) -> Vec<Vec<Piece<'_>>> {
    fold_hanging(spans, width, width)
}

/// Breaks spans like [`fold`]; the first row has another width than the rest.
pub(super) fn fold_hanging(spans: &[Span], first: usize, rest: usize) -> Vec<Vec<Piece<'_>>> {
    let mut folder = Folder {
        width: first.max(1),
        rest: rest.max(1),
        ..Folder::default()
    };
    for piece in spans.iter().flat_map(Span::pieces) {
        if piece.is_newline() {
            folder.end_word();
            folder.end_row();
        } else if piece.is_space() {
            folder.end_word();
            folder.space.push(piece);
        } else {
            if let Some(last) = folder.word.last()
                && piece.may_follow_break(last)
            {
                folder.end_word();
            }
            folder.word.push(piece);
        }
    }
    folder.end_word();
    if !folder.row.is_empty() || folder.rows.is_empty() {
        folder.end_row();
    }
    folder.rows
}

/// Cuts pieces into rows of at most `width` columns, wherever that is.
pub(super) fn cut<'a>(
    pieces: impl IntoIterator<Item = Piece<'a>>,
    width: usize,
) -> Vec<Vec<Piece<'a>>> {
    let mut rows = vec![Vec::new()];
    let mut used = 0;
    for piece in pieces {
        if used > 0 && used + piece.width > width {
            rows.push(Vec::new());
            used = 0;
        }
        used += piece.width;
        if let Some(row) = rows.last_mut() {
            row.push(piece);
        }
    }
    rows
}

#[derive(Debug, Default)]
struct Folder<'a> {
    /// The width of the row, and of the rows after it.
    width: usize,
    rest: usize,
    rows: Vec<Vec<Piece<'a>>>,
    row: Vec<Piece<'a>>,
    /// The columns of `row`.
    used: usize,
    /// The spaces between the row and the word, which vanish where the row breaks.
    space: Vec<Piece<'a>>,
    word: Vec<Piece<'a>>,
}

impl Folder<'_> {
    fn end_word(&mut self) {
        let word = columns(&self.word);
        if self.word.is_empty() {
            return;
        }
        if self.used + self.space.len() + word > self.width {
            if self.used > 0 {
                self.end_row();
            }
            self.space.clear();
        }
        self.used += self.space.len();
        self.row.append(&mut self.space);
        if word <= self.width {
            self.used += word;
            self.row.append(&mut self.word);
            return;
        }
        let mut rows = cut(std::mem::take(&mut self.word), self.width.min(self.rest));
        self.width = self.rest;
        self.row = rows.pop().unwrap_or_default();
        self.used = columns(&self.row);
        self.rows.append(&mut rows);
    }

    fn end_row(&mut self) {
        self.space.clear();
        self.used = 0;
        self.width = self.rest;
        self.rows.push(std::mem::take(&mut self.row));
    }
}

/// Returns a row without the blanks at its end.
pub(super) fn trim_end<'r, 'a>(row: &'r [Piece<'a>]) -> &'r [Piece<'a>] {
    let end = row.iter().rposition(|piece| !piece.is_space());
    row.get(..end.map_or(0, |end| end + 1)).unwrap_or_default()
}

/// Writes a row. Each look is reset where it ends.
pub(super) fn paint(row: &[Piece<'_>], style: Style) -> String {
    let mut line = String::new();
    for run in row.chunk_by(|one, next| one.look == next.look) {
        let look = run.first().map(|piece| piece.look).unwrap_or_default();
        let text = run.iter().map(|piece| piece.text);
        if style.colour && look != Look::PLAIN {
            let text: String = text.collect();
            let _ = write!(line, "\x1b[{}m{text}\x1b[0m", look.codes());
        } else {
            line.extend(text);
        }
    }
    line
}
