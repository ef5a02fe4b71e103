//! [`redact`]: keeps keys and addresses out of the texts of providers.

use rpc_core::Secret;

/// Removes secrets from a text: providers repeat an unknown key, and proxies the address. A short
/// text, or one within a word, is not a secret but part of the message.
pub(super) fn redact(private: &[Secret], text: &str) -> String {
    const HIDDEN: &str = "***";
    /// The shortest text to treat as a secret.
    const MIN: usize = 8;
    let private = private.iter().map(|private| private.expose().as_str());
    let private: Vec<_> = private.filter(|private| private.len() >= MIN).collect();
    private.iter().fold(text.to_owned(), |text, private| {
        let mut out = String::new();
        let mut rest = 0;
        for (at, _) in text.match_indices(private) {
            if is_word(&text, at, at + private.len()) {
                out.push_str(text.get(rest..at).unwrap_or_default());
                out.push_str(HIDDEN);
                rest = at + private.len();
            }
        }
        out.push_str(text.get(rest..).unwrap_or_default());
        out
    })
}

/// Returns whether no letter or digit comes directly before or after this part of a text.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let part = text.get(start..end).unwrap_or_default();
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let goes_on = |outside: Option<char>, inside: Option<char>| {
        outside.is_some_and(char::is_alphanumeric) && inside.is_some_and(char::is_alphanumeric)
    };
    !goes_on(before.chars().next_back(), part.chars().next())
        && !goes_on(after.chars().next(), part.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let private = ["http://h/x", "http://h", "sk-hünter2"].map(Secret::from);
        for (text, told) in [
            ("nothing", "nothing"),
            ("at http://h/x for sk-hünter2", "at *** for ***"),
            ("for sk-h", "for sk-h"),
            ("(sk-hünter2)", "(***)"),
            ("ask-hünter2", "ask-hünter2"),
            ("sk-hünter22 or sk-hünter2", "sk-hünter22 or ***"),
            ("at http://h:8080", "at ***:8080"),
            ("at http://here", "at http://here"),
        ] {
            assert_eq!(redact(&private, text), told);
        }
    }

    #[test]
    fn a_short_key_leaves_messages_whole() {
        let private = ["t", "k", "sk-1234"].map(Secret::from);
        for text in ["too many tokens: t", "sk-1234 is no key", "a task"] {
            assert_eq!(redact(&private, text), text);
        }
    }
}
