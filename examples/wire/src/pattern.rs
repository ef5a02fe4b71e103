//! [`Pattern`]: what a frame has to be: JSON in which some strings have a meaning.
//!
//! An object matches one that has at least its members, an array one of the same length. The name of a member that
//! may be absent or null ends in `?`, and `...` stands for more members. A string that begins with `$` stands for more than itself:
//!
//! | Pattern | Matches |
//! |---|---|
//! | `$any`, `$string`, `$number`, `$int`, `$bool`, `$object`, `$array` | a value of this type |
//! | `$count` | a whole number that is not negative |
//! | `$absent`, `$none` | a member that is not there; that is not there, or null |
//! | `$text` | a string that is not empty |
//! | `$date` | a time as in ISO 8601 |
//! | `$one:A\|B` | one of these strings |
//! | `$ne:TEXT` | anything but this string |
//! | `$re:REGEX`, `$nre:REGEX` | a string in which the expression is found, or is not |
//! | `$from:N`, `$to:N` | a number that is not less, or not more |
//! | `$max:N` | a string of at most N UTF-16 units, or a list of at most N items |
//! | `$data:N` | base 64, alone or as a data URL, of at most N bytes |
//! | `$bind:NAME`, `$bind:NAME:REGEX` | any value, or a string in which the expression is found, which `${NAME}` stands for in later lines |
//! | `["$each", P]`, `["$has", P]` | an array of which every element, or one, matches |
//! | `["$all", P, ..]`, `["$or", P, ..]` | what matches all of these, or one |
//! | `["$if", P, Q]` | what matches the second if it matches the first |

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use regex::Regex;
use rpc_core::Json;
use rpc_core::json::each_member;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::frame::{last, scalar};
use crate::play::Variables;

mod read;

/// The name of a member that stands for any others.
const OPEN: &str = "...";

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    kind: Kind,
    /// As it was written, for messages.
    text: String,
}

#[derive(Clone, Debug)]
enum Kind {
    Value(Value),
    Object(Vec<(String, bool, Pattern)>, Option<Exact>),
    /// As many items; of what was recorded, each difference is noted.
    Items(Vec<Pattern>, bool),
    Each(Box<Pattern>),
    Has(Box<Pattern>),
    All(Vec<Pattern>),
    Or(Vec<Pattern>),
    If(Box<Pattern>, Box<Pattern>),
    /// What the raw value begins with.
    Type(&'static str),
    Int,
    Count,
    Absent,
    None,
    Text,
    Date,
    One(Vec<String>),
    Not(String),
    Regex(Regex, bool),
    From(f64),
    To(f64),
    Max(usize),
    Data(usize),
    Bind(String, Option<Regex>),
    /// What was recorded of the member of this name, which may have any value.
    Recorded(String, bool),
}

/// That an object was recorded: it has no other members but those that are tolerated.
#[derive(Clone, Debug)]
struct Exact {
    path: String,
    tolerated: Arc<[String]>,
}

impl Exact {
    /// Returns whether a member may have any value: by its name, or the end of its path.
    fn tolerates(&self, name: &str) -> bool {
        let path = format!("{}.{name}", self.path);
        let ends = |it: &str| {
            path.strip_suffix(it)
                .is_some_and(|rest| rest.ends_with('.'))
        };
        self.tolerated.iter().any(|it| it == name || ends(it))
    }
}

/// What a pattern has bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The name of the variable.
    pub(crate) name: String,
    pub(crate) value: Value,
    /// Of a recording: the value in it, and the variable that leads back.
    pub(crate) was: Option<(String, String)>,
    /// Whether another value may come later.
    pub(crate) may_change: bool,
}

/// Where a value does not match.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The steps of the path, such as `.data[0].uid`.
    path: String,
    /// The value there, if there is one.
    pub(crate) found: Option<String>,
    pub(crate) expected: String,
    /// The value that was recorded there, if one was.
    pub(crate) recorded: Option<String>,
    /// Its first byte in the text, or that of what should have it.
    pub(crate) at: usize,
}

impl Mismatch {
    /// Returns the path, such as `data[0].uid`; empty for the frame.
    pub(crate) fn path(&self) -> &str {
        self.path.trim_start_matches('.')
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = &self.expected;
        let place = match self.path() {
            "" => "the frame",
            path => path,
        };
        match &self.found {
            Some(found) => write!(f, "{place} is {}, expected {expected}", short(found)),
            None => write!(f, "{place} is missing, expected {expected}"),
        }
    }
}

/// A member of an object: its name and its raw value.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of an object, which several look at.
pub(crate) type Members<'a> = Rc<Vec<Member<'a>>>;

/// Most objects of a frame whose members are kept.
const MAX_KNOWN: usize = 8;

