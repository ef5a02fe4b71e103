//! [`Keywords`]: a router that compares words.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::words::{Word, words};
use super::{Candidate, Choice, RouteRequest};

/// The points of a word in a client's name, its capabilities, its description.
const NAME: u32 = 4;
const CAPABILITY: u32 = 3;
const DESCRIPTION: u32 = 1;
/// Most parts of a text that are compared separately; the last one is the whole rest.
const MAX_PARTS: usize = 8;
/// Most words of each part that are compared.
const MAX_WORDS: usize = 4096;
/// Most bytes of a client's capabilities that are compared, so that no client slows down the
/// others.
const MAX_HINTS: usize = 4 * 1024;
/// Most words that a reason names.
const MAX_SHOWN: usize = 4;

/// A router that compares words: deterministic, immediate, without a network.
///
/// A client gets points for every word of the text that also appears in its name (4), one of its
/// capabilities (3) or its description (1), whichever is most. Case and the usual English endings
/// are ignored, and so are words such as "the" or "please". Then:
///
/// - The client with the most points is chosen; of equal ones, the one that registered first.
/// - Several are chosen if the text has several parts, separated by `;` or the word "and", and
///   different clients are each clearly the best one for a part. All of them get the whole text.
/// - If no word matches, no client is chosen, because a guess would bother the wrong one; except
///   that the only client gets everything, and so does the only one left when all others rejected
///   the message.
///
/// The reasons of rejections are ignored: clients that rejected a message are not candidates.
///
/// ```
/// use smarthole_proto::router::{Candidate, Keywords, RouteRequest};
///
/// let clients = vec![
///     Candidate::new("notes", "Keeps notes and shopping lists."),
///     Candidate::new("home", "Switches lamps and lights."),
/// ];
/// let chosen = |text| {
///     let request = RouteRequest { candidates: clients.clone(), ..RouteRequest::new(text) };
///     let choices = Keywords::new().choose(&request);
///     choices.into_iter().map(|choice| choice.client.to_string()).collect::<Vec<_>>()
/// };
/// assert_eq!(chosen("add milk to my shopping list"), ["notes"]);
/// assert_eq!(chosen("note this down and turn off the light"), ["notes", "home"]);
/// assert!(chosen("sing").is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Keywords {}

/// A word of the text: its first place, the parts that have it as bits, how it is written.
struct Spoken<'t> {
    place: usize,
    parts: u8,
    written: &'t str,
}

/// How well a candidate matches the text.
struct Score<'t> {
    /// By the place in the text.
    hits: BTreeMap<usize, Hit<'t>>,
    whole: u32,
    parts: [u32; MAX_PARTS],
}

struct Hit<'t> {
    weight: u32,
    parts: u8,
    written: &'t str,
}

impl Keywords {
    /// Creates the router.
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }

    /// Chooses among the candidates. The same request always gets the same answer.
    #[must_use]
    pub fn choose(&self, request: &RouteRequest) -> Vec<Choice> {
        let spoken = spoken(&request.text);
        let candidates = request.candidates.iter();
        let scores: Vec<_> = candidates
            .map(|one| (one, Score::of(one, &spoken)))
            .collect();
        // For each client that is clearly the best for a part, the parts that are its own.
        let mut winners: Vec<(usize, u8)> = Vec::new();
        for part in 0..MAX_PARTS {
            let points = |score: &Score<'_>| score.parts.get(part).copied().unwrap_or_default();
            let Some(best) = clear_best(&scores, points) else {
                continue;
            };
            match winners.iter_mut().find(|(winner, _)| *winner == best) {
                Some((_, parts)) => *parts |= 1 << part,
                None => winners.push((best, 1 << part)),
            }
        }
        if winners.len() < 2 {
            let counts = |(_, score): &&(&Candidate, Score<'_>)| score.whole > 0;
            let best = scores.iter().filter(counts).rev();
            return match best.max_by_key(|(_, score)| score.whole) {
                Some((candidate, score)) => vec![score.choice(candidate, u8::MAX)],
                None => only(request).into_iter().collect(),
            };
        }
        let winners = winners.into_iter();
        winners
            .filter_map(|(best, parts)| {
                let (candidate, score) = scores.get(best)?;
                Some(score.choice(candidate, parts))
            })
            .collect()
    }
}

