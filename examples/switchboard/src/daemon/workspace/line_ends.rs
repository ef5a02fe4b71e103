//! [`Lines`]: finds and replaces texts with any line ends; a file keeps its line ends.

use std::borrow::Cow;

/// A text in which every line ends with `
/// `, and its source.
pub(super) struct Lines<'a> {
    source: &'a str,
    text: String,
    /// The positions of line ends in the text.
    ends: Vec<usize>,
    /// The positions of those that are `\r
    /// ` in the source.
    pairs: Vec<usize>,
}

/// Returns a text with `
/// ` as its only line end.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        true => text.replace("\r\n", "\n").into(),
        false => text.into(),
    }
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let mut lines = Self {
            source,
            text: String::with_capacity(source.len()),
            ends: Vec::new(),
            pairs: Vec::new(),
        };
        for line in source.split_inclusive('\n') {
            let Some(bare) = line.strip_suffix('\n') else {
                lines.text.push_str(line);
                break;
            };
            let paired = bare.strip_suffix('\r');
            lines.text.push_str(paired.unwrap_or(bare));
            let end = lines.text.len();
            lines.ends.push(end);
            lines.pairs.extend(paired.map(|_| end));
            lines.text.push('\n');
        }
        lines
    }

    /// Returns how often a [plain](plain) text occurs.
    pub(super) fn count(&self, find: &str) -> usize {
        self.text.matches(find).count()
    }

    /// Returns the source with `find`, which is [plain](plain), replaced by `put`. New lines end like
    /// those that they replace, otherwise like the nearest one; in a text of one line, like those of `put`.
    pub(super) fn replace(&self, find: &str, put: &str) -> String {
        let end = if put.contains("\r\n") { "\r\n" } else { "\n" };
        let put = &*plain(put);
        // What both have in common is not touched.
        let before = common(find.chars().zip(put.chars()));
        let rest = |text: &'_ str| text.len() - before;
        let shorter = rest(find).min(rest(put));
        let mut after = 0;
        for (one, other) in find.chars().rev().zip(put.chars().rev()) {
            if one != other || after + one.len_utf8() > shorter {
                break;
            }
            after += one.len_utf8();
        }
        let put = put.get(before..put.len() - after).unwrap_or_default();
        let mut new = String::with_capacity(self.source.len());
        let mut done = 0;
        for (at, _) in self.text.match_indices(find) {
            let place = (at + before, at + find.len() - after);
            let kept = self.source.get(done..self.in_source(place.0));
            new.push_str(kept.unwrap_or_default());
            self.write(&mut new, put, place, end);
            done = self.in_source(place.1);
        }
        new.push_str(self.source.get(done..).unwrap_or_default());
        new
    }

    fn write(&self, new: &mut String, put: &str, place: (usize, usize), end: &str) {
        let first = self.ends.partition_point(|at| *at < place.0);
        let behind = self.ends.partition_point(|at| *at < place.1);
        let last = behind.saturating_sub(1).max(first);
        for (number, line) in put.split('\n').enumerate() {
            if let Some(number) = number.checked_sub(1) {
                let nearest = (first + number).min(last);
                let nearest = nearest.min(self.ends.len().saturating_sub(1));
                new.push_str(match self.ends.get(nearest) {
                    Some(at) if self.pairs.binary_search(at).is_ok() => "\r\n",
                    Some(_) => "\n",
                    None => end,
                });
            }
            new.push_str(line);
        }
    }

    /// Converts a position in the text to one in the source.
    fn in_source(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|pair| *pair < at)
    }
}

/// Returns how many bytes two texts have in common at this end.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    let same = pairs.take_while(|(one, other)| one == other);
    same.map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(source: &str, find: &str, put: &str) -> String {
        Lines::new(source).replace(&plain(find), &plain(put))
    }

    #[test]
    fn new_lines_end_as_those_that_they_replace() {
        for (source, find, put, expected) in [
            ("a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\n", "A\r\nB\r\nc\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\n"),
            ("a\r\nb\r\n", "b\n", "b\nc\nd\n", "a\r\nb\r\nc\r\nd\r\n"),
            ("a\r\nb\r\n", "a\nb\n", "", ""),
            ("a\r\nb\r\n", "a\n", "", "b\r\n"),
            ("a\r\nb", "\nb", "", "a"),
            ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
            ("a\r\nb", "a", "0\na", "0\r\na\r\nb"),
            // Mixed ones: each line keeps its own.
            ("a\r\nb\nc\r\n", "a\nb\nc\n", "A\nB\nC\n", "A\r\nB\nC\r\n"),
            (
                "a\nb\r\nc\n",
                "a\nb\nc\n",
                "a\nx\nb\nc\n",
                "a\nx\r\nb\r\nc\n",
            ),
            ("a\nb\r\nc\n", "c", "c\nd", "a\nb\r\nc\nd\n"),
            // Lone ones are text.
            ("a\rb\r\nc\r\r\n", "b\nc", "d\ne", "a\rd\r\ne\r\r\n"),
            // Files of other systems stay what they are, too.
            ("a\nb\n", "a\r\n", "A\r\nx\r\n", "A\nx\nb\n"),
            ("\u{feff}a\r\nb", "a\nb", "A\nb", "\u{feff}A\r\nb"),
            ("a", "a", "b\nc", "b\nc"),
            ("é\r\nü\r\n", "é\nü", "è\nü", "è\r\nü\r\n"),
            ("aaa\r\n", "aa", "aaa", "aaaa\r\n"),
        ] {
            assert_eq!(
                replaced(source, find, put),
                expected,
                "{find:?} in {source:?}"
            );
        }
    }

    #[test]
    fn every_place_is_replaced() {
        let lines = Lines::new("x\r\ny\nx\r\ny\r\n");
        assert_eq!(lines.count("x\ny"), 2);
        assert_eq!(
            lines.replace("x\ny", "1\n2\n3"),
            "1\r\n2\r\n3\n1\r\n2\r\n3\r\n"
        );
    }

    #[test]
    fn uniform_line_ends_make_it_an_ordinary_replacement() {
        let letters = ["a", "b", "\n", "ab\n", "\nb", "é", ""];
        let texts = || {
            letters
                .iter()
                .flat_map(|one| letters.iter().map(move |two| format!("{one}{two}")))
        };
        for (find, put) in texts().flat_map(|find| texts().map(move |put| (find.clone(), put))) {
            for source in ["ab\nab\n", "a\nb", "\n\n", "éa\n\néa\nb", "ba"] {
                if find.is_empty() || !source.contains('\n') {
                    continue;
                }
                let expected = source.replace(&find, &put);
                assert_eq!(replaced(source, &find, &put), expected);
                let (source, expected) =
                    (source.replace('\n', "\r\n"), expected.replace('\n', "\r\n"));
                assert_eq!(
                    replaced(&source, &find, &put),
                    expected,
                    "{find:?} {put:?} in {source:?}"
                );
            }
        }
    }
}
