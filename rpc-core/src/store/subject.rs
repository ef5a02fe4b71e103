//! Subjects and patterns, and what the configuration of a log has to be.

use std::time::Duration;

use super::{LogConfig, StoreError};

fn is_token(text: &str) -> bool {
    let is_special = |it: char| it.is_whitespace() || it.is_control() || "*>.".contains(it);
    !text.is_empty() && !text.contains(is_special)
}

fn is_pattern(text: &str) -> bool {
    let tokens = text.strip_suffix(".>").unwrap_or(text).split('.');
    text == ">" || tokens.into_iter().all(|it| it == "*" || is_token(it))
}

fn check(holds: bool, message: impl FnOnce() -> String) -> Result<(), StoreError> {
    let refuse = || StoreError::config(message());
    holds.then_some(()).ok_or_else(refuse)
}

/// Refuses a text that is not a subject.
pub(crate) fn check_subject(text: &str) -> Result<(), StoreError> {
    check(text.split('.').all(is_token), || {
        format!("{text:?} is not a subject")
    })
}

/// Refuses a text that is not a pattern.
pub(crate) fn check_pattern(text: &str) -> Result<(), StoreError> {
    check(is_pattern(text), || {
        format!("{text:?} is not a pattern of subjects")
    })
}

/// Refuses a subject that is not in the log with these `subjects`.
pub(crate) fn check_in(subjects: &str, subject: &str) -> Result<(), StoreError> {
    check_subject(subject)?;
    check(overlap(subjects, subject), || {
        format!("{subject} is not in the log {subjects}")
    })
}

/// Refuses the subject of a message, if it is one of a log.
pub(crate) fn check_message<'a>(
    mut logs: impl Iterator<Item = &'a str>,
    subject: &str,
) -> Result<(), StoreError> {
    check_subject(subject)?;
    let is_free = logs.all(|it| !overlap(it, subject));
    check(is_free, || format!("{subject} is in a log: append it"))
}

/// Refuses other subjects than those that a log has.
pub(crate) fn check_same(name: &str, has: &str, wanted: &str) -> Result<(), StoreError> {
    check(has == wanted, || {
        format!("the log {name} has {has}, not {wanted}")
    })
}

/// # Errors
/// [`StoreError::TooLarge`].
pub(crate) fn check_len(payload: &[u8], max: usize) -> Result<(), StoreError> {
    let is_fit = payload.len() <= max;
    is_fit.then_some(()).ok_or(StoreError::TooLarge)
}

/// Whether a pattern is a subject.
pub(crate) fn is_exact(pattern: &str) -> bool {
    !pattern.contains(['*', '>'])
}

/// Whether some subject matches both patterns. A subject is a pattern of itself alone.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let mut tokens = other.split('.');
    for part in one.split('.') {
        match (part, tokens.next()) {
            (">", Some(_)) | (_, Some(">")) => return true,
            ("*", Some(_)) | (_, Some("*")) => {}
            (part, Some(token)) if part == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// The pattern of the subjects that match both patterns, if there are any.
#[cfg(feature = "nats")]
pub(crate) fn intersection(one: &str, other: &str) -> Option<String> {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    let mut both = Vec::new();
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return Some(both.join(".")),
            (Some(">"), Some(it)) => {
                both.push(it);
                ones = others.clone();
            }
            (Some(it), Some(">")) => {
                both.push(it);
                others = ones.clone();
            }
            (Some("*"), Some(it)) | (Some(it), Some("*")) => both.push(it),
            (Some(it), Some(same)) if it == same => both.push(it),
            _ => return None,
        }
    }
}

impl LogConfig {
    /// Refuses a configuration that no log can have.
    pub(crate) fn check(&self, name: &str) -> Result<(), StoreError> {
        let wildcards = |pattern: &str| pattern.replace(|it| !matches!(it, '*' | '>'), "");
        let is_feed = |feed: &str| {
            let (own, all) = (wildcards(feed), wildcards(&self.subjects));
            is_pattern(feed) && own == all && !overlap(feed, &self.subjects)
        };
        let bounds = [self.max_per_subject, self.max_records, self.max_bytes];
        let times = [self.max_age, Some(self.window)];
        let is_zero = bounds.contains(&Some(0)) || times.contains(&Some(Duration::ZERO));
        for (holds, what) in [
            (is_token(name), "a name that is not a token"),
            (
                is_pattern(&self.subjects),
                "subjects that are not a pattern",
            ),
            (
                self.feed.as_deref().is_none_or(is_feed),
                "a feed that does not suit its subjects",
            ),
            (!is_zero, "a bound or a time of 0"),
        ] {
            check(holds, || format!("the log {name:?} would have {what}"))?;
        }
        Ok(())
    }
}
