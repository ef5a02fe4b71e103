//! [`Bindings`]: which live values stand for those of the recording.

use std::collections::HashMap;

use super::leaves::{Leaf, leaves, scalar};
use super::names::{LONG, Role, role};
use rpc_core::Json;

/// A value of the recording: its text, and for a short one the name of its member, because others may
/// have the same.
type Key = (String, String);

/// Values of the recording, and what was sent in their place.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    /// From the recording to the raw live value.
    live: HashMap<Key, String>,
    /// From live values back.
    recorded: HashMap<Key, String>,
    /// Long values that differ: they may stand within others.
    within: Vec<(String, String)>,
}

/// What one frame binds, if it is what was recorded.
pub(super) type New = Vec<Bound>;

/// A value of the recording, and the raw one that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    name: String,
    was: String,
    raw: String,
    /// Whether it may change, such as a time.
    may_change: bool,
}

fn key(name: &str, text: &str) -> Key {
    let scope = match text.len() < LONG {
        true => name.replace('_', "").to_ascii_lowercase(),
        false => String::new(),
    };
    (scope, text.to_owned())
}

impl Bindings {
    /// Compares a value with the recording. `Err` has what was expected.
    pub(super) fn compare(
        &self,
        recorded: &Leaf<'_>,
        live: &Leaf<'_>,
        any: bool,
        new: &mut New,
    ) -> Result<(), String> {
        let scalars = (recorded.scalar(), live.scalar());
        let (Some(was), Some(is)) = scalars else {
            let same = any || recorded.raw == live.raw || same_number(recorded, live);
            return match same {
                true => Ok(()),
                false => Err(recorded.raw.to_owned()),
            };
        };
        let same_type = recorded.is_string() == live.is_string();
        let role = match same_type {
            true => role(&recorded.name, &was, &is),
            false => Role::Content,
        };
        let bound = |may_change| Bound {
            name: recorded.name.clone(),
            was: was.clone().into_owned(),
            raw: live.raw.to_owned(),
            may_change,
        };
        if any || role == Role::Time {
            new.push(bound(true));
            return Ok(());
        }
        if role == Role::Made {
            return match self.find(&recorded.name, &was, new) {
                Some(known) if known == live.raw => Ok(()),
                Some(known) => Err(known),
                None => {
                    let other = self
                        .recorded
                        .get(&key(&live.name, &is))
                        .filter(|other| **other != was);
                    if other.is_some() {
                        return Err(recorded.raw.to_owned());
                    }
                    new.push(bound(false));
                    Ok(())
                }
            };
        }
        // Ids stand within texts and paths, too.
        if same_type && (was == is || self.replaced_within(&was).is_some_and(|it| it == is)) {
            return Ok(());
        }
        Err(recorded.raw.to_owned())
    }

    fn find(&self, name: &str, was: &str, new: &New) -> Option<String> {
        let key = key(name, was);
        let is_it = |it: &&Bound| !it.may_change && self::key(&it.name, &it.was) == key;
        let of_frame = new.iter().find(is_it).map(|it| &it.raw);
        of_frame.or_else(|| self.live.get(&key)).cloned()
    }

    /// Binds what a frame has.
    pub(super) fn bind(&mut self, new: New) {
        for bound in new {
            let Bound { name, was, raw, .. } = bound;
            let Some(is) = scalar(&raw).map(std::borrow::Cow::into_owned) else {
                continue;
            };
            if !bound.may_change {
                self.recorded.insert(key(&name, &is), was.clone());
            }
            let is_new = self.live.insert(key(&name, &was), raw.clone()).as_ref() != Some(&raw);
            if is_new && was.len() >= LONG && was != is {
                self.within.retain(|(known, _)| *known != was);
                self.within.push((was, is));
            }
        }
    }

    /// Binds a text wherever it stands.
    pub(super) fn bind_text(&mut self, was: &str, is: &str) {
        self.within.push((was.to_owned(), is.to_owned()));
        let key = (String::new(), was.to_owned());
        self.live.insert(key, Json::string(is).get().to_owned());
    }

    /// Returns a frame of the recording with the values that stand for its own.
    pub(super) fn play(&self, text: &str) -> String {
        let Some(found) = leaves(text) else {
            return self
                .replaced_within(text)
                .unwrap_or_else(|| text.to_owned());
        };
        let (mut out, mut at) = (String::new(), 0);
        for leaf in &found {
            let Some(was) = leaf.scalar() else { continue };
            let bound = self.live.get(&key(&leaf.name, &was)).cloned();
            let bound = bound.filter(|raw| raw.starts_with('"') == leaf.is_string());
            let within = || self.replaced_within(&was).filter(|_| leaf.is_string());
            let replaced = bound.or_else(|| Some(Json::string(&within()?).get().to_owned()));
            if let Some(replaced) = replaced.filter(|it| it != leaf.raw) {
                out.push_str(text.get(at..leaf.start).unwrap_or_default());
                out.push_str(&replaced);
                at = leaf.start + leaf.raw.len();
            }
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// Replaces long values within a text; `None` if there are none.
    pub(super) fn replaced_within(&self, text: &str) -> Option<String> {
        let mut replaced: Option<String> = None;
        for (was, is) in &self.within {
            let now = replaced.as_deref().unwrap_or(text);
            if now.contains(was.as_str()) {
                replaced = Some(replace_words(now, was, is));
            }
        }
        replaced
    }
}

/// Replaces a word where it is not part of a longer one.
fn replace_words(text: &str, was: &str, is: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for (found, _) in text.match_indices(was) {
        let end = found + was.len();
        let before = text.get(..found).and_then(|it| it.chars().next_back());
        let behind = text.get(end..).and_then(|it| it.chars().next());
        let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
        if found < at || is_part(before) || is_part(behind) {
            continue;
        }
        out.push_str(text.get(at..found).unwrap_or_default());
        out.push_str(is);
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

fn same_number(one: &Leaf<'_>, other: &Leaf<'_>) -> bool {
    match (one.raw.parse::<f64>(), other.raw.parse::<f64>()) {
        (Ok(a), Ok(b)) => {
            (a - b).abs() <= f64::EPSILON * a.abs().max(b.abs())
                || role(&one.name, one.raw, other.raw) == Role::Time
        }
        _ => false,
    }
}
