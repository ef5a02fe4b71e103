//! [`extract`]: finds what a user says of themselves, by a few English patterns.

use rpc_core::text::beginning;

use super::Fact;

/// Most bytes of a text to examine, and most facts from it.
const MAX_TEXT: usize = 16 * 1024;
const MAX_FACTS: usize = 16;
/// Longest value and longest kind, in characters, and most words of a kind like `favourite colour`.
const MAX_VALUE: usize = 100;
const MAX_KIND: usize = 40;
const MAX_KIND_WORDS: usize = 3;

/// The beginnings of facts, and their kinds.
const PATTERNS: [(&[&str], &str); 12] = [
    (&["my", "name", "is"], "name"),
    (&["my", "name's"], "name"),
    (&["i", "live", "in"], "lives in"),
    (&["i", "moved", "to"], "lives in"),
    (&["i've", "moved", "to"], "lives in"),
    (&["i", "have", "moved", "to"], "lives in"),
    (&["i'm", "from"], "is from"),
    (&["i", "am", "from"], "is from"),
    (&["i", "work", "at"], "works at"),
    (&["i", "work", "for"], "works at"),
    (&["i'm", "working", "at"], "works at"),
    (&["i'm", "working", "for"], "works at"),
];
/// Words that end a value, because another clause begins.
const CONJUNCTIONS: [&str; 15] = [
    "and", "but", "because", "so", "since", "while", "although", "though", "when", "where",
    "which", "who", "if", "as", "then",
];
/// Words before a pattern that make it no statement.
const DOUBTS: [&str; 11] = [
    "if", "whether", "what", "where", "when", "unless", "suppose", "pretend", "imagine", "wish",
    "say",
];
/// Kinds that are only temporary.
const FLEETING: [&str; 9] = [
    "question", "problem", "issue", "point", "guess", "request", "task", "answer", "opinion",
];

/// Returns the facts that a text states about its user, in the order of the text. A value ends with
/// its sentence, at a comma, or where a conjunction begins another clause. Questions state nothing.
#[must_use]
pub fn extract(text: &str, at: u64) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for line in beginning(text, MAX_TEXT).lines() {
        let mut clause = Vec::new();
        for word in line.split_whitespace() {
            let (word, mark) = bare(word);
            if !word.is_empty() {
                clause.push(word);
            }
            match mark {
                Some('?') => clause.clear(),
                Some(_) => read(&std::mem::take(&mut clause), at, &mut facts),
                None => {}
            }
        }
        read(&clause, at, &mut facts);
    }
    facts
}

/// Returns a word without punctuation, and the mark that ends the clause. A mark within a word, as
/// in `3.5`, ends nothing.
fn bare(word: &str) -> (&str, Option<char>) {
    let enclosing = |c: char| "\"()[]{}<>*_`“”„«»".contains(c);
    let word = word.trim_matches(enclosing);
    let stem = word.trim_end_matches(['.', ',', ';', ':', '!', '?', '…']);
    let mark = word.get(stem.len()..).unwrap_or_default();
    let mark = if mark.contains('?') {
        Some('?')
    } else {
        mark.chars().next()
    };
    (stem.trim_matches(enclosing), mark)
}

/// Adds the facts of one clause. A later one of a kind replaces the earlier one.
fn read(clause: &[&str], at: u64, facts: &mut Vec<Fact>) {
    let mut start = 0;
    while let Some(rest) = clause.get(start..).filter(|rest| !rest.is_empty()) {
        if facts.len() == MAX_FACTS {
            return;
        }
        let before = start.checked_sub(1).and_then(|at| clause.get(at));
        let doubted = before.is_some_and(|word| is_one_of(&DOUBTS, word));
        let Some((kind, length)) = begin(rest).filter(|_| !doubted) else {
            start += 1;
            continue;
        };
        let words = rest.get(length..).unwrap_or_default();
        let ends = words.iter().position(|word| is_one_of(&CONJUNCTIONS, word));
        let words = words.get(..ends.unwrap_or(words.len())).unwrap_or_default();
        start += length + words.len();
        if words.first().is_none_or(|word| is(word, "not")) {
            continue;
        }
        if let Some(value) = printable(words, MAX_VALUE) {
            facts.retain(|fact| fact.kind != kind);
            facts.push(Fact::new(kind, value, at));
        }
    }
}

/// Returns the kind of the fact that begins here, and how many words come before its value.
fn begin(words: &[&str]) -> Option<(String, usize)> {
    let starts = |pattern: &[&str]| {
        let head = words.get(..pattern.len());
        head.is_some_and(|head| head.iter().zip(pattern).all(|(word, want)| is(word, want)))
    };
    if let Some((pattern, kind)) = PATTERNS.iter().find(|(pattern, _)| starts(pattern)) {
        return Some(((*kind).to_owned(), pattern.len()));
    }
    let (my, rest) = words.split_first()?;
    if !is(my, "my") {
        return None;
    }
    let near = rest.get(..rest.len().min(MAX_KIND_WORDS + 1))?;
    let verb = near.iter().position(|word| is(word, "is"))?;
    let kind = near.get(..verb)?;
    if is_one_of(&FLEETING, kind.last()?) {
        return None;
    }
    Some((printable(kind, MAX_KIND)?.to_lowercase(), verb + 2))
}