/// Returns the members of an object.
pub(crate) fn members_of(raw: &str) -> Option<Members<'_>> {
    let mut members = Vec::with_capacity(8);
    each_member(raw, |name, raw| members.push((name, raw))).ok()?;
    Some(Rc::new(members))
}

/// A text that is matched, and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Walk<'a> {
    /// All of it.
    pub(crate) whole: &'a str,
    /// What is bound so far.
    pub(crate) bound: Vec<Bound>,
    /// What stands for the values of a recording, if it is compared with one.
    pub(crate) variables: Option<&'a Variables>,
    /// Where it differs from a recording.
    pub(crate) differs: Vec<Mismatch>,
    /// Objects whose members are known.
    pub(crate) known: Vec<(&'a str, Members<'a>)>,
}

impl<'a> Walk<'a> {
    /// Returns the members of an object in the text. It is read once.
    fn members(&mut self, raw: &'a str) -> Option<Members<'a>> {
        let mut known = self.known.iter();
        if let Some((_, members)) = known.find(|(it, _)| std::ptr::eq(*it, raw)) {
            return Some(Rc::clone(members));
        }
        let members = members_of(raw)?;
        if self.known.len() < MAX_KNOWN {
            self.known.push((raw, Rc::clone(&members)));
        }
        Some(members)
    }

    /// Matches a part of the value at this place. Of what was recorded, each difference is noted.
    fn below(
        &mut self,
        (step, place): (fmt::Arguments<'_>, usize),
        is_recorded: bool,
        pattern: &Pattern,
        found: Option<&'a str>,
    ) -> Result<(), Mismatch> {
        let before = self.differs.len();
        if let Err(mut error) = pattern.walk(found, self) {
            error.at = error.at.max(place);
            if !is_recorded {
                error.path.insert_str(0, &step.to_string());
                return Err(error);
            }
            self.differs.push(error);
        }
        for it in self.differs.iter_mut().skip(before) {
            it.path.insert_str(0, &step.to_string());
        }
        Ok(())
    }

    /// Notes what was not recorded.
    fn more(&mut self, step: String, found: &str) {
        self.differs.push(Mismatch {
            path: step,
            found: Some(found.to_owned()),
            expected: "no such member".to_owned(),
            ..Mismatch::default()
        });
    }
}

impl Pattern {
    /// Returns the pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Matches a text with the pattern, and returns what it binds.
    ///
    /// # Errors
    /// Where it differs, and how.
    pub(crate) fn matches(&self, text: &str) -> Result<Vec<Bound>, Mismatch> {
        let mut walk = Walk {
            whole: text,
            ..Walk::default()
        };
        self.walk(Some(text.trim()), &mut walk)?;
        Ok(walk.bound)
    }

    /// Matches a text with the pattern, or with what was recorded, and returns what it binds.
    ///
    /// # Errors
    /// All places where it differs from what was recorded, or the first one, and how.
    pub(crate) fn matches_all(
        &self,
        text: &str,
        variables: &Variables,
    ) -> Result<Vec<Bound>, Vec<Mismatch>> {
        let mut walk = Walk {
            whole: text,
            variables: Some(variables),
            ..Walk::default()
        };
        let is_json = |text| Json::new(text).is_ok();
        let outcome = match (is_json(text), is_json(&self.text)) {
            (true, _) => self.walk(Some(text.trim()), &mut walk),
            (false, false) => self.walk(Some(text), &mut walk),
            (false, true) => Err(Mismatch {
                found: Some(text.to_owned()),
                expected: self.expected(),
                ..Mismatch::default()
            }),
        };
        walk.differs.extend(outcome.err());
        match walk.differs.is_empty() {
            true => Ok(walk.bound),
            false => Err(walk.differs),
        }
    }

    /// Returns the names of the members that an object has here.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        let members = match &self.kind {
            Kind::Object(members, _) => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|(name, ..)| &**name)
    }

    const fn is_nested(&self) -> bool {
        matches!(
            self.kind,
            Kind::Object(..) | Kind::Each(_) | Kind::All(_) | Kind::Or(_)
        )
    }

