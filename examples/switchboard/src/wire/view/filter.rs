//! [`Filter`]: which frames somebody wants to see.

use regex::{Regex, RegexBuilder};

use super::Row;

/// What frames have to be: words with a space between them, all of which have to fit.
///
/// | Word | Fits |
/// |---|---|
/// | `kind:chat.*` | frames of this kind, with a star for any characters at the end |
/// | `id:7` | frames of the call with this id |
/// | `dir:c2s`, `dir:s2c` | frames of the client, of the server |
/// | `conn:2` | frames of this connection |
/// | `is:error`, `is:unknown`, `is:call` | what went wrong, what is not wholly known, requests |
/// | anything else | frames with this text, in lower or upper case |
///
/// A minus before a word turns it around.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    terms: Vec<(bool, Term)>,
}

#[derive(Clone, Debug)]
enum Term {
    Kind(String),
    Id(String),
    Dir(String),
    Conn(String),
    Error,
    Unknown,
    Call,
    Text(Regex),
}

impl Filter {
    /// Parses what somebody wrote. There are no wrong filters: what is no filter is a text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let words = text.split_whitespace().take(32);
        let terms = words.filter_map(|word| {
            let (is_wanted, word) = match word.strip_prefix('-').filter(|it| !it.is_empty()) {
                Some(word) => (false, word),
                None => (true, word),
            };
            Some((is_wanted, term(word)?))
        });
        Self {
            terms: terms.collect(),
        }
    }

    /// Returns whether it fits all frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns whether a frame fits.
    #[must_use]
    pub fn fits(&self, row: &Row) -> bool {
        let mut terms = self.terms.iter();
        terms.all(|(is_wanted, term)| term.fits(row) == *is_wanted)
    }
}

fn term(word: &str) -> Option<Term> {
    Some(match word.split_once(':') {
        Some(("kind", kind)) => Term::Kind(kind.to_lowercase()),
        Some(("id", id)) => Term::Id(id.to_owned()),
        Some(("dir", dir)) => Term::Dir(dir.to_owned()),
        Some(("conn", conn)) => Term::Conn(conn.to_owned()),
        Some(("is", "error")) => Term::Error,
        Some(("is", "unknown")) => Term::Unknown,
        Some(("is", "call")) => Term::Call,
        _ => {
            let mut builder = RegexBuilder::new(&regex::escape(word));
            Term::Text(builder.case_insensitive(true).build().ok()?)
        }
    })
}

impl Term {
    fn fits(&self, row: &Row) -> bool {
        let explained = &row.explained;
        match self {
            Self::Kind(kind) => {
                let found = explained.kind.to_lowercase();
                match kind.strip_suffix('*') {
                    Some(start) => found.starts_with(start),
                    None => found == *kind,
                }
            }
            Self::Id(id) => explained.call.as_deref() == Some(id),
            Self::Dir(dir) => row.dir == Some(dir),
            Self::Conn(conn) => row.conn.to_string() == *conn,
            Self::Error => row.problem.is_some(),
            Self::Unknown => row.is_unknown(),
            Self::Call => explained.asks,
            Self::Text(text) => {
                let texts = [&explained.kind, &explained.words, &row.data];
                texts.into_iter().any(|it| text.is_match(it))
                    || row.problem.as_ref().is_some_and(|it| text.is_match(it))
            }
        }
    }
}
