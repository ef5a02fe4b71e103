//! Patterns of frames: JSON in which some strings have a meaning.
//!
//! An object matches one that has at least its members, an array one of the same length. A string
//! that begins with `$` stands for more than itself:
//!
//! | Pattern | Matches |
//! |---|---|
//! | `$any`, `$string`, `$number`, `$int`, `$bool`, `$object`, `$array` | a value of this type |
//! | `$absent` | a member that is not there |
//! | `$none` | a member that is not there, or null |
//! | `$text` | a string that is not empty |
//! | `$ne:TEXT` | anything but this string |
//! | `$re:REGEX`, `$nre:REGEX` | a string in which the expression is found, or is not |
//! | `$bind:NAME`, `$bind:NAME:REGEX` | any value, or a string in which the expression is found, which `${NAME}` stands for in later lines |
//! | `["$each", P]`, `["$has", P]` | an array of which every element, or one, matches |

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// What patterns have bound, and what was set before: by name.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: BTreeMap<String, Value>,
    /// Parts of frames, which stand as they are.
    parts: BTreeMap<String, String>,
    /// Whether a variable that is not set stands for 0: to see whether a script can be read.
    lenient: bool,
}

/// What begins the error of a variable that is not set.
pub(super) const NEEDS: &str = "needs --set ";
/// The longest text that a variable or a padding may become.
const MAX_PADDING: usize = 8 * 1024 * 1024;

impl Variables {
    /// Sets a variable to a text.
    pub fn set(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.values.insert(name.into(), Value::String(text.into()));
    }

    /// Sets a part of frames, in which other variables may stand, unless there is such a variable.
    pub(super) fn set_part(&mut self, name: &str, text: &str) -> Result<(), String> {
        // It would never end.
        if text.contains(&format!("${{{name}}}")) {
            return Err(format!("{name} contains itself"));
        }
        self.parts.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// Lets variables that are not set stand for 0.
    pub(super) fn lenient() -> Self {
        Self {
            lenient: true,
            ..Self::default()
        }
    }

    /// Returns whether the variable is set, and not empty.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values
            .get(name)
            .is_some_and(|value| *value != Value::String(String::new()))
            || self.parts.contains_key(name)
    }

