//! [`Variables`]: what was set or bound, by name, and texts in which it stands.

use std::collections::BTreeMap;

use serde_json::Value;

use super::recorded::Recorded;
use crate::pattern::Bound;

/// What patterns have bound, and what was set before: by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    pub(super) values: BTreeMap<String, Value>,
    /// Parts of frames, which stand as they are.
    parts: BTreeMap<String, String>,
    /// Whether a variable that is not set stands for 0: to see whether a script can be read.
    lenient: bool,
    /// Of a recording, what is known beside.
    pub(super) recorded: Option<Recorded>,
}

/// What begins the error of a variable that is not set.
pub(crate) const NEEDS: &str = "needs --set ";
/// The longest text that a variable or a padding may become.
const MAX_PADDING: usize = 8 * 1024 * 1024;

impl Variables {
    /// Sets a variable to a text.
    pub(crate) fn set(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.values.insert(name.into(), Value::String(text.into()));
    }

    /// Sets a part of frames, in which other variables may stand, unless there is such a variable.
    pub(crate) fn set_part(&mut self, name: &str, text: &str) -> Result<(), String> {
        // It would never end.
        if text.contains(&format!("${{{name}}}")) {
            return Err(format!("{name} contains itself"));
        }
        self.parts.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// Lets variables that are not set stand for 0.
    pub(crate) fn lenient() -> Self {
        Self {
            lenient: true,
            ..Self::default()
        }
    }

    /// Returns whether the variable is set, and not empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values
            .get(name)
            .is_some_and(|value| *value != Value::String(String::new()))
            || self.parts.contains_key(name)
    }

    /// Returns the names of the variables that are set.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    /// Returns the text of a variable.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Keeps what a pattern has bound.
    pub(crate) fn bind(&mut self, all: Vec<Bound>) {
        for bound in all {
            let known = self.values.get(&bound.name);
            let is_new = known != Some(&bound.value);
            if let Some(recorded) = &mut self.recorded {
                recorded.note(&bound, is_new);
            }
            self.values.insert(bound.name, bound.value);
        }
    }

    /// Replaces `${NAME}` by the variable, escaped for a JSON string, and `${pad:N}` by N letters; in a recording, its
    /// values by those that stand for them.
    ///
    /// # Errors
    /// The name of a variable that is not set.
    pub(crate) fn expand(&self, text: &str) -> Result<String, String> {
        if self.recorded.is_some() {
            return Ok(self.live(text));
        }
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
                    Some(value) => {
                        let raw = value.to_string();
                        let inner = raw.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                        out.push_str(inner.unwrap_or(&raw));
                    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn a_value_that_a_pattern_binds_is_used_in_later_lines() {
        let mut variables = Variables::default();
        variables.bind(
            Pattern::new(&json!({"id":"$bind:id","n":"$bind:n"}))
                .unwrap()
                .matches(r#"{"id":"a\"b","n":7}"#)
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
}