    /// Adds the paths of the members of a value that this pattern has not, nor are `known`.
    pub(crate) fn unknown<'a>(
        &self,
        raw: &'a str,
        walk: &mut Walk<'a>,
        known: &[&str],
        path: &str,
        found: &mut Vec<String>,
    ) {
        match &self.kind {
            Kind::Object(patterns, _) => {
                let is_open = patterns.iter().any(|(name, ..)| name == OPEN);
                let members = walk.members(raw).unwrap_or_default();
                for (name, raw) in members.iter() {
                    match patterns.iter().find(|it| it.0 == *name) {
                        Some((_, _, pattern)) if pattern.is_nested() => {
                            pattern.unknown(raw, walk, &[], &format!("{path}{name}."), found);
                        }
                        Some(_) => {}
                        None if is_open || *raw == "null" || known.contains(&&**name) => {}
                        None => found.push(format!("{path}{name}")),
                    }
                }
            }
            Kind::Each(pattern) => {
                let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{}[{index}].", path.trim_end_matches('.'));
                    pattern.unknown(item.get(), walk, &[], &path, found);
                }
            }
            Kind::All(patterns) => {
                if let Some(first) = patterns.first() {
                    first.unknown(raw, walk, known, path, found);
                }
            }
            Kind::Or(patterns) => {
                if let Some(it) = patterns.iter().find(|it| it.walk(Some(raw), walk).is_ok()) {
                    it.unknown(raw, walk, known, path, found);
                }
            }
            _ => {}
        }
    }

    /// Matches a part of a text.
    ///
    /// # Errors
    /// Where it differs, and how.
    pub(crate) fn walk<'a>(
        &self,
        found: Option<&'a str>,
        walk: &mut Walk<'a>,
    ) -> Result<(), Mismatch> {
        let start = walk.whole.as_ptr().addr();
        let place = found.map_or(0, |raw| raw.as_ptr().addr().saturating_sub(start));
        let is_recorded = walk.variables.is_some();
        let differs = || {
            Err(Mismatch {
                found: found.map(str::to_owned),
                expected: self.expected(),
                recorded: is_recorded.then(|| self.text.clone()),
                at: place,
                ..Mismatch::default()
            })
        };
        let string = || found.filter(|raw| raw.starts_with('"')).and_then(scalar);
        let number = || found.and_then(|raw| raw.parse::<f64>().ok());
        let items = || {
            let raw = found.filter(|raw| raw.starts_with('['))?;
            serde_json::from_str::<Vec<&RawValue>>(raw).ok()
        };
        let is_it = match &self.kind {
            Kind::Object(patterns, exact) => {
                let object = found.filter(|raw| raw.starts_with('{'));
                let Some(members) = object.and_then(|raw| walk.members(raw)) else {
                    return differs();
                };
                for (name, is_optional, part) in patterns {
                    let have = last(&members, name);
                    let is_left_out = exact.is_none() && name == OPEN
                        || *is_optional && have.is_none_or(|raw| raw == "null");
                    if !is_left_out {
                        let is_recorded = exact.is_some();
                        walk.below((format_args!(".{name}"), place), is_recorded, part, have)?;
                    }
                }
                if let Some(exact) = exact {
                    let is_known = |name: &str| patterns.iter().any(|(known, ..)| known == name);
                    for (name, raw) in members.iter() {
                        if !is_known(name) && !exact.tolerates(name) {
                            walk.more(format!(".{name}"), raw);
                        }
                    }
                }
                true
            }
            Kind::Items(patterns, is_recorded) => {
                let fits = |items: &Vec<_>| *is_recorded || items.len() == patterns.len();
                let Some(items) = items().filter(fits) else {
                    return differs();
                };
                for (n, pattern) in patterns.iter().enumerate() {
                    let item = items.get(n).map(|item| item.get());
                    walk.below((format_args!("[{n}]"), 0), *is_recorded, pattern, item)?;
                }
                for (n, item) in items.iter().enumerate().skip(patterns.len()) {
                    walk.more(format!("[{n}]"), item.get());
                }
                true
            }
            Kind::Each(pattern) => {
                let Some(items) = items() else {
                    return differs();
                };
                for (n, item) in items.iter().enumerate() {
                    walk.below((format_args!("[{n}]"), 0), false, pattern, Some(item.get()))?;
                }
                true
            }
            Kind::Has(pattern) => {
                let mut items = items().unwrap_or_default().into_iter();
                items.any(|item| pattern.walk(Some(item.get()), walk).is_ok())
            }
            Kind::All(patterns) => {
                patterns.iter().try_for_each(|it| it.walk(found, walk))?;
                true
            }
            Kind::If(condition, pattern) => {
                return match condition.walk(found, walk) {
                    Ok(()) => pattern.walk(found, walk),
                    Err(_) => Ok(()),
                };
            }
            Kind::Or(patterns) => {
                // The last one says what is expected.
                let mut outcome = Ok(());
                for pattern in patterns {
                    outcome = pattern.walk(found, walk);
                    if outcome.is_ok() {
                        break;
                    }
                }
                return outcome;
            }
            Kind::Bind(name, regex) => {
                let is_it = regex
                    .as_ref()
                    .is_none_or(|it| string().is_some_and(|text| it.is_match(&text)));
                let value = found
                    .filter(|_| is_it)
                    .and_then(|raw| serde_json::from_str(raw).ok());
                let Some(value) = value else {
                    return differs();
                };
                walk.bound.push(Bound {
                    name: name.clone(),
                    value,
                    was: None,
                    may_change: true,
                });
                true
            }
            Kind::Recorded(name, true) => {
                if let Some(found) = found {
                    Variables::free(name, &self.text, found, &mut walk.bound);
                }
                true
            }
            Kind::Recorded(name, false) => {
                let Some((found, variables)) = found.zip(walk.variables) else {
                    return differs();
                };
                return match variables.stands(name, &self.text, found, &mut walk.bound) {
                    Ok(()) => Ok(()),
                    Err(expected) => differs().map_err(|error| Mismatch { expected, ..error }),
                };
            }
            Kind::Value(value) => found.is_some_and(|raw| match value {
                Value::Number(wanted) => wanted.as_f64().is_some_and(|it| raw.parse() == Ok(it)),
                Value::String(wanted) => {
                    raw.starts_with('"') && scalar(raw).is_some_and(|it| it == *wanted)
                }
                other => serde_json::from_str::<Value>(raw).is_ok_and(|it| it == *other),
            }),
            Kind::Type("") => found.is_some(),
            Kind::Type(first) => found.is_some_and(|raw| raw.starts_with(|c| first.contains(c))),
            Kind::Int => {
                found.is_some_and(|raw| raw.parse::<i64>().is_ok() || raw.parse::<u64>().is_ok())
            }
            Kind::Count => found.is_some_and(|raw| raw.parse::<u64>().is_ok()),
            Kind::Absent => found.is_none(),
            Kind::None => found.is_none_or(|raw| raw == "null"),
            Kind::Text => found.is_some_and(|raw| raw.starts_with('"') && raw.len() > 2),
            Kind::Date => string().is_some_and(|text| is_date(&text)),
            Kind::One(all) => string().is_some_and(|text| all.iter().any(|it| *it == text)),
            Kind::Not(other) => string().is_none_or(|text| text != other.as_str()),
            Kind::Regex(regex, is_found) => {
                string().is_some_and(|text| regex.is_match(&text) == *is_found)
            }
            Kind::From(least) => number().is_some_and(|it| it >= *least),
            Kind::To(most) => number().is_some_and(|it| it <= *most),
            // Most texts have less bytes.
            Kind::Max(most) => match items() {
                Some(items) => items.len() <= *most,
                None => {
                    found.is_some_and(|raw| raw.len() <= *most)
                        || string().is_some_and(|text| text.encode_utf16().count() <= *most)
                }
            },
            // Some send the data alone.
            Kind::Data(most) => string().is_some_and(|text| {
                let data = text.split_once(',').map_or(&*text, |(_, data)| data);
                data.trim_end_matches('=').len() / 4 * 3 <= *most
            }),
        };
        if is_it { Ok(()) } else { differs() }
    }

    /// Returns what would match, in words.
    fn expected(&self) -> String {
        match &self.kind {
            Kind::Type("") | Kind::Bind(_, None) => "any value".to_owned(),
            Kind::Type(_) | Kind::Int => format!("of type {}", self.text.trim_matches(['"', '$'])),
            Kind::Count => "a whole number that is not negative".to_owned(),
            Kind::Absent => "no such member".to_owned(),
            Kind::None => "no such member, or null".to_owned(),
            Kind::Text => "a string that is not empty".to_owned(),
            Kind::Date => "a time as in ISO 8601".to_owned(),
            Kind::One(all) => format!("one of {}", all.join(", ")),
            Kind::Not(other) => format!("anything but {other:?}"),
            Kind::Regex(regex, true) | Kind::Bind(_, Some(regex)) => {
                format!("a string like {regex}")
            }
            Kind::Regex(regex, false) => format!("a string unlike {regex}"),
            Kind::From(least) => format!("{least} or more"),
            Kind::To(most) => format!("{most} or less"),
            Kind::Max(most) => format!("a length of at most {most}"),
            Kind::Data(most) => format!("at most {most} bytes"),
            Kind::Items(patterns, false) => format!("{} elements", patterns.len()),
            Kind::Has(pattern) => format!("an element like {}", pattern.text),
            Kind::Recorded(..) => self.text.clone(),
            _ => short(&self.text),
        }
    }
}

/// Returns whether a text is a time as in ISO 8601, of any place.
fn is_date(text: &str) -> bool {
    let (time, zone) = text.split_at_checked(19).unwrap_or((text, ""));
    let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let is_zone = matches!(zone, "" | "Z" | "z")
        || zone.starts_with(['+', '-'])
            && zone.len() < 7
            && zone
                .bytes()
                .skip(1)
                .all(|it| it.is_ascii_digit() || it == b':');
    is_zone && rpc_core::timestamp::parse(&format!("{time}Z")).is_some()
}

/// Shortens a text for a message.
pub(crate) fn short(text: &str) -> String {
    match crate::text::shortened(text, 300) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(short) => format!("{short} ({} bytes)", text.len()),
    }
}

#[cfg(test)]
mod tests;
