//! [`Refusal`]: why a provider does not answer, read from its status and its text.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use regex::Regex;
use serde_json::Value;

use super::answer::text_of;
use super::error::one_line;
use super::http::wait;

/// The reason why a provider does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The key is wrong, or there is none.
    Key,
    /// The key does not allow this.
    Permission,
    /// The provider does not have the model.
    Model,
    /// There is nothing at the address.
    Address,
    /// Too many requests for now.
    RateLimit,
    /// What was paid for is used up; waiting does not help.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider has failed, or is not there for the moment.
    Unavailable,
    /// The conversation is longer than the model's context, or the request has too many bytes.
    TooLong,
    /// Something else in the request.
    Request,
    /// An error in an answer, without a known reason.
    Broken,
}

/// What a provider says of an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Its text, on one line; empty if there is none for people.
    pub(super) message: String,
    /// Its words for programs, in lower case: a type and a code.
    words: String,
    /// The status that it names.
    status: Option<u16>,
    /// The members of the request that it names for programs, each with its path.
    pub(super) members: Vec<String>,
    /// How long it asks to wait.
    pub(super) wait: Option<Duration>,
}

/// The members in which servers have the text of an error, in lower case, one below the other in any order. What a
/// provider behind the provider says comes first.
const TEXTS: &str = "error_description error metadata raw message faultstring detail msg errors base_resp status_msg \
    error_msg innererror fault reason title statusmessage";

/// How servers speak of what is sent to a model.
const SIZE: &str = concat!(
    r"\b(?:tokens?|context|prompts?|conversation)\b|\b(?:input|messages?|sequence)s?\b.{0,20}\b(?:length|too long)",
    r"|\blength of the (?:input|messages)|\brequest is too long|长度|上下文",
);
/// How they say that it is more than there may be.
const MORE: &str = concat!(
    r"exceed|\btoo (?:long|large|many|big)|(?:er|less|more) than|at most|reduce|shorten|overflow|\bfit\b",
    r"|maximum|\bmax\b|limit|range|[<>]|context (?:size|length|window)|超|过长",
);
const BOUND: &str = r"[0-9]|limit|maximum|\bmax\b|window|length|size|too long|长";
/// How they speak of what may be sent in a time.
const RATE: &str = r"\bper[ _-]?(?:sec|min|hour|day)|rate.?limit|\b[tr]p[smd]\b|quota|too many requests|\bthrottl|slow down";
/// How they speak of what no wait brings back.
const SPENT: &str = concat!(
    r"credit balance|insufficient.(?:quota|balance|funds|credit)|current balance|recharge|available credits",
    r"|spending limit|billing|payment",
);

impl Report {
    /// Reads the body of an error, or an event that reports one: the first [text for people](text_in). JSON
    /// without one and pages of HTML are not text.
    pub(super) fn read(body: &str) -> Self {
        let body = body.trim().trim_start_matches('\u{feff}');
        let Ok(value) = rpc_core::json::from_slice::<Value>(body.as_bytes()) else {
            let in_xml = || Some(body.split_once("<Message>")?.1.split_once("</Message>")?.0);
            let is_text = !body.starts_with(['<', '{', '[']);
            let message = if is_text { Some(body) } else { in_xml() };
            return Self::of_message(one_line(message.unwrap_or_default()));
        };
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").filter(|error| error.is_object());
        let mut report = Self::of_message(one_line(&text_in(value).unwrap_or_default()));
        let word = |name| error.unwrap_or(value).get(name)?.as_str();
        let words: Vec<&str> = ["type", "code"].into_iter().filter_map(word).collect();
        report.words = words.join(" ").to_lowercase();
        let code = text_of(&error.unwrap_or(value)["code"]).parse().ok();
        report.status = code.filter(|code| (400..600).contains(code));
        report.walk(value);
        report
    }

    /// Creates the report of these words.
    pub(super) fn of_message(message: String) -> Self {
        let wait = wait::in_text(&message);
        Self {
            message,
            wait,
            ..Self::default()
        }
    }

