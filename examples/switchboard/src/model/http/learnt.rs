//! [`Learnt`]: what a model at an address has refused or shown, so that it is asked better from then on.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use regex::Regex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::ask::Query;
use crate::model::answer::text_of;
use crate::model::extra::is_one;
use crate::model::refusal::{Report, finds};
use crate::model::request::NOTHING;

/// The members that carry the conversation and its tools: without one of them it would be another question.
const NEEDED: &str = "model messages role content type text id index name description function parameters input_schema \
    arguments input tool_calls tool_call_id tool_use_id tool_name system images image_url source url data media_type";
/// Those of them whose members are not the interface's.
const OPAQUE: &str = "parameters input_schema arguments input";

/// How a refusal says that a member is not taken.
pub(super) const NOT_TAKEN: &str = "support|permit|allow|accept|able|require|unknown|unrecogni|unexpected|extra|invalid|capab|implement|cannot";
/// How it says that one is missing.
const MISSING: &str = "missing|(?:field|is) required|(?:passed|handed|sent) back";
/// What else may be refused, which is written in another way then, and how a refusal speaks of it. The last is of
/// calls with which the provider misses something.
const PLAIN: &str = r"images: image|vision|multi.?modal|content.{0,9} must be a? ?string
a system message: \bsystem\b.*(?:role|message|prompt|support)|\brole\b.*\bsystem\b|developer instruction
empty messages: content.*(?:empty|blank)|(?:empty|blank).*content|must not be empty|must have non-empty
tools without parameters: properties.{0,9}should be non-?empty
earlier tool calls: \b(?:missing|required|back|has no|have no|lacks?|without|must|expected)\b";
const IMAGES: &str = "images";
const SYSTEM: &str = "a system message";
const EMPTY: &str = "empty messages";
const NO_PARAMETERS: &str = "tools without parameters";
const CALLS: &str = "earlier tool calls";
const WORDS: &str = "words in their place";
/// How a refusal speaks of one image, and not of all.
const ONE_IMAGE: &str = r"download|fetch|format|\bsize|exceed|decod|too (?:large|many)|at most|\bvalid|\binvalid (?:image|base)| url";

/// The text in place of what is not taken.
const NOT_SHOWN: &str = "(an image that the model does not take)";

/// What is known of a model at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    /// The members that it refuses, with what takes their place.
    pub(super) refused: BTreeMap<String, Option<String>>,
    /// Whether it closes thoughts without having opened them.
    pub(super) closes_thoughts: bool,
}

impl Learnt {
    /// Returns a request without what is refused.
    pub(super) fn apply(&self, query: &Query) -> Bytes {
        let takes_calls = !["tools", CALLS]
            .iter()
            .any(|it| self.refused.contains_key(*it));
        let in_words = query.in_words.as_ref().filter(|_| !takes_calls);
        let body = in_words.unwrap_or(&query.body);
        if self.refused.is_empty() {
            return body.clone();
        }
        let changed = serde_json::from_slice(body).and_then(|whole| self.without(whole, true));
        let changed = changed.and_then(|raw| match self.refused.contains_key(SYSTEM) {
            true => without_system(&raw),
            false => Ok(String::from(Box::<str>::from(raw)).into()),
        });
        changed.unwrap_or_else(|_| body.clone())
    }

