//! Changes to message texts: breaking up bot names in outgoing ones, and completing drive links in
//! incoming ones.

use std::borrow::Cow;

use crate::limits::SANITIZED_NAMES;

/// The default base of drive links.
pub const DEFAULT_DRIVE_BASE: &str = "https://snek.molodetz.nl";

/// How a relative drive link starts in Markdown.
const DRIVE: &str = "(/drive.bin";

/// Inserts a hyphen after the first letter of each bot name, so that no other bot reacts to it:
/// `snek` becomes `s-nek`.
///
/// A name is a whole word in any case, and keeps its case (`Snek` becomes `S-nek`, `pirate` and
/// `snek_bot` stay). Links stay as they are, up to the next white space. The function is
/// idempotent. Pass a whole text, not pieces: a name may be split over two.
#[must_use]
pub fn sanitize_names(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let token_len = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let token = rest.get(..token_len).unwrap_or_default();
        let plain = token.get(..link_start(token)).unwrap_or_default();
        for (start, word) in words(plain) {
            if is_bot_name(word) {
                let cut = at + start + 1;
                out.push_str(text.get(copied..cut).unwrap_or_default());
                out.push('-');
                copied = cut;
            }
        }
        let space = rest.get(token_len..).and_then(|rest| rest.chars().next());
        match space {
            Some(space) => at += token_len + space.len_utf8(),
            None => break,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Completes relative drive links: `(/drive.bin` becomes `(` + `base` + `/drive.bin`, wherever it
/// occurs. A slash at the end of `base` is dropped. The function is idempotent.
#[must_use]
pub fn rewrite_drive_urls<'t>(text: &'t str, base: &str) -> Cow<'t, str> {
    if !text.contains(DRIVE) {
        return Cow::Borrowed(text);
    }
    let link = format!("({}/drive.bin", base.trim_end_matches('/'));
    Cow::Owned(text.replace(DRIVE, &link))
}

/// Returns the start of a link in a text without white space: the scheme before `://`, or a
/// relative drive link; the end of the text if there is none.
fn link_start(token: &str) -> usize {
    let scheme = token.match_indices("://").find_map(|(colon, _)| {
        let before = token.as_bytes().get(..colon).unwrap_or_default();
        let is_of_scheme = |it: &&u8| it.is_ascii_alphanumeric() || b"+.-".contains(it);
        let scheme = before.iter().rev().take_while(is_of_scheme).count();
        (scheme > 0).then(|| colon - scheme)
    });
    let drive = token.find(DRIVE);
    scheme.into_iter().chain(drive).min().unwrap_or(token.len())
}

/// Returns the words of a text and their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// Returns whether a word is a bot name. The names are ASCII, so the first character is one byte.
fn is_bot_name(word: &str) -> bool {
    let mut names = SANITIZED_NAMES.iter();
    names.any(|name| name.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_broken_up_as_whole_words_ignoring_case() {
        for (text, expected) in [
            ("snek", "s-nek"),
            ("Snek, GROK! @lisa", "S-nek, G-ROK! @l-isa"),
            ("snek's ira-snek", "s-nek's i-ra-s-nek"),
            (
                "(thomas)\ngemma\tjoanne snik",
                "(t-homas)\ng-emma\tj-oanne s-nik",
            ),
            ("«snek»é", "«s-nek»é"),
            ("snek.molodetz.nl", "s-nek.molodetz.nl"),
            ("://snek", "://s-nek"),
            ("(://http://snek", "(://http://snek"),
        ] {
            assert_eq!(sanitize_names(text), expected);
        }
    }

    #[test]
    fn other_words_and_links_are_unchanged() {
        for text in [
            "",
            "pirate snekbot snek_bot éira sneké s-nek",
            "https://snek.molodetz.nl/drive.bin/snek.png",
            "[x](https://snek.molodetz.nl/drive.bin)",
            "[x](/drive.bin?user=snek)",
            "ftp://ira:snek@thomas/",
            "snek+x://h snek-x://h snek.x://h",
            "[x](/drive.bin?snek=https://h",
        ] {
            assert!(
                matches!(sanitize_names(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn a_name_before_a_link_is_still_broken_up() {
        assert_eq!(
            sanitize_names("snek(https://snek/)snek snek"),
            "s-nek(https://snek/)snek s-nek"
        );
    }

    #[test]
    fn drive_links_are_completed_anywhere() {
        let base = DEFAULT_DRIVE_BASE;
        assert_eq!(
            rewrite_drive_urls("a (/drive.bin) (/drive.binary", base),
            "a (https://snek.molodetz.nl/drive.bin) (https://snek.molodetz.nl/drive.binary"
        );
        assert_eq!(
            rewrite_drive_urls("(/drive.bin", "http://x/"),
            "(http://x/drive.bin"
        );
        for text in [
            "/drive.bin",
            "( /drive.bin",
            "(https://snek.molodetz.nl/drive.bin",
        ] {
            assert!(
                matches!(rewrite_drive_urls(text, base), Cow::Borrowed(_)),
                "{text}"
            );
        }
    }
}