/// Returns the only client, or the only one left while no client has the message.
fn only(request: &RouteRequest) -> Option<Choice> {
    let [only] = request.candidates.as_slice() else {
        return None;
    };
    let left = match (request.excluded.len(), request.rejections.len()) {
        (0, _) => "",
        (had, rejected) if had <= rejected => " left",
        _ => return None,
    };
    let reason = format!("{} is the only client{left}", only.name);
    Some(Choice {
        reason: Some(reason.into()),
        ..Choice::new(only.name.clone())
    })
}

/// Returns the candidate with the most points, if it is the only one with as many.
fn clear_best(
    scores: &[(&Candidate, Score<'_>)],
    points: impl Fn(&Score<'_>) -> u32,
) -> Option<usize> {
    let mut best = None;
    let mut most = 0;
    for (index, (_, score)) in scores.iter().enumerate() {
        let points = points(score);
        if points > most {
            (best, most) = (Some(index), points);
        } else if points == most {
            best = None;
        }
    }
    best
}

/// Returns the words of a text by their normalized form.
fn spoken(text: &str) -> HashMap<String, Spoken<'_>> {
    let mut spoken = HashMap::new();
    let mut next = 0;
    for (index, part) in parts(text).into_iter().enumerate() {
        for word in words(part).take(MAX_WORDS) {
            let entry = spoken.entry(word.stem).or_insert(Spoken {
                place: next,
                parts: 0,
                written: word.written,
            });
            entry.parts |= 1 << index;
            next += 1;
        }
    }
    spoken
}

/// Splits a text at `;` and "and".
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut word = 0;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() || matches!(c, '-' | '_') {
            continue;
        }
        let is_and = text
            .get(word..at)
            .is_some_and(|word| word.eq_ignore_ascii_case("and"));
        if (is_and || c == ';') && parts.len() + 1 < MAX_PARTS {
            parts.extend(text.get(start..if is_and { word } else { at }));
            start = at;
        }
        word = at + c.len_utf8();
    }
    parts.extend(text.get(start..));
    parts
}

impl<'t> Score<'t> {
    fn of(candidate: &Candidate, spoken: &HashMap<String, Spoken<'t>>) -> Self {
        let mut score = Self {
            hits: BTreeMap::new(),
            whole: 0,
            parts: [0; MAX_PARTS],
        };
        // What counts most comes first, so that a word that was found is not looked at again.
        score.add(words(&candidate.name), NAME, spoken);
        let mut room = MAX_HINTS;
        let hints = candidate.capabilities.iter().take_while(|hint| {
            let fits = hint.len() <= room;
            room = room.saturating_sub(hint.len().max(1));
            fits && room > 0
        });
        score.add(hints.flat_map(|hint| words(hint)), CAPABILITY, spoken);
        score.add(words(&candidate.description), DESCRIPTION, spoken);
        for hit in score.hits.values() {
            score.whole += hit.weight;
            for (part, points) in score.parts.iter_mut().enumerate() {
                if hit.parts & 1 << part != 0 {
                    *points += hit.weight;
                }
            }
        }
        score
    }