    /// Reads what is meant for programs, wherever it is.
    fn walk(&mut self, value: &Value) {
        for value in value.as_array().into_iter().flatten() {
            self.walk(value);
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("param", Value::String(member)) => self.members.push(member.clone()),
                ("loc", Value::Array(path)) => {
                    let path: Vec<_> = path.iter().map(text_of).collect();
                    self.members.push(path.join("."));
                }
                (_, Value::Number(_) | Value::String(_)) => {
                    let wait = wait::named(name, &text_of(value), SystemTime::now());
                    self.wait = self.wait.max(wait);
                }
                _ => self.walk(value),
            }
        }
    }

    /// Returns the reason. `status` is that of the answer, unless the error came within one.
    pub(super) fn refusal(&self, status: Option<u16>) -> Refusal {
        let message = self.message.to_lowercase();
        let has = |words: &str| finds(words, &self.words);
        let says = format!("{}. {message}", self.words.replace('_', " "));
        let is_spent =
            || self.wait.is_none() && finds(SPENT, &says) && !finds(r"\bper[ _-]min", &says);
        let is_missing = || {
            finds(
                "model.*(?:not found|does not exist)|not found.*model",
                &says,
            )
        };
        let is_address = || {
            finds(
                r"^$|not (?:found|allowed)|\b(?:routes?|url|path)\b",
                &message,
            )
        };
        // A status says more than most words, except that some servers report a model as a request.
        match status.or(self.status) {
            Some(402) => Refusal::Quota,
            None | Some(400 | 403 | 429) if is_spent() => Refusal::Quota,
            None | Some(400 | 413 | 422 | 429 | 500..) if is_too_long(&says, status) => {
                Refusal::TooLong
            }
            Some(401) => Refusal::Key,
            Some(403) => Refusal::Permission,
            Some(413) => Refusal::TooLong,
            Some(429) => Refusal::RateLimit,
            Some(529) => Refusal::Overloaded,
            Some(300..=399) => Refusal::Address,
            _ if is_missing() => Refusal::Model,
            // A provider that is there has a sentence of its own.
            Some(404 | 405) if is_address() => Refusal::Address,
            Some(501 | 505) => Refusal::Request,
            Some(408 | 409 | 425 | 500..) => Refusal::Unavailable,
            _ if has("overloaded") => Refusal::Overloaded,
            _ if has("rate_limit") => Refusal::RateLimit,
            _ if has("authentication|invalid_api_key") => Refusal::Key,
            _ if has("permission") => Refusal::Permission,
            _ if has("request_too_large") => Refusal::TooLong,
            None if has("(?:api|server|timeout)_error") => Refusal::Unavailable,
            None if !has("invalid_request|invalid_prompt") => Refusal::Broken,
            _ => Refusal::Request,
        }
    }
}

/// Returns whether words speak of a conversation that is longer than the model takes.
fn is_too_long(says: &str, status: Option<u16>) -> bool {
    // Without the names of members, such as `max_tokens` and `messages.0.content`.
    let is_word = |word: &&str| !word.trim_end_matches(['.', ':']).contains(['_', '[', '.']);
    let words: Vec<&str> = says.split_whitespace().filter(is_word).collect();
    let says = words.join(" ");
    let is = |pattern| finds(pattern, &says);
    // What is larger than all of a minute's tokens does not get smaller with time.
    let is_rate = !is("request too large.*reduce") && (status == Some(429) || is(RATE));
    let is_of_answer = is("(?:completion|output) tokens") && !is("context|prompt|input|messages");
    let is_of_files = is(r"\b(?:images?|audio|videos?|files?)\b") && !is("token");
    is(SIZE) && is(MORE) && is(BOUND) && !is_rate && !is_of_answer && !is_of_files
}

/// Returns the first text for people in a report of an error.
fn text_in(report: &Value) -> Option<Cow<'_, str>> {
    match report {
        Value::String(text) if text.trim().is_empty() => None,
        // A report in a report.
        Value::String(text) if text.starts_with(['{', '[']) => {
            let inner = serde_json::from_str(text).ok();
            let inner_text = inner.and_then(|inner| Some(text_in(&inner)?.into_owned().into()));
            inner_text.or_else(|| Some(text.into()))
        }
        Value::String(text) => Some(text.into()),
        Value::Array(list) => list.iter().find_map(text_in),
        Value::Object(members) => TEXTS.split_whitespace().find_map(|text| {
            let mut members = members.iter();
            let (_, inner_text) = members.find(|(name, _)| name.eq_ignore_ascii_case(text))?;
            // Those of a form have the names of its fields.
            let is_form = ["errors", "detail"].contains(&text);
            let fields = inner_text.as_object().filter(|_| is_form);
            text_in(inner_text).or_else(|| fields?.values().find_map(text_in))
        }),
        _ => None,
    }
}

/// Whether a text has something of this form. Errors are rare.
pub(super) fn finds(form: &str, text: &str) -> bool {
    Regex::new(form).is_ok_and(|form| form.is_match(text))
}

impl Refusal {
    /// Returns whether the same request may succeed after a while.
    pub const fn passes(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Unavailable)
    }
}

#[cfg(test)]
mod tests;