/// Joins words to one line of printable characters, cut to a length. Returns `None` if nothing is
/// left.
fn printable(words: &[&str], max: usize) -> Option<String> {
    let line = words.join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(max).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn is_one_of(list: &[&str], word: &str) -> bool {
    list.iter().any(|one| is(word, one))
}

/// Returns whether a word equals another, ignoring case and the form of apostrophes.
fn is(word: &str, want: &str) -> bool {
    let letter = |c: char| {
        if c == '’' {
            '\''
        } else {
            c.to_ascii_lowercase()
        }
    };
    word.chars().map(letter).eq(want.chars())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts(text: &str) -> Vec<(String, String)> {
        let facts = extract(text, 7);
        assert!(
            facts
                .iter()
                .all(|fact| fact.subject == "user" && fact.at == 7)
        );
        let pair = |fact: Fact| (fact.kind, fact.text);
        facts.into_iter().map(pair).collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut facts = facts(text);
        assert_eq!(facts.len(), 1, "{text}: {facts:?}");
        facts.remove(0)
    }

    #[test]
    fn every_pattern_is_found_in_any_case() {
        for (text, kind, value) in [
            ("My name is Anna", "name", "Anna"),
            ("hello, MY NAME IS Anna Berg!", "name", "Anna Berg"),
            ("My name's Anna", "name", "Anna"),
            ("I live in New York.", "lives in", "New York"),
            ("Last year I moved to Oslo", "lives in", "Oslo"),
            ("I've moved to Rome", "lives in", "Rome"),
            ("I have moved to Bern", "lives in", "Bern"),
            ("I'm from Peru", "is from", "Peru"),
            ("I’m from Peru", "is from", "Peru"),
            ("i am from Peru", "is from", "Peru"),
            ("I work at the zoo", "works at", "the zoo"),
            ("I work for ACME.", "works at", "ACME"),
            ("I'm working at Acme", "works at", "Acme"),
            ("I’m working for the city", "works at", "the city"),
            ("My favourite colour is green", "favourite colour", "green"),
            ("my Dog is a \"poodle\"", "dog", "a poodle"),
            ("My cat's name is Tom", "cat's name", "Tom"),
            ("My version is 3.5", "version", "3.5"),
        ] {
            assert_eq!(one(text), (kind.to_owned(), value.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_value_ends_with_its_thought() {
        for (text, value) in [
            ("I live in Oslo and I like it", "Oslo"),
            ("I live in Oslo, Norway", "Oslo"),
            ("I live in Oslo. It is cold", "Oslo"),
            ("I live in Oslo!!! It is cold", "Oslo"),
            ("I live in Oslo but not for long", "Oslo"),
            ("I live in Oslo\nIt is cold", "Oslo"),
            ("(I live in Oslo)", "Oslo"),
        ] {
            assert_eq!(one(text).1, value, "{text}");
        }
    }

    #[test]
    fn several_facts_are_found_in_one_text() {
        let text = "Hi! My name is Anna and I live in Oslo, I work at Acme as a nurse.";
        let expected = [("name", "Anna"), ("lives in", "Oslo"), ("works at", "Acme")];
        let expected = expected.map(|(kind, value)| (kind.to_owned(), value.to_owned()));
        assert_eq!(facts(text), expected);
    }

    #[test]
    fn the_last_of_a_kind_counts() {
        assert_eq!(one("I live in Oslo. Now I moved to Rome.").1, "Rome");
    }

    #[test]
    fn nothing_is_read_out_of_other_texts() {
        for text in [
            "",
            "my name is",
            "What is my name?",
            "Do you know that my name is Anna?",
            "My name is not Anna",
            "if I live in Oslo",
            "pretend my name is Bob",
            "My question is this",
            "tell me of my friends",
            "My is good",
            "my very long and odd thing is here",
            "Tommy name is Anna",
            "I'm fromage",
            "We live in Oslo",
        ] {
            assert_eq!(facts(text), [], "{text}");
        }
    }

    #[test]
    fn what_is_read_is_bounded_and_harmless() {
        let (_, value) = one("My name is A\u{1b}[31m\u{7}n");
        assert_eq!(value, "A[31mn");
        assert_eq!(
            one(&format!("My name is {}", "é".repeat(5000)))
                .1
                .chars()
                .count(),
            MAX_VALUE
        );
        let many: String = (0..5000).map(|n| format!("My thing{n} is x. ")).collect();
        assert_eq!(facts(&many).len(), MAX_FACTS);
        assert_eq!(
            facts(&format!("{} My name is Anna", "é".repeat(MAX_TEXT))),
            []
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,300}", at: u64) {
            for fact in extract(&text, at) {
                prop_assert!(!fact.text.trim().is_empty() && !fact.kind.trim().is_empty());
                prop_assert!(!fact.sentence().contains(char::is_control));
            }
        }

        #[test]
        fn words_in_any_order_are_survived(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "my", "name", "is", "I", "live", "in", "not", "and", "x.", "y,", "z?", "if", "\n",
                ]),
                0..40,
            )
        ) {
            let facts = extract(&words.join(" "), 1);
            prop_assert!(facts.len() <= MAX_FACTS);
            prop_assert!(facts.iter().all(|fact| fact.text.chars().count() <= MAX_VALUE));
        }
    }
}