    /// Learns which member of a request is refused. Returns whether that is news: its name, and the one that the
    /// provider proposes instead.
    pub(super) fn learn(
        &mut self,
        query: &Query,
        report: &Report,
    ) -> Option<(String, Option<String>)> {
        let before = self.apply(query);
        let body: Value = serde_json::from_slice(&before).ok()?;
        let mut sent = BTreeSet::new();
        names(&body, &mut sent);
        let says = report.message.to_lowercase();
        let named = refused(report, &sent);
        let member = named.clone().or_else(|| self.plain(query, &says))?;
        let other = Regex::new("[a-z]+(?:_[a-z]+)+").ok()?;
        let proposed = other.find_iter(&says).map(|it| it.as_str()).find(|it| {
            let is_near = it
                .split('_')
                .any(|part| member.split('_').any(|known| known == part));
            is_near && !sent.contains(*it)
        });
        let proposes = finds("use |instead|did you mean|replace|favou?r", &says);
        let proposed = proposed.filter(|_| proposes).map(str::to_owned);
        // A number that is too large becomes the largest that is named.
        let most = body[&member].as_u64().and_then(|sent| {
            let numbers = Regex::new(r"\d+").ok()?;
            let numbers = numbers.find_iter(&says);
            let smaller = numbers.filter_map(|it| it.as_str().parse().ok());
            smaller.filter(|it| (1..sent).contains(it)).max()
        });
        let instead = match named {
            None => Some(WORDS.to_owned()),
            Some(_) => proposed.or(most.map(|most| most.to_string())),
        };
        self.refused.insert(member.clone(), instead.clone());
        // What was proposed before is refused as well.
        for other in self.refused.values_mut() {
            other.take_if(|it| *it == member);
        }
        Some((member, instead))
    }

    /// Returns what a refusal speaks of that can be written in another way.
    fn plain(&self, query: &Query, says: &str) -> Option<String> {
        let applied = |it: &Self| serde_json::from_slice::<Value>(&it.apply(query)).ok();
        let rows = PLAIN.lines().filter_map(|row| row.split_once(": "));
        let mut spoken_of = rows.filter(|(_, words)| finds(words, says));
        let found = spoken_of.find(|(name, _)| {
            let mut other = self.clone();
            let new = other.refused.insert((*name).to_owned(), None).is_none();
            let is_one = *name == IMAGES && finds(ONE_IMAGE, says);
            new && !is_one && applied(&other) != applied(self)
        });
        found.map(|(name, _)| (*name).to_owned())
    }

    fn without(&self, raw: &RawValue, is_top: bool) -> serde_json::Result<Box<RawValue>> {
        let text = raw.get();
        if text.starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(text)?;
            // A block of a kind that is refused goes as a whole, and so does one that the provider alone knows.
            let is_taken = |it: &&RawValue| {
                let item: Value = serde_json::from_str(it.get()).unwrap_or_default();
                let is_refused = |name: &str| self.refused.get(name) == Some(&None);
                let mut members = item.as_object().into_iter().flatten().map(|(name, _)| name);
                let is_ours = |name: &String| name != "type" && is_one(NEEDED, name);
                let is_whole = members.clone().any(is_ours) || !members.any(|it| is_refused(it));
                is_whole && !item["type"].as_str().is_some_and(is_refused)
            };
            let list = list.into_iter().filter(is_taken);
            let list = list.map(|it| self.without(it, false));
            let list = list.collect::<Result<Vec<_>, _>>()?;
            return match self.refused.contains_key(IMAGES) {
                true => without_images(&list),
                false => to_raw_value(&list),
            };
        }
        if !text.starts_with('{') {
            return Ok(raw.to_owned());
        }
        let mut kept = BTreeMap::new();
        for (name, value) in serde_json::from_str::<BTreeMap<String, &RawValue>>(text)? {
            let name = match self.refused.get(&name) {
                Some(None) => continue,
                Some(Some(most)) if most.parse::<u64>().is_ok() => {
                    let most = most.parse().unwrap_or(u64::MAX);
                    let sent = value.get().parse().unwrap_or(most);
                    kept.insert(name, to_raw_value(&sent.min(most))?);
                    continue;
                }
                Some(Some(instead)) if instead != WORDS => instead.clone(),
                // `tool_choice` needs `tools`, and `stream_options` needs `stream`.
                None if is_top && self.needs_refused(&name) => continue,
                _ if name == "images" && self.refused.contains_key(IMAGES) => continue,
                _ if name == "parameters" && self.refused.contains_key(NO_PARAMETERS) => {
                    let parameters: Value = serde_json::from_str(value.get())?;
                    let properties = parameters["properties"].as_object();
                    if properties.is_none_or(Map::is_empty) {
                        continue;
                    }
                    name
                }
                _ => name,
            };
            let value = match is_one(OPAQUE, &name) {
                true => value.to_owned(),
                false => match (&*name, value.get()) {
                    ("content", "\"\"") if self.refused.contains_key(EMPTY) => {
                        to_raw_value(NOTHING)?
                    }
                    _ => self.without(value, false)?,
                },
            };
            kept.insert(name, value);
        }
        to_raw_value(&kept)
    }

    fn needs_refused(&self, name: &str) -> bool {
        let mut refused = self.refused.iter().filter(|(_, instead)| instead.is_none());
        refused.any(|(member, _)| {
            let one = member.strip_suffix('s').unwrap_or(member);
            name.strip_prefix(one)
                .is_some_and(|rest| rest.starts_with('_'))
        })
    }
}

