//! [`Table`]: a table in columns that fit, or as one record for each row.

use pulldown_cmark::Alignment;

use super::text::{self, Look, Piece, Span};

/// Between columns, in the rule below the head, and in rules between rows.
const BETWEEN: &str = " │ ";
const CROSS: &str = "─┼─";
/// A column gets narrower than its longest word only if that is longer than this, and never narrower
/// than this, if its cells are longer.
const LONGEST_WORD: usize = 20;
const NARROWEST: usize = 6;

/// A cell: inline text.
type Cell = Vec<Span>;

/// A table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first row is the head.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        let rows = Vec::new();
        Self { alignments, rows }
    }

    /// Begins a row.
    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Calls `put` with each row on the screen, of at most `width` columns.
    pub(super) fn write(&self, width: usize, mut put: impl FnMut(&[Piece<'_>])) {
        match self.widths(width) {
            Some(widths) => self.aligned(&widths, &mut put),
            None => self.records(width, &mut put),
        }
    }

    /// The widths of the columns: as the cells need, or as equal as possible. `None` if words do not fit.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let mut extents = vec![(0, 0); self.alignments.len()];
        for row in &self.rows {
            for (extent, cell) in extents.iter_mut().zip(row) {
                let (line, word) = text::extent(cell);
                *extent = (extent.0.max(line), extent.1.max(word));
            }
        }
        let between = BETWEEN.chars().count() * extents.len().saturating_sub(1);
        let space = width.checked_sub(between)?;
        let with = |limit: usize| {
            let extents = extents.iter();
            extents.map(move |(line, word)| {
                let narrowest = word.min(&LONGEST_WORD).max(line.min(&NARROWEST));
                *line.min(&limit).max(narrowest)
            })
        };
        // Beyond the screen's width, a table has fewer columns than it has words.
        let mut limits = (1..=space).rev();
        let limit = limits.find(|limit| with(*limit).sum::<usize>() <= space)?;
        Some(with(limit).collect())
    }

    fn aligned(&self, widths: &[usize], put: &mut impl FnMut(&[Piece<'_>])) {
        let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
        let rule = Span::new(&rule.join(CROSS), Look::DIM);
        let rule: Vec<_> = rule.pieces().collect();
        let between = Span::new(BETWEEN, Look::DIM);
        let rows: Vec<Vec<_>> = self
            .rows
            .iter()
            .map(|row| {
                let cells = row.iter().zip(widths);
                cells
                    .map(|(cell, width)| text::fold(cell, *width))
                    .collect()
            })
            .collect();
        let height = |cells: &Vec<Vec<_>>| cells.iter().map(Vec::len).max().unwrap_or(0);
        let is_high = rows.iter().skip(1).any(|cells| height(cells) > 1);
        for (number, cells) in rows.iter().enumerate() {
            // Where rows have several lines, it must be seen where each of them ends.
            if number == 1 || (number > 1 && is_high) {
                put(&rule);
            }
            for line in 0..height(cells) {
                let mut row = Vec::new();
                for (column, (width, alignment)) in widths.iter().zip(&self.alignments).enumerate()
                {
                    if column > 0 {
                        row.extend(between.pieces());
                    }
                    let cell = cells.get(column).and_then(|cell| cell.get(line));
                    let cell = cell.map(Vec::as_slice).unwrap_or_default();
                    let room = width.saturating_sub(text::columns(cell));
                    let left = match alignment {
                        Alignment::Right => room,
                        Alignment::Center => room / 2,
                        Alignment::Left | Alignment::None => 0,
                    };
                    row.extend(text::blanks(left));
                    row.extend(cell);
                    row.extend(text::blanks(room - left));
                }
                put(text::trim_end(&row));
            }
        }
    }

    /// Writes `head: cell` for each cell, with an empty line between rows.
    fn records(&self, width: usize, put: &mut impl FnMut(&[Piece<'_>])) {
        let Some((head, rows)) = self.rows.split_first() else {
            return;
        };
        if rows.is_empty() {
            for cell in head {
                text::fold(cell, width).iter().for_each(|row| put(row));
            }
        }
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                put(&[]);
            }
            for (name, cell) in head.iter().zip(row) {
                let mut record = name.clone();
                if !name.is_empty() {
                    record.push(Span::new(": ", Look::BOLD));
                }
                record.extend_from_slice(cell);
                text::fold(&record, width).iter().for_each(|row| put(row));
            }
        }
    }
}
