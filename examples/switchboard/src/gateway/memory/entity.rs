//! [`Entity`]: what is known from earlier turns: how it is read from a model's answer, and which of it fit a message.

use rpc_core::text::{beginning, is_control};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use snek_proto::llm::chat::ChatMessage;

/// Most entities of a session; the oldest are forgotten first.
pub const MAX_ENTITIES: usize = 100;
/// Most entities of one turn, so that no turn takes the place of all others.
const MAX_LEARNT: usize = 20;
/// Most bytes of a subject or a relation, and of a value.
const MAX_NAME: usize = 100;
const MAX_VALUE: usize = 300;

/// Most bytes of a text whose words count, and most of its words.
const MAX_TEXT: usize = 8 * 1024;
const MAX_WORDS: usize = 500;
/// The least bytes of a word: three letters of Latin, or one Chinese character.
const MIN_WORD: usize = 3;

/// Something that is known from a turn of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// What it is about: `user`, or the name of someone or something else.
    pub subject: String,
    /// How the value belongs to the subject, like `name`.
    pub relation: String,
    /// The value, in the words of the turn.
    pub value: String,
    /// When its turn ended, in seconds since 1970.
    pub at: u64,
}

impl Entity {
    /// Creates an entity of texts in one line each, without control characters and cut to their longest sizes.
    /// Returns `None` if one is blank.
    pub fn new(subject: &str, relation: &str, value: &str, at: u64) -> Option<Self> {
        Some(Self {
            subject: line(subject, MAX_NAME)?,
            relation: line(relation, MAX_NAME)?,
            value: line(value, MAX_VALUE)?,
            at,
        })
    }

    /// Returns the entity in words.
    pub fn sentence(&self) -> String {
        format!("{}, {}: {}", self.subject, self.relation, self.value)
    }

    /// Returns whether it is about this relation of this subject, however they are written.
    pub fn is_about(&self, subject: &str, relation: &str) -> bool {
        let key = |text: &str| text.replace(['_', '-'], " ").to_lowercase();
        key(&self.subject) == key(subject) && key(&self.relation) == key(relation)
    }

    /// Returns about the bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.subject.len() + self.relation.len() + self.value.len() + 64
    }

    fn read(members: &Map<String, Value>, at: u64) -> Option<Self> {
        let text = |name| match members.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(is_so) => Some(is_so.to_string()),
            _ => None,
        };
        Self::new(&text("subject")?, &text("relation")?, &text("value")?, at)
    }
}

fn line(text: &str, max: usize) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || is_control(c));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let line = beginning(&line, max).trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Adds an entity to those that are known, oldest first, in the place of what is about the same, unless that is newer.
pub fn learn(known: &mut Vec<Entity>, new: Entity) {
    let is_same = |it: &Entity| it.is_about(&new.subject, &new.relation);
    if known.iter().any(|it| is_same(it) && it.at > new.at) {
        return;
    }
    known.retain(|it| !is_same(it));
    known.push(new);
    let surplus = known.len().saturating_sub(MAX_ENTITIES);
    known.drain(..surplus);
}

/// Returns the entities in a model's answer: in its calls of a tool, or in its text.
pub fn entities_in(answer: &ChatMessage, at: u64) -> Vec<Entity> {
    let text = answer.content.text();
    // Beside the JSON there may be words.
    let first = text.find(['{', '[']).unwrap_or(text.len());
    let end = text.rfind(['}', ']']).map_or(first, |last| last + 1);
    let calls = answer.tool_calls.iter().map(|call| &*call.arguments);
    let mut found = Vec::new();
    for json in calls.chain(text.get(first..end)) {
        read(json, at, &mut found);
    }
    found.truncate(MAX_LEARNT);
    found
}

fn read(json: &str, at: u64, found: &mut Vec<Entity>) {
    if let Ok(value) = rpc_core::json::from_slice(json.as_bytes()) {
        collect(&value, at, found);
    }
}

/// Collects every object with a subject, a relation and a value.
fn collect(value: &Value, at: u64, found: &mut Vec<Entity>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, at, found)),
        Value::Object(members) => match Entity::read(members, at) {
            Some(entity) => found.push(entity),
            None => members.values().for_each(|item| collect(item, at, found)),
        },
        // Some models write a list as a text.
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => read(text, at, found),
        _ => {}
    }
}

/// Returns the entities to send with a message, oldest first: of more than `most`, those that share the most words
/// with it, and then the newest.
pub fn fitting<'e>(entities: &'e [Entity], message: &str, most: usize) -> Vec<&'e Entity> {
    let words = Words::of(message);
    let ranked = entities.iter().enumerate().map(|(place, entity)| {
        let of_entity = Words::of(&entity.sentence());
        (
            words.found_in(&of_entity) + of_entity.found_in(&words),
            place,
        )
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.truncate(most);
    ranked.sort_unstable_by_key(|(_, place)| *place);
    let fitting = ranked
        .into_iter()
        .filter_map(|(_, place)| entities.get(place));
    fitting.collect()
}

/// The words of a text in any language. A word is found in another text also within a longer one, because some
/// languages join words, and some write none apart.
#[derive(Debug)]
pub struct Words {
    text: String,
    words: Vec<String>,
}

impl Words {
    /// Returns the words of the beginning of a text.
    pub fn of(text: &str) -> Self {
        let text = beginning(text, MAX_TEXT).to_lowercase();
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.len() >= MIN_WORD).take(MAX_WORDS);
        let mut words: Vec<_> = words.map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        Self { text, words }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns whether one is in a text.
    pub fn are_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.words.iter().any(|word| text.contains(&**word))
    }

    /// Returns how many are in the text of others.
    fn found_in(&self, others: &Self) -> usize {
        let words = self.words.iter();
        words.filter(|word| others.text.contains(&***word)).count()
    }
}

#[cfg(test)]
mod tests;
