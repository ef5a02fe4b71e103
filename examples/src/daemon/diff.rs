//! [`Diff`]: the changes of an edit, line by line.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Lines around a change.
const CONTEXT: usize = 3;
/// Most lines to keep; a rewritten file has many.
const MAX_LINES: usize = 500;
/// The longest line to keep, in characters.
const MAX_LINE: usize = 2_000;
/// The time limit; after it the diff is larger than necessary.
const PATIENCE: Duration = Duration::from_millis(200);

/// The difference between two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The number of new lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The changed lines with some context, at most 500.
    pub lines: Vec<Line>,
    /// How many lines are omitted.
    pub left_out: usize,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The kind of the line.
    pub marker: Marker,
    /// Its number, from 1: in the old text if it was removed, otherwise in the new one.
    pub number: usize,
    /// Its text, without the line end, cut to a length.
    pub text: String,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Marker {
    /// A new line.
    Add,
    /// A removed line.
    Remove,
    /// An unchanged line near a change.
    Context,
}

impl Diff {
    /// Compares two texts.
    #[must_use]
    pub fn new(old: &str, new: &str) -> Self {
        let diff = TextDiff::configure()
            .algorithm(Algorithm::Myers)
            .timeout(PATIENCE)
            .diff_lines(old, new);
        let mut found = Self::default();
        for operation in diff.grouped_ops(CONTEXT).iter().flatten() {
            for change in diff.iter_changes(operation) {
                let (marker, index) = match change.tag() {
                    ChangeTag::Insert => (Marker::Add, change.new_index()),
                    ChangeTag::Delete => (Marker::Remove, change.old_index()),
                    ChangeTag::Equal => (Marker::Context, change.new_index()),
                };
                match marker {
                    Marker::Add => found.added += 1,
                    Marker::Remove => found.removed += 1,
                    Marker::Context => {}
                }
                if found.lines.len() == MAX_LINES {
                    found.left_out += 1;
                    continue;
                }
                found.lines.push(Line {
                    marker,
                    number: index.map_or(1, |index| index + 1),
                    text: shortened(change.value().trim_end_matches(['\n', '\r'])),
                });
            }
        }
        found
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(MAX_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(diff: &Diff) -> Vec<String> {
        let line = |line: &Line| {
            let marker = match line.marker {
                Marker::Add => '+',
                Marker::Remove => '-',
                Marker::Context => ' ',
            };
            format!("{marker}{} {}", line.number, line.text)
        };
        diff.lines.iter().map(line).collect()
    }

    #[test]
    fn a_change_is_told_with_what_stands_around_it() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let diff = Diff::new(&old, &old.replace("10\n", "ten\nand a half\n"));
        assert_eq!((diff.added, diff.removed, diff.left_out), (2, 1, 0));
        let expected = [
            " 7 7",
            " 8 8",
            " 9 9",
            "-10 10",
            "+10 ten",
            "+11 and a half",
            " 12 11",
            " 13 12",
            " 14 13",
        ];
        assert_eq!(told(&diff), expected);
    }

    #[test]
    fn nothing_is_no_change_and_everything_is_cut() {
        assert_eq!(Diff::new("a\n", "a\n"), Diff::default());
        assert_eq!(told(&Diff::new("", "a")), ["+1 a"]);
        assert_eq!(told(&Diff::new("a\r\n", "")), ["-1 a"]);
        let diff = Diff::new("", &"x\n".repeat(600));
        assert_eq!(
            (diff.added, diff.lines.len(), diff.left_out),
            (600, 500, 100)
        );
        let diff = Diff::new("", &"x".repeat(9_000));
        assert_eq!(told(&diff), [format!("+1 {}", "x".repeat(2_000))]);
    }
}
