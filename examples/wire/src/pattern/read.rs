//! How patterns are read: from JSON as people write it, or from what was recorded.

use std::num::{ParseFloatError, ParseIntError};
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Exact, Kind, Pattern, members_of};

/// How a raw value of a type begins.
fn type_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "any" => "",
        "string" => "\"",
        "number" => "-0123456789",
        "bool" => "tf",
        "object" => "{",
        "array" => "[",
        _ => return None,
    })
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(value: &Value) -> Result<Self, String> {
        let one = |value: &Value| Self::new(value).map(Box::new);
        let all = |items: &[Value]| items.iter().map(Self::new).collect::<Result<Vec<_>, _>>();
        let kind = match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(word) => {
                    word_of(word).map_err(|why| format!("{text} is not a pattern{why}"))?
                }
                None => Kind::Value(value.clone()),
            },
            Value::Array(items) => match &items[..] {
                [Value::String(word), each] if word == "$each" => Kind::Each(one(each)?),
                [Value::String(word), any] if word == "$has" => Kind::Has(one(any)?),
                [Value::String(word), rest @ ..] if word == "$all" => Kind::All(all(rest)?),
                [Value::String(word), condition, then] if word == "$if" => {
                    Kind::If(one(condition)?, one(then)?)
                }
                [Value::String(word), rest @ ..] if word == "$or" => Kind::Or(all(rest)?),
                items => Kind::Items(all(items)?, false),
            },
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let optional = name.strip_suffix('?');
                    let pattern = Self::new(value)?;
                    Ok((
                        optional.unwrap_or(name).to_owned(),
                        optional.is_some(),
                        pattern,
                    ))
                });
                Kind::Object(members.collect::<Result<_, String>>()?, None)
            }
            _ => Kind::Value(value.clone()),
        };
        let text = value.to_string();
        Ok(Self { kind, text })
    }

    /// Returns the pattern that matches what was recorded: the same members and no others, where ids and the like may be
    /// others that are bound, and times may differ. The `tolerated` members may have any value: their names, or the
    /// ends of their paths.
    pub(crate) fn recorded(text: &str, tolerated: &Arc<[String]>) -> Self {
        let whole = serde_json::from_str::<&RawValue>(text).map_or(text, RawValue::get);
        Self::of_raw(whole, "", "", tolerated)
    }

    fn of_raw(raw: &str, path: &str, name: &str, tolerated: &Arc<[String]>) -> Self {
        let kind = match (raw.as_bytes().first(), members_of(raw)) {
            (Some(b'{'), Some(members)) => {
                let exact = Exact {
                    path: path.to_owned(),
                    tolerated: Arc::clone(tolerated),
                };
                let members = members.iter().map(|(name, raw)| {
                    let below = match exact.tolerates(name) {
                        true => Self {
                            kind: Kind::Recorded(name.to_string(), true),
                            text: (*raw).to_owned(),
                        },
                        false => Self::of_raw(raw, &format!("{path}.{name}"), name, tolerated),
                    };
                    (name.to_string(), false, below)
                });
                Kind::Object(members.collect(), Some(exact))
            }
            (Some(b'['), _) => {
                let items: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
                let items = items.iter().enumerate().map(|(n, item)| {
                    Self::of_raw(item.get(), &format!("{path}[{n}]"), name, tolerated)
                });
                Kind::Items(items.collect(), true)
            }
            _ => Kind::Recorded(name.to_owned(), false),
        };
        let text = raw.to_owned();
        Self { kind, text }
    }
}

fn word_of(word: &str) -> Result<Kind, String> {
    let regex = |text: &str| Regex::new(text).map_err(|error| format!(": {error}"));
    let (name, argument) = word.split_once(':').unwrap_or((word, ""));
    let wrong = |error: &dyn std::fmt::Display| format!(": {error}");
    let number = || {
        argument
            .parse()
            .map_err(|error: ParseFloatError| wrong(&error))
    };
    let size = || {
        argument
            .parse()
            .map_err(|error: ParseIntError| wrong(&error))
    };
    Ok(match name {
        "int" => Kind::Int,
        "count" => Kind::Count,
        "absent" => Kind::Absent,
        "none" => Kind::None,
        "text" => Kind::Text,
        "date" => Kind::Date,
        "one" => Kind::One(argument.split('|').map(str::to_owned).collect()),
        "ne" => Kind::Not(argument.to_owned()),
        "re" => Kind::Regex(regex(argument)?, true),
        "nre" => Kind::Regex(regex(argument)?, false),
        "from" => Kind::From(number()?),
        "to" => Kind::To(number()?),
        "max" => Kind::Max(size()?),
        "data" => Kind::Data(size()?),
        "bind" => match argument.split_once(':') {
            Some((name, text)) => Kind::Bind(name.to_owned(), Some(regex(text)?)),
            None => Kind::Bind(argument.to_owned(), None),
        },
        name => Kind::Type(type_of(name).ok_or_else(String::new)?),
    })
}