/// Returns a list with words in place of its images; a text, if nothing else is in it.
fn without_images(list: &[Box<RawValue>]) -> serde_json::Result<Box<RawValue>> {
    let mut blocks: Vec<Value> = serde_json::from_str(to_raw_value(list)?.get())?;
    for block in &mut blocks {
        if block["type"] == "image" || block["type"] == "image_url" {
            *block = json!({ "type": "text", "text": NOT_SHOWN });
        }
    }
    let texts = blocks.iter().filter(|it| it["type"] == "text");
    let texts: Vec<_> = texts.map(|it| text_of(&it["text"])).collect();
    match texts.len() {
        0 => to_raw_value(list),
        all if all == blocks.len() => to_raw_value(&texts.join("\n")),
        _ => to_raw_value(&blocks),
    }
}

/// Returns a request with the instructions at the beginning of the first question.
fn without_system(body: &RawValue) -> serde_json::Result<Bytes> {
    let mut body: BTreeMap<String, Box<RawValue>> = serde_json::from_str(body.get())?;
    if let Some(list) = body.get_mut("messages") {
        let mut messages: Vec<Value> = serde_json::from_str(list.get())?;
        if let [first, second, ..] = &mut *messages
            && first["role"] == "system"
        {
            let text = text_of(&first["content"]);
            match &mut second["content"] {
                Value::Array(blocks) => blocks.insert(0, json!({ "type": "text", "text": text })),
                content => *content = format!("{text}\n\n{}", text_of(content)).into(),
            }
            messages.remove(0);
        }
        *list = to_raw_value(&messages)?;
    }
    Ok(serde_json::to_vec(&body)?.into())
}

/// Collects the names of all members.
fn names(value: &Value, into: &mut BTreeSet<String>) {
    for value in value.as_array().into_iter().flatten() {
        names(value, into);
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        into.insert(name.clone());
        if !is_one(OPAQUE, name) {
            names(value, into);
        }
    }
}

/// Returns the member of a request that a report refuses: the first that it names for programs or by its path, by its
/// name, or in a word such as `tool`.
fn refused(report: &Report, sent: &BTreeSet<String>) -> Option<String> {
    let says = report.message.to_lowercase();
    if finds(MISSING, &says) {
        return None;
    }
    let is_refusal = finds(NOT_TAKEN, &says);
    let words = Regex::new(r"[a-z_][\w.\[\]-]*").ok()?;
    let in_text = words.find_iter(&says).map(|word| {
        let before = says.get(..word.start()).unwrap_or_default();
        (word.as_str(), before.ends_with(['\'', '"', '`', '“']))
    });
    let for_programs = report.members.iter().map(|path| (path.as_str(), true));
    for_programs.chain(in_text).find_map(|(path, is_name)| {
        let parts = path.split(['.', '[', ']']);
        let parts: Vec<&str> = parts
            .filter(|it| it.contains(char::is_alphabetic))
            .collect();
        let last = parts.last()?.to_lowercase();
        let is_name = is_name || parts.len() > 1 || last.contains('_');
        let is_same = |name: &&String| {
            let low = name.to_lowercase();
            let is_plural = !is_name && low.strip_suffix('s') == Some(&*last);
            (low == last || is_plural) && !is_one(NEEDED, name)
        };
        let named = sent.iter().find(is_same).filter(|_| is_name || is_refusal);
        let speaks_of_tools = is_refusal
            && parts.len() == 1
            && finds("^(?:tool|function)", &last)
            && !last.contains("_call");
        let tools = sent.get("tools").filter(|_| speaks_of_tools);
        named.or(tools).cloned()
    })
}

#[cfg(test)]
mod tests;
