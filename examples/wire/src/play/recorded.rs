//! Values of a recording, and the live ones that stand for them: variables whose names are the recorded values.

use std::borrow::Cow;
use std::collections::HashMap;

use rpc_core::Json;
use rpc_core::json::each_member;
use serde_json::Value;
use serde_json::value::RawValue;

use super::roles::{LONG, Role, role};
use super::variables::Variables;
use crate::frame;
use crate::pattern::Bound;

/// What is known of a recording beside the variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    /// From live values back.
    back: HashMap<String, String>,
    /// Long values that differ: they may stand within others.
    within: Vec<(String, String)>,
}

/// Returns the name of the variable for a recorded value. A short one has the name of its member in front, because
/// others may have the same value.
fn variable(member: &str, text: &str) -> String {
    let member = match text.len() < LONG {
        true => member.replace('_', "").to_ascii_lowercase(),
        false => String::new(),
    };
    format!("{member}:{text}")
}

/// Returns the text of a raw string or whole number; `None` for other values.
fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    let is_number = || raw.bytes().all(|byte| byte.is_ascii_digit());
    frame::scalar(raw).filter(|_| raw.starts_with('"') || is_number())
}

impl Variables {
    /// Creates the variables of a recording, of which these texts have others in their place wherever they stand.
    pub(crate) fn of_recording(bound: &[(String, String)]) -> Self {
        let mut this = Self::default();
        this.recorded = Some(Recorded {
            within: bound.to_vec(),
            ..Recorded::default()
        });
        for (was, is) in bound {
            this.set(format!(":{was}"), is);
        }
        this
    }

    /// Returns whether a live value stands for the recorded one of a member, and adds what it binds. Both are raw.
    ///
    /// # Errors
    /// What is expected in its place.
    pub(crate) fn stands(
        &self,
        member: &str,
        recorded: &str,
        live: &str,
        new: &mut Vec<Bound>,
    ) -> Result<(), String> {
        let differs = || Err(recorded.to_owned());
        let is_string = |raw: &str| raw.starts_with('"');
        let (Some(was), Some(is)) = (scalar(recorded), scalar(live)) else {
            let numbers = recorded.parse::<f64>().ok().zip(live.parse::<f64>().ok());
            let is_same = numbers.is_some_and(|(was, is)| {
                (was - is).abs() <= f64::EPSILON * was.abs().max(is.abs())
                    || role(member, recorded, live) == Role::Time
            });
            let is_same = is_same || self.within(recorded).as_deref().unwrap_or(recorded) == live;
            return if is_same { Ok(()) } else { differs() };
        };
        if is_string(recorded) != is_string(live) {
            return differs();
        }
        let role = role(member, &was, &is);
        let name = variable(member, &was);
        let value: Value = serde_json::from_str(live).unwrap_or_default();
        if role == Role::Made {
            let is_it = |it: &&Bound| !it.may_change && it.name == name;
            let known = new.iter().find(is_it).map(|it| &it.value);
            match known.or_else(|| self.values.get(&name)) {
                Some(known) if *known == value => return Ok(()),
                Some(known) => return Err(known.to_string()),
                None => {}
            }
            let back = self.recorded.as_ref();
            let back = back.and_then(|it| it.back.get(&variable(member, &is)));
            if back.is_some_and(|other| *other != was) {
                return differs();
            }
        }
        if role == Role::Content {
            // Ids stand within texts and paths, too.
            let is_same = was == is || self.within(&was).is_some_and(|it| it == is);
            return if is_same { Ok(()) } else { differs() };
        }
        new.push(Bound {
            name,
            was: Some((was.into_owned(), variable(member, &is))),
            value,
            may_change: role == Role::Time,
        });
        Ok(())
    }

    /// Binds a member that may have any value.
    pub(crate) fn free(member: &str, recorded: &str, live: &str, new: &mut Vec<Bound>) {
        if let (Some(was), Some(is)) = (scalar(recorded), scalar(live)) {
            new.push(Bound {
                name: variable(member, &was),
                was: Some((was.into_owned(), variable(member, &is))),
                value: serde_json::from_str(live).unwrap_or_default(),
                may_change: true,
            });
        }
    }

    /// Returns a text of the recording with the values that stand for its own.
    pub(crate) fn live(&self, text: &str) -> String {
        let whole = serde_json::from_str::<&RawValue>(text).ok();
        let Some(whole) = whole else {
            return self.within(text).unwrap_or_else(|| text.to_owned());
        };
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        each_leaf("", whole.get(), &mut |member, raw| {
            let Some(was) = scalar(raw) else { return };
            let is_string = raw.starts_with('"');
            let bound = self.values.get(&variable(member, &was));
            let bound = bound.filter(|value| value.is_string() == is_string);
            let within = || self.within(&was).filter(|_| is_string);
            let live = bound.map(Value::to_string);
            let live = live.or_else(|| Some(Json::string(&within()?).get().to_owned()));
            if let Some(live) = live.filter(|it| it != raw) {
                let start = raw.as_ptr().addr() - text.as_ptr().addr();
                out.push_str(text.get(at..start).unwrap_or_default());
                out.push_str(&live);
                at = start + raw.len();
            }
        });
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// Replaces long values within a text; `None` if there are none.
    pub(crate) fn within(&self, text: &str) -> Option<String> {
        let mut replaced: Option<String> = None;
        for (was, is) in self.recorded.iter().flat_map(|it| &it.within) {
            let now = replaced.as_deref().unwrap_or(text);
            if now.contains(was.as_str()) {
                replaced = Some(replace_words(now, was, is));
            }
        }
        replaced
    }
}

impl Recorded {
    /// Notes what a value of the recording was bound to.
    pub(super) fn note(&mut self, bound: &Bound, is_new: bool) {
        let (Some((was, back)), Some(is)) = (&bound.was, text_of(&bound.value)) else {
            return;
        };
        if !bound.may_change {
            self.back.insert(back.clone(), was.clone());
        }
        if is_new && was.len() >= LONG && *was != is {
            self.within.retain(|(known, _)| known != was);
            self.within.push((was.clone(), is));
        }
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Passes the values in a raw value that hold no others, each with the last name on its path.
fn each_leaf<'a>(name: &str, raw: &'a str, take: &mut impl FnMut(&str, &'a str)) {
    match raw.as_bytes().first() {
        Some(b'{') => {
            // It was parsed before.
            let _valid = each_member(raw, |name, raw| each_leaf(&name, raw, take));
        }
        Some(b'[') => {
            let items: Vec<&'a RawValue> = serde_json::from_str(raw).unwrap_or_default();
            items
                .iter()
                .for_each(|item| each_leaf(name, item.get(), take));
        }
        _ => take(name, raw),
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