    /// Returns the names of the variables that are set.
    pub(super) fn names(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    /// Returns the text of a variable.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Keeps what a pattern has bound.
    pub fn bind(&mut self, bound: Vec<(String, Value)>) {
        self.values.extend(bound);
    }

    /// Replaces `${NAME}` by the variable, escaped for a JSON string, and `${pad:N}` by N letters.
    ///
    /// # Errors
    /// The name of a variable that is not set.
    pub fn expand(&self, text: &str) -> Result<String, String> {
        let mut rest = text;
        let mut out = String::with_capacity(text.len());
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((name, after)) = behind.split_once('}') else {
                break;
            };
            out.push_str(before);
            if let Some(length) = name.strip_prefix("pad:") {
                let length: usize = length.parse().map_err(|_| format!("bad length {name}"))?;
                out.extend(std::iter::repeat_n('x', length.min(MAX_PADDING)));
            } else {
                match self.values.get(name) {
                    Some(Value::String(text)) => {
                        let quoted = Value::from(text.as_str()).to_string();
                        out.push_str(
                            quoted
                                .trim_start_matches('"')
                                .strip_suffix('"')
                                .unwrap_or_default(),
                        );
                    }
                    Some(value) => out.push_str(&value.to_string()),
                    None => match self.parts.get(name) {
                        Some(part) => out.push_str(&self.expand(part)?),
                        None if self.lenient => out.push('0'),
                        None => return Err(format!("{NEEDS}{name}=...")),
                    },
                }
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Matches a value with a pattern, and returns what the pattern binds.
///
/// # Errors
/// Where it differs, and how.
pub(super) fn matches(pattern: &Value, found: &Value) -> Result<Vec<(String, Value)>, String> {
    let mut bound = Vec::new();
    walk(pattern, Some(found), &mut String::new(), &mut bound)?;
    Ok(bound)
}

/// Returns whether a pattern and what is in it can be read.
///
/// # Errors
/// What is wrong.
pub(super) fn check(pattern: &Value) -> Result<(), String> {
    match pattern {
        Value::String(text) => match text.strip_prefix('$') {
            None => Ok(()),
            Some(word) => match word.split_once(':') {
                Some(("re" | "nre", regex)) => {
                    Regex::new(regex).map(drop).map_err(|e| e.to_string())
                }
                Some(("bind", argument)) => {
                    let regex = argument.split_once(':').map_or("", |(_, regex)| regex);
                    Regex::new(regex).map(drop).map_err(|e| e.to_string())
                }
                Some(("ne", _)) => Ok(()),
                None if type_of(word).is_some() => Ok(()),
                _ if ["absent", "none", "text", "each", "has"].contains(&word) => Ok(()),
                _ => Err(format!("{text} is not a pattern")),
            },
        },
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(members) => members.values().try_for_each(check),
        _ => Ok(()),
    }
}

fn type_of(word: &str) -> Option<fn(&Value) -> bool> {
    Some(match word {
        "any" => |_| true,
        "string" => Value::is_string,
        "number" => Value::is_number,
        "int" => |value| value.is_i64() || value.is_u64(),
        "bool" => Value::is_boolean,
        "object" => Value::is_object,
        "array" => Value::is_array,
        _ => return None,
    })
}

fn walk(
    pattern: &Value,
    found: Option<&Value>,
    at: &mut String,
    bound: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    let place = |at: &str| {
        if at.is_empty() {
            "the frame".to_owned()
        } else {
            at.to_owned()
        }
    };
    let differs = |wanted: &str, at: &str| {
        let found = found.map_or("nothing".to_owned(), Value::to_string);
        Err(format!(
            "{} is {}, expected {wanted}",
            place(at),
            short(&found)
        ))
    };
    match (pattern, found) {
        (Value::String(text), _) if text.starts_with('$') => {
            special(text, found, bound).or_else(|wanted| differs(&wanted, at))
        }
        (Value::Object(members), Some(Value::Object(have))) => members
            .iter()
            .try_for_each(|(name, pattern)| below(name, pattern, have.get(name), at, bound)),
        (Value::Array(items), Some(Value::Array(have))) => match &items[..] {
            [Value::String(word), each] if word == "$each" => {
                let mut items = have.iter().enumerate();
                items.try_for_each(|(n, item)| below(&n.to_string(), each, Some(item), at, bound))
            }
            [Value::String(word), one] if word == "$has" => {
                let has = have
                    .iter()
                    .any(|item| walk(one, Some(item), &mut at.clone(), bound).is_ok());
                if has {
                    Ok(())
                } else {
                    differs(&format!("an element like {one}"), at)
                }
            }
            _ if items.len() == have.len() => {
                let mut pairs = items.iter().zip(have).enumerate();
                pairs.try_for_each(|(n, (pattern, item))| {
                    below(&n.to_string(), pattern, Some(item), at, bound)
                })
            }
            _ => differs(&format!("{} elements", items.len()), at),
        },
        (Value::Number(wanted), Some(Value::Number(have))) if wanted.as_f64() == have.as_f64() => {
            Ok(())
        }
        (wanted, Some(have)) if wanted == have => Ok(()),
        _ => differs(&short(&pattern.to_string()), at),
    }
}

/// Walks into a member or an element.
fn below(
    name: &str,
    pattern: &Value,
    found: Option<&Value>,
    at: &mut String,
    bound: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    let len = at.len();
    at.push('/');
    at.push_str(name);
    walk(pattern, found, at, bound)?;
    at.truncate(len);
    Ok(())
}

fn special(
    text: &str,
    found: Option<&Value>,
    bound: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    let word = text.strip_prefix('$').unwrap_or(text);
    let (word, argument) = word.split_once(':').unwrap_or((word, ""));
    let string = found.and_then(Value::as_str);
    let found_in = |regex: &str| {
        Regex::new(regex)
            .map(|regex| string.is_some_and(|text| regex.is_match(text)))
            .unwrap_or(false)
    };
    let (holds, wanted) = match word {
        "absent" => (found.is_none(), "no such member".to_owned()),
        "none" => (
            found.is_none_or(Value::is_null),
            "no such member, or null".to_owned(),
        ),
        "text" => (
            string.is_some_and(|text| !text.is_empty()),
            "a string that is not empty".to_owned(),
        ),
        "ne" => (
            string != Some(argument),
            format!("anything but {argument:?}"),
        ),
        "re" => (found_in(argument), format!("a string like {argument}")),
        "nre" => (
            string.is_some() && !found_in(argument),
            format!("a string unlike {argument}"),
        ),
        "bind" => {
            let value = found.ok_or("any value")?;
            let (argument, regex) = argument.split_once(':').unwrap_or((argument, ""));
            if !regex.is_empty() && !found_in(regex) {
                return Err(format!("a string like {regex}"));
            }
            bound.push((argument.to_owned(), value.clone()));
            return Ok(());
        }
        word => {
            let is_type = type_of(word).unwrap_or(|_| false);
            let wanted = if word == "any" {
                "any value".to_owned()
            } else {
                format!("of type {word}")
            };
            (found.is_some_and(is_type), wanted)
        }
    };
    if holds { Ok(()) } else { Err(wanted) }
}

/// Shortens a text for a message.
pub(super) fn short(text: &str) -> String {
    match crate::text::shortened(text, 300) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(short) => format!("{short} ({} bytes)", text.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_says_where_a_frame_differs() {
        for (pattern, frame, why) in [
            (json!({"id":"1"}), json!({"id":"1","more":2}), None),
            (
                json!({"id":"1"}),
                json!({"id":"2"}),
                Some("/id is \"2\", expected \"1\""),
            ),
            (
                json!({"a":{"b":"$int"}}),
                json!({"a":{"b":1.5}}),
                Some("/a/b is 1.5, expected of type int"),
            ),
            (
                json!({"e":"$absent"}),
                json!({"e":null}),
                Some("/e is null, expected no such member"),
            ),
            (json!({"e":"$none"}), json!({"e":null}), None),
            (
                json!({"e":"$any"}),
                json!({}),
                Some("/e is nothing, expected any value"),
            ),
            (json!({"n":1}), json!({"n":1.0}), None),
            (
                json!(["$each", "$string"]),
                json!(["a", 1]),
                Some("/1 is 1, expected of type string"),
            ),
            (json!(["$has",{"a":1}]), json!([{}, {"a":1}]), None),
            (
                json!(["$has",{"a":1}]),
                json!([{}]),
                Some("the frame is [{}], expected an element like {\"a\":1}"),
            ),
            (
                json!("$nre:^a"),
                json!(5),
                Some("the frame is 5, expected a string unlike ^a"),
            ),
        ] {
            let result = matches(&pattern, &frame);
            match why {
                None => assert!(result.is_ok(), "{pattern} {frame}: {result:?}"),
                Some(why) => {
                    let error = result.unwrap_err();
                    assert!(
                        error.ends_with(why.trim_start_matches("the frame")),
                        "{pattern}: {error}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_value_that_a_pattern_binds_is_used_in_later_lines() {
        let mut variables = Variables::default();
        variables.bind(
            matches(
                &json!({"id":"$bind:id","n":"$bind:n"}),
                &json!({"id":"a\"b","n":7}),
            )
            .unwrap(),
        );
        assert_eq!(
            variables.expand(r#"{"id":"${id}","n":${n}}"#).unwrap(),
            r#"{"id":"a\"b","n":7}"#
        );
        assert_eq!(variables.expand("${pad:3}").unwrap(), "xxx");
        assert!(variables.expand("${other}").is_err());
        assert_eq!(variables.expand("${open").unwrap(), "${open");
    }

    #[test]
    fn an_invalid_pattern_is_found_before_it_is_used() {
        assert!(check(&json!({"a":["$each","$string"]})).is_ok());
        assert!(check(&json!({"a":"$strin"})).is_err());
        assert!(check(&json!("$re:(")).is_err());
    }
}
