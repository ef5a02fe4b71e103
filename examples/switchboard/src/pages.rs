//! [`Pages`]: what a question is about, page by page if it is long, so that nobody agrees to what was not shown.

use crate::markdown::fenced;

/// Most rows of a page, and its bytes, unless one row has more.
const PAGE: usize = 200;
const PAGE_BYTES: usize = 24 * 1024;
/// The longest row, in characters: what is longer goes on in the next one, behind a mark.
const MAX_ROW: usize = 1_000;
const GOES_ON: char = '…';

/// A text that is agreed to.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    about: String,
    language: &'static str,
    rows: Vec<String>,
    /// How many of them were shown.
    read: usize,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// The next page is wanted, or has to be shown first.
    More,
    /// The number of lines is known: it is agreed to.
    Counted,
    /// Something else.
    Other,
}

impl Pages {
    /// Creates the pages of a text, with some words of Markdown about it.
    pub(crate) fn new(about: String, language: &'static str, text: &str) -> Self {
        let mut rows = Vec::new();
        for line in text.lines() {
            let line: Vec<_> = line.chars().collect();
            rows.push(line.iter().take(MAX_ROW).collect());
            let more = line.chunks(MAX_ROW).skip(1);
            rows.extend(more.map(|row| [GOES_ON].iter().chain(row).collect()));
        }
        let mut pages = Self {
            about,
            language,
            rows,
            read: 0,
        };
        if pages.page() == pages.rows.len() {
            pages.read = pages.rows.len();
        }
        pages
    }

    const fn is_read(&self) -> bool {
        self.read == self.rows.len()
    }

    /// Returns all of it, or what it would take to read that.
    pub(crate) fn question(&self) -> String {
        let (about, rows) = (&self.about, self.rows.len());
        match self.is_read() {
            true => format!(
                "{about}:\n\n{}",
                fenced(self.language, &self.rows.join("\n"))
            ),
            false => format!(
                "{about}. It has {rows} lines: 'd' shows them page by page; 'yes' counts after the last page, or with \
                 their number: 'yes {rows}'."
            ),
        }
    }

    /// Returns the row that the next page ends before.
    fn page(&self) -> usize {
        let mut bytes = 0;
        let rows = self.rows.iter().skip(self.read).take(PAGE);
        let rows = rows.take_while(|row| {
            bytes += row.len();
            bytes <= PAGE_BYTES
        });
        (self.read + rows.count().max(1)).min(self.rows.len())
    }

    /// Returns the next page; the first one again after the last.
    pub(crate) fn turn(&mut self) -> String {
        let from = if self.is_read() { 0 } else { self.read };
        self.read = from;
        self.read = self.page();
        let page = self.rows.get(from..self.read).unwrap_or_default();
        let (about, to, rows) = (&self.about, self.read, self.rows.len());
        let next = match self.is_read() {
            true => "That was all.",
            false => "'d' shows more.",
        };
        let page = fenced(self.language, &page.join("\n"));
        format!(
            "{about}, lines {} to {to} of {rows}:\n\n{page}\n\n{next}",
            from + 1
        )
    }

    /// Returns what an answer in lower case means: nothing is agreed to before it was read, or counted.
    pub(crate) fn meant(&self, answer: &str) -> Meant {
        let number = answer
            .strip_prefix("yes ")
            .and_then(|it| it.trim().parse().ok());
        match answer {
            "d" => Meant::More,
            "yes" | "y" | "always" | "a" if !self.is_read() => Meant::More,
            _ if number == Some(self.rows.len()) => Meant::Counted,
            _ if number.is_some() && !self.is_read() => Meant::More,
            _ => Meant::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_agreed_to_once_it_was_read_or_counted() {
        let lines: String = (0..450).map(|line| format!("line {line}\n")).collect();
        let text = lines + &"x".repeat(70_000);
        let mut pages = Pages::new("A change".to_owned(), "diff", &text);
        assert_eq!(pages.rows.len(), 520);
        assert!(pages.question().starts_with("A change. It has 520 lines"));
        assert_eq!(pages.meant("yes 520"), Meant::Counted);
        let mut shown = String::new();
        while !pages.is_read() {
            for text in ["yes", "always", "d", "yes 521"] {
                assert_eq!(pages.meant(text), Meant::More);
            }
            let page = pages.turn();
            assert!(page.len() < 2 * PAGE_BYTES, "{}", page.len());
            shown.push_str(&page);
        }
        assert!(shown.contains("\nline 0\n") && shown.contains("\nline 449\n"));
        assert_eq!(shown.matches('x').count(), 70_000);
        assert_eq!(pages.meant("yes"), Meant::Other);
        assert!(pages.turn().contains("\nline 0\n"), "it can be read again");
    }
}
