//! [`Fact`]: something that users said about themselves, and the selection of facts.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Shortest word that links a message to a fact, in characters.
const MIN_WORD: usize = 3;

/// A known fact about a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// The subject of the fact. Always `user` so far.
    pub subject: String,
    /// The kind of the fact, like `name`, `lives in` or `favourite colour`. A newer fact of the
    /// same kind replaces the older one.
    pub kind: String,
    /// The value, in the user's words.
    pub text: String,
    /// When it was said, in seconds since 1970.
    pub at: u64,
}

impl Fact {
    /// Creates a fact about the user.
    pub fn new(kind: impl Into<String>, text: impl Into<String>, at: u64) -> Self {
        Self {
            subject: "user".to_owned(),
            kind: kind.into(),
            text: text.into(),
            at,
        }
    }

    /// Returns the fact as a sentence for a model.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (subject, kind, text) = (&self.subject, &self.kind, &self.text);
        match kind.as_str() {
            "lives in" | "is from" | "works at" => format!("the {subject} {kind} {text}"),
            _ => format!("the {subject}'s {kind} is {text}"),
        }
    }
}

/// Adds facts to the known ones. Newer ones replace older ones of the same kind; beyond `max`, the
/// oldest are forgotten.
pub fn learn(known: &mut Vec<Fact>, new: Vec<Fact>, max: usize) {
    for fact in new {
        known.retain(|old| old.subject != fact.subject || old.kind != fact.kind);
        known.push(fact);
    }
    let surplus = known.len().saturating_sub(max);
    known.drain(..surplus);
}

/// Returns the facts to send with a message, oldest first: those that share most words with it,
/// then the newest of the others, up to `max`.
#[must_use]
pub fn select<'f>(facts: &'f [Fact], message: &str, max: usize) -> Vec<&'f Fact> {
    if facts.len() <= max {
        return facts.iter().collect();
    }
    best(facts, &words(message).collect(), 0, max)
}

/// Returns the facts that share a word with the query, oldest first: of more than `max`, those that
/// share most words, then the newest. A query without significant words finds every fact.
#[must_use]
pub fn search<'f>(facts: &'f [Fact], query: &str, max: usize) -> Vec<&'f Fact> {
    let asked: HashSet<String> = words(query).collect();
    let least = usize::from(!asked.is_empty());
    best(facts, &asked, least, max)
}

/// Returns the facts that share at least `least` of the words, oldest first: of more than `max`,
/// those that share most, then the newest.
fn best<'f>(facts: &'f [Fact], asked: &HashSet<String>, least: usize, max: usize) -> Vec<&'f Fact> {
    let shared = |fact: &Fact| {
        let said = words(&fact.kind).chain(words(&fact.text));
        said.filter(|word| asked.contains(word)).count()
    };
    let mut ranked: Vec<(usize, usize)> = facts
        .iter()
        .enumerate()
        .map(|(at, fact)| (shared(fact), at))
        .filter(|(shared, _)| *shared >= least)
        .collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.truncate(max);
    ranked.sort_unstable_by_key(|(_, at)| *at);
    let chosen = ranked.into_iter().filter_map(|(_, at)| facts.get(at));
    chosen.collect()
}

/// Returns the significant words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().nth(MIN_WORD - 1).is_some())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_fact_replaces_the_older_one_of_its_kind() {
        let mut known = vec![
            Fact::new("name", "Anna", 1),
            Fact::new("lives in", "Oslo", 1),
        ];
        learn(&mut known, vec![Fact::new("name", "Ann", 2)], 10);
        let expected = [
            Fact::new("lives in", "Oslo", 1),
            Fact::new("name", "Ann", 2),
        ];
        assert_eq!(known, expected);
    }

    #[test]
    fn the_oldest_facts_are_forgotten() {
        let mut known = Vec::new();
        for number in 0..9 {
            learn(
                &mut known,
                vec![Fact::new(number.to_string(), "x", number)],
                3,
            );
        }
        let kinds: Vec<_> = known.iter().map(|fact| fact.kind.as_str()).collect();
        assert_eq!(kinds, ["6", "7", "8"]);
    }

    #[test]
    fn facts_that_share_words_come_before_newer_ones() {
        let mut facts = vec![
            Fact::new("favourite colour", "green", 1),
            Fact::new("dog", "a poodle", 2),
        ];
        facts.extend((3..20).map(|number| Fact::new(format!("k{number}"), "v", number)));
        let told = select(&facts, "Which COLOUR goes with a dog?", 3);
        let kinds: Vec<_> = told.iter().map(|fact| fact.kind.as_str()).collect();
        assert_eq!(kinds, ["favourite colour", "dog", "k19"]);
        let told = select(&facts, "is it so", 2);
        let kinds: Vec<_> = told.iter().map(|fact| fact.kind.as_str()).collect();
        assert_eq!(kinds, ["k18", "k19"]);
    }

    #[test]
    fn a_search_finds_the_facts_that_share_a_word_with_it() {
        let facts = [
            Fact::new("dog", "a poodle", 1),
            Fact::new("favourite dog", "Rex", 2),
            Fact::new("name", "Anna", 3),
            Fact::new("cat", "Tom", 4),
        ];
        let kinds = |query: &str, max: usize| -> Vec<String> {
            let found = search(&facts, query, max).into_iter();
            found.map(|fact| fact.kind.clone()).collect()
        };
        assert_eq!(kinds("my DOG", 9), ["dog", "favourite dog"]);
        assert_eq!(kinds("tom's poodle", 9), ["dog", "cat"]);
        assert_eq!(kinds("the favourite dog", 1), ["favourite dog"]);
        assert_eq!(kinds("dog or cat", 2), ["favourite dog", "cat"]);
        assert!(kinds("zebra", 9).is_empty());
        assert_eq!(kinds("is it", 9).len(), 4);
        assert!(kinds("dog", 0).is_empty());
    }

    #[test]
    fn few_facts_are_all_told() {
        let facts = [Fact::new("name", "Anna", 1)];
        assert_eq!(select(&facts, "", 10), [&facts[0]]);
        assert!(select(&facts, "name", 0).is_empty());
    }
}