    fn add<'c>(
        &mut self,
        words: impl Iterator<Item = Word<'c>>,
        weight: u32,
        spoken: &HashMap<String, Spoken<'t>>,
    ) {
        for word in words {
            if let Some(found) = spoken.get(&word.stem) {
                self.hits.entry(found.place).or_insert(Hit {
                    weight,
                    parts: found.parts,
                    written: found.written,
                });
            }
        }
    }

    /// Returns the candidate, with the words of these parts as the reason.
    fn choice(&self, candidate: &Candidate, parts: u8) -> Choice {
        let hits = self.hits.values().filter(|hit| hit.parts & parts != 0);
        let written: Vec<_> = hits.map(|hit| hit.written).collect();
        let verb = if written.len() == 1 {
            "matches"
        } else {
            "match"
        };
        let reason = format!("{} {verb} what {} does", listed(&written), candidate.name);
        Choice {
            reason: Some(reason.into()),
            ..Choice::new(candidate.name.clone())
        }
    }
}

/// `"a"`, `"b" and "c"`.
fn listed(words: &[&str]) -> String {
    let mut list = String::new();
    let shown = words.len().min(MAX_SHOWN);
    for (index, word) in words.iter().take(shown).enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == words.len() => " and ",
            _ => ", ",
        };
        // Writing to a text does not fail.
        let _ = write!(list, "{before}\"{word}\"");
    }
    if words.len() > shown {
        let _ = write!(list, " and {} more", words.len() - shown);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::Rejection;

    fn clients() -> Vec<Candidate> {
        vec![
            Candidate {
                capabilities: vec!["notes".into(), "lists".into()].into(),
                ..Candidate::new(
                    "notes",
                    "Saves notes, ideas and shopping lists in a journal.",
                )
            },
            Candidate::new("home", "Switches lights and heating in the house."),
            Candidate {
                capabilities: vec!["reminders".into()].into(),
                ..Candidate::new("calendar", "Knows appointments and reminds of them.")
            },
        ]
    }

    fn ask(text: &str) -> RouteRequest {
        RouteRequest {
            candidates: clients(),
            ..RouteRequest::new(text)
        }
    }

    fn chosen(text: &str) -> Vec<String> {
        let choices = Keywords::new().choose(&ask(text));
        choices.iter().map(|one| one.client.to_string()).collect()
    }

    #[test]
    fn the_client_with_the_most_words_in_common_is_chosen() {
        for (text, client) in [
            ("Put milk on the shopping list", "notes"),
            ("an IDEA: paint the house", "notes"),
            ("switch the light off, please", "home"),
            ("remind me of the dentist", "calendar"),
            ("is there an appointment today?", "calendar"),
            ("tell home it is cold", "home"),
        ] {
            assert_eq!(chosen(text), [client], "{text}");
        }
    }

    #[test]
    fn names_weigh_more_than_capabilities_and_capabilities_more_than_descriptions() {
        let request = RouteRequest {
            candidates: [
                Candidate::new("a", "Plays music."),
                Candidate {
                    capabilities: vec!["music".into()].into(),
                    ..Candidate::new("b", "Plays.")
                },
                Candidate::new("music", "Plays."),
            ]
            .into_iter()
            .collect(),
            ..RouteRequest::new("music")
        };
        let first = |request: &RouteRequest| {
            let choices = Keywords::new().choose(request);
            choices[0].client.to_string()
        };
        assert_eq!(first(&request), "music");
        let without = request.candidates[..2].to_vec();
        assert_eq!(
            first(&RouteRequest {
                candidates: without.into_iter().collect(),
                ..request
            }),
            "b"
        );
    }

    #[test]
    fn ties_go_to_the_first_registered_client() {
        let twins = ["b", "a"].map(|name| Candidate::new(name, "Plays music."));
        let request = RouteRequest {
            candidates: twins.into_iter().collect(),
            ..RouteRequest::new("play music")
        };
        assert_eq!(Keywords::new().choose(&request)[0].client, "b");
    }

    #[test]
    fn a_text_with_several_parts_goes_to_each_clear_match() {
        assert_eq!(
            chosen("turn on the lights and remind me of the cake"),
            ["home", "calendar"]
        );
        assert_eq!(chosen("heating up; note that; lights"), ["home", "notes"]);
        // The second part has no client.
        assert_eq!(chosen("put milk on the list and eggs"), ["notes"]);
        assert_eq!(chosen("hand the sandwich; andes"), Vec::<String>::new());
    }

    #[test]
    fn each_recipient_gets_its_own_part() {
        let choices = Keywords::new().choose(&ask("lights on and note my ideas and a list"));
        let reasons: Vec<_> = choices.iter().map(|one| one.reason.as_deref()).collect();
        assert_eq!(
            reasons,
            [
                Some("\"lights\" matches what home does"),
                Some("\"note\", \"ideas\" and \"list\" match what notes does"),
            ]
        );
        assert!(choices.iter().all(|one| one.text.is_none()));
    }

    #[test]
    fn a_reason_names_only_a_few_words() {
        let words = "alpha beta gamma delta epsilon zeta";
        let request = RouteRequest {
            candidates: vec![Candidate::new("x", words)],
            ..RouteRequest::new(words)
        };
        assert_eq!(
            Keywords::new().choose(&request)[0].reason.as_deref(),
            Some("\"alpha\", \"beta\", \"gamma\", \"delta\" and 2 more match what x does")
        );
    }

    #[test]
    fn without_a_match_only_a_sole_client_is_chosen() {
        assert_eq!(chosen("sing a song"), Vec::<String>::new());
        assert_eq!(chosen("please do it for me"), Vec::<String>::new());
        assert_eq!(chosen(""), Vec::<String>::new());
        let alone = RouteRequest {
            candidates: vec![Candidate::new("x", "Plays.")],
            ..RouteRequest::new("sing")
        };
        let choices = Keywords::new().choose(&alone);
        assert_eq!(
            choices,
            [Choice {
                reason: Some("x is the only client".into()),
                ..Choice::new("x")
            }]
        );
        let mut left = RouteRequest {
            excluded: vec!["y".into()],
            rejections: vec![Rejection::new("y", "No.")],
            ..alone
        };
        let choices = Keywords::new().choose(&left);
        assert_eq!(
            choices,
            [Choice {
                reason: Some("x is the only client left".into()),
                ..Choice::new("x")
            }]
        );
        // Someone else has it, and has not rejected it.
        left.excluded.push("z".into());
        assert_eq!(Keywords::new().choose(&left), []);
        assert_eq!(Keywords::new().choose(&RouteRequest::new("sing")), []);
    }

    #[test]
    fn the_number_of_parts_considered_is_bounded() {
        let text = "lights and notes; ".repeat(10_000);
        assert_eq!(chosen(&text), ["home", "notes"]);
        assert_eq!(parts(&text).len(), MAX_PARTS);
    }

    #[test]
    fn the_number_of_words_considered_is_bounded() {
        let mut busy = Candidate::new("busy", "Does much.");
        let hints = (10_000..75_536).map(|number| format!("word{number}").into());
        busy.capabilities = hints.collect();
        let clients = [busy, Candidate::new("x", "Plays.")];
        let count = |text: &str| {
            let request = RouteRequest {
                candidates: clients.clone().into_iter().collect(),
                ..RouteRequest::new(text)
            };
            Keywords::new().choose(&request).len()
        };
        assert_eq!(count("word10000"), 1);
        let last = MAX_HINTS / "word10000".len() - 1;
        assert_eq!(count(&format!("word{}", 10_000 + last)), 1);
        assert_eq!(count(&format!("word{}", 10_000 + last + 1)), 0);
        let long = format!("{}plays", "sing ".repeat(MAX_WORDS));
        assert_eq!(count(&long), 0);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_chooses_only_candidates_each_once(text in ".{0,60}|([a-z]{1,8}| and |;|-|notes|lights){0,20}") {
            let names = chosen(&text);
            let mut unique = names.clone();
            unique.sort();
            unique.dedup();
            proptest::prop_assert_eq!(unique.len(), names.len());
            proptest::prop_assert!(names.iter().all(|name| clients().iter().any(|one| one.name == **name)));
            proptest::prop_assert_eq!(chosen(&text), names);
        }
    }
}
