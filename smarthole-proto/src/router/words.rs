//! The words of a text, in normalized form.

/// A word of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    /// As written in the text.
    pub(super) written: &'t str,
    /// Lower case, and without the usual endings of English: the form that is compared.
    pub(super) stem: String,
}

/// Returns the significant words of a text. Any character other than a letter or digit separates
/// them.
///
/// A compound such as `to-do`, `shopping_list` or `todoList` is also a word as a whole, so that it
/// is found in every spelling.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.split(|c: char| !(c.is_alphanumeric() || is_joint(c)))
        .flat_map(compound)
}

/// Returns whether a character joins the parts of one word.
const fn is_joint(c: char) -> bool {
    matches!(c, '-' | '_')
}

/// Returns the parts of a word, and the word itself if there are several.
fn compound(whole: &str) -> impl Iterator<Item = Word<'_>> {
    let mut parts = parts(whole);
    let first = parts.next().unwrap_or_default();
    // Most words are of one part, and then this stays empty.
    let others: Vec<_> = parts.collect();
    let joined = (!others.is_empty()).then(|| Word {
        written: whole.trim_matches(is_joint),
        stem: stem(&format!("{first}{}", others.concat())),
    });
    let parts = std::iter::once(first).chain(others);
    let parts = parts.filter(|part| is_distinctive(part)).map(|part| Word {
        written: part,
        stem: stem(part),
    });
    parts.chain(joined)
}

/// Splits a word at joints, and `todoList` between small and capital letters. No part is empty.
fn parts(whole: &str) -> impl Iterator<Item = &str> {
    let between = whole.split(is_joint).filter(|part| !part.is_empty());
    between.flat_map(|mut rest| {
        std::iter::from_fn(move || {
            let mut last_is_lower = false;
            let inner = rest.char_indices().find(|(_, c)| {
                let is_start = last_is_lower && c.is_uppercase();
                last_is_lower = c.is_lowercase();
                is_start
            });
            let end = inner.map_or(rest.len(), |(at, _)| at);
            let (part, after) = rest.split_at_checked(end)?;
            rest = after;
            (!part.is_empty()).then_some(part)
        })
    })
}

fn is_distinctive(part: &str) -> bool {
    // A single byte is a letter or a digit of ASCII.
    part.len() > 1 && !is_filler(part)
}

/// Returns a word without case and ending. Only words with the same meaning should become equal;
/// forms of a word that stay different do little harm.
fn stem(word: &str) -> String {
    let mut stem = word.to_lowercase();
    if !stem.is_ascii() {
        return stem;
    }
    if stem.len() > 4 && stem.ends_with("ies") {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if stem.len() > 3
        && stem.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end))
    {
        stem.pop();
    }
    for (ending, least) in [("ing", 3), ("ed", 3), ("er", 4)] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= least
            && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            stem.truncate(rest.len());
            undouble(&mut stem);
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// `shopp`, of `shopping`, is `shop`; but `call` stays.
fn undouble(stem: &mut String) {
    let mut last = stem.bytes().rev();
    if let (Some(one), Some(other)) = (last.next(), last.next())
        && one == other
        && !matches!(one, b'l' | b's' | b'z')
        && stem.len() > 3
    {
        stem.pop();
    }
}

fn is_filler(word: &str) -> bool {
    let lower = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    FILLERS
        .binary_search_by(|filler| filler.bytes().cmp(lower()))
        .is_ok()
}

/// Words that say nothing about the purpose of a client, sorted.
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "about", "after", "again", "all", "also", "am", "an", "and", "any", "anything", "are",
    "as", "at", "be", "because", "been", "before", "but", "by", "can", "client", "could",
    "did", "do", "does", "don", "down", "everything", "for", "from", "get", "give", "go",
    "had", "handle", "handles", "has", "have", "he", "hello", "help", "helps", "her", "here",
    "hey", "him", "his", "how", "if", "in", "into", "is", "it", "its", "just", "let", "like",
    "ll", "make", "may", "me", "my", "need", "no", "not", "now", "of", "off", "ok", "okay",
    "on", "one", "or", "our", "out", "over", "please", "re", "she", "should", "so", "some",
    "something", "than", "thank", "thanks", "that", "the", "their", "them", "then", "there",
    "these", "they", "thing", "things", "this", "those", "to", "too", "up", "us", "use",
    "user", "users", "ve", "very", "want", "wants", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "yes", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        words(text).map(|word| word.stem).collect()
    }

    #[test]
    fn forms_of_a_word_match() {
        for forms in [
            &["note", "notes", "Noted", "NOTING"][..],
            &["list", "lists", "listing"],
            &["shop", "shops", "shopping", "shopped", "shopper"],
            &["remind", "reminder", "reminders", "reminding"],
            &["grocery", "groceries"],
            &["task", "tasks"],
            &["call", "calls", "calling", "called", "caller"],
            &["message", "messages", "messaging"],
            &["switch", "switching", "switched"],
            &["lamp", "lamps"],
            &["time", "times", "timed"],
            &["Über", "über"],
        ] {
            let first = stem(forms[0]);
            for form in forms {
                assert_eq!(stem(form), first, "{form}");
            }
        }
    }

    #[test]
    fn different_words_do_not_match() {
        for (one, other) in [
            ("bus", "bug"),
            ("pass", "past"),
            ("sing", "so"),
            ("red", "rod"),
            ("water", "wash"),
            ("calendar", "calling"),
            ("note", "notice"),
        ] {
            assert_ne!(stem(one), stem(other));
        }
    }

    #[test]
    fn fillers_and_single_letters_are_ignored() {
        assert_eq!(
            stems("I'd like you to ADD a, b: milk!"),
            [stem("add"), stem("milk")]
        );
        assert_eq!(stems("What's up? - _ --"), Vec::<String>::new());
        assert_eq!(stems("灯 をつけて"), ["灯", "をつけて"]);
    }

    #[test]
    fn compound_words_match_whole_and_in_parts() {
        assert_eq!(stems("to-do"), ["todo"]);
        assert_eq!(stems("todo"), ["todo"]);
        assert_eq!(stems("toDo"), ["todo"]);
        assert_eq!(stems("shopping_list"), ["shop", "list", "shoppinglist"]);
        assert_eq!(stems("-milk-"), ["milk"]);
        let written: Vec<_> = words("the to-do list").map(|word| word.written).collect();
        assert_eq!(written, ["to-do", "list"]);
    }

    #[test]
    fn fillers_are_sorted() {
        assert!(FILLERS.is_sorted());
    }
}
