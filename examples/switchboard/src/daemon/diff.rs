//! [`Diff`]: the changes of an edit, line by line, and as the text of a unified diff.

use std::fmt::Write as _;
use std::time::Duration;

use acolyte_proto::event::{Diff as DiffLine, DiffMarker};
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::text::printable_lines;

/// Lines around a change.
const CONTEXT: usize = 3;
/// The time limit; after it the diff is larger than necessary.
const PATIENCE: Duration = Duration::from_millis(200);

/// The difference between two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The number of new lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The changed lines with some context: each with its number in the old text if it was removed, otherwise in
    /// the new one.
    pub lines: Vec<DiffLine>,
    /// The lines in the unified format.
    hunks: String,
}

impl Diff {
    /// Compares two texts.
    pub fn new(old: &str, new: &str) -> Self {
        let diff = TextDiff::configure()
            .algorithm(Algorithm::Myers)
            .timeout(PATIENCE)
            .diff_lines(old, new);
        let mut found = Self::default();
        for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
            let _ = writeln!(found.hunks, "{}", hunk.header());
            for change in hunk.iter_changes() {
                let (marker, index) = match change.tag() {
                    ChangeTag::Insert => (DiffMarker::Add, change.new_index()),
                    ChangeTag::Delete => (DiffMarker::Remove, change.old_index()),
                    ChangeTag::Equal => (DiffMarker::Context, change.new_index()),
                };
                match marker {
                    DiffMarker::Add => found.added += 1,
                    DiffMarker::Remove => found.removed += 1,
                    DiffMarker::Context => {}
                }
                let text = shown(change.value());
                let _ = writeln!(found.hunks, "{}{text}", change.tag());
                found.lines.push(DiffLine {
                    marker,
                    line_number: index.map_or(1, |index| index as u64 + 1),
                    text: text.into(),
                });
            }
        }
        found
    }

    /// Returns the changes of the file at `path` as a unified diff; empty if there are none.
    pub fn unified(&self, path: &str, is_new: bool) -> String {
        if self.hunks.is_empty() {
            return String::new();
        }
        let before = match is_new {
            true => "/dev/null".to_owned(),
            false => format!("a/{path}"),
        };
        format!("--- {before}\n+++ b/{path}\n{}", self.hunks)
    }
}

/// A CR would begin a line of its own where the diff is shown.
fn shown(line: &str) -> String {
    printable_lines(line.trim_end_matches(['\n', '\r']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(diff: &Diff) -> Vec<String> {
        let line = |line: &DiffLine| {
            let marker = match line.marker {
                DiffMarker::Add => '+',
                DiffMarker::Remove => '-',
                DiffMarker::Context => ' ',
            };
            format!("{marker}{} {}", line.line_number, line.text)
        };
        diff.lines.iter().map(line).collect()
    }

    #[test]
    fn a_change_is_shown_with_its_context() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let diff = Diff::new(&old, &old.replace("10\n", "ten\nand a half\n"));
        assert_eq!((diff.added, diff.removed), (2, 1));
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
        assert_eq!(lines_of(&diff), expected);
    }

    #[test]
    fn a_unified_diff_has_a_header_for_each_place() {
        let old: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n5b\n").replace("\n25\n", "\n");
        let expected = concat!(
            "--- a/n.txt\n+++ b/n.txt\n",
            "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+5b\n 6\n 7\n 8\n",
            "@@ -22,7 +23,6 @@\n 22\n 23\n 24\n-25\n 26\n 27\n 28\n",
        );
        assert_eq!(Diff::new(&old, &new).unified("n.txt", false), expected);
        let made = Diff::new("", "a\nb\n").unified("n.txt", true);
        assert_eq!(
            made,
            "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        let emptied = Diff::new("a\n", "").unified("n.txt", false);
        assert_eq!(emptied, "--- a/n.txt\n+++ b/n.txt\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!(Diff::new("a\n", "a\n").unified("n.txt", false), "");
        let long = Diff::new("", &"x\n".repeat(6_000)).unified("n.txt", true);
        assert_eq!(long.lines().count(), 6_003, "nothing is left out");
    }

    #[test]
    fn equal_texts_have_no_change() {
        assert_eq!(Diff::new("a\n", "a\n"), Diff::default());
        assert_eq!(lines_of(&Diff::new("", "a")), ["+1 a"]);
        assert_eq!(lines_of(&Diff::new("a\r\n", "")), ["-1 a"]);
        assert_eq!(
            lines_of(&Diff::new("", "\ta\r+b\u{202e}")),
            ["+1 \ta", "+2 +b\\u{202e}"]
        );
    }
}
