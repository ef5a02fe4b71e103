//! What `serde_json` finds in a frame, against what was written of it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::plain::{members, near};

/// The members of an object, as `serde_json` reads them. `None` where that is not a fair comparison: the
/// text is not an object, a name comes twice in it, a string has half a surrogate, a number is too large,
/// or it is too deep.
pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
    let mut names = BTreeSet::new();
    let mut members = members(text)?.into_iter();
    let once = members.all(|(name, _)| names.insert(name));
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) if once => Some(members),
        _ => None,
    }
}

/// Nothing is written that was not read: every member that was written has the value of the same
/// member, or of one that means the same.
pub(super) fn assert_from(written: &Map<String, Value>, read: &Map<String, Value>) {
    for (name, value) in written {
        let same = [Some(name.as_str()), elsewhere(name)];
        let mut values = same.iter().flatten().filter_map(|name| read.get(*name));
        assert!(
            values.any(|known| means(value, known)) || is_made_up(written, name, value),
            "what is written was not read"
        );
    }
}

/// The other name of a member.
fn elsewhere(name: &str) -> Option<&'static str> {
    match name {
        "message" => Some("error"),
        "question" => Some("text"),
        "text" => Some("question"),
        "tool_id" => Some("id"),
        _ => None,
    }
}

/// What is in a frame though it was not in what was read.
fn is_made_up(frame: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let is = |tag: &str| frame.get("type").and_then(Value::as_str) == Some(tag);
    match name {
        "status" => is("CONNECTED"),
        "server_newer" => is("CONNECTED") && *value == Value::Bool(true),
        "chat_items" => is("CONNECTED") && *value == Value::Array(Vec::new()),
        "session_id" => is("SESSION_STATUS") && value.is_null(),
        "session" => is("SESSION_STATUS"),
        "result" => is("OUTPUT") && value.as_str() == Some(""),
        "multi_select" => is("ask_user") && *value == Value::Bool(false),
        _ => false,
    }
}

/// A value is the same, except for the last bits of a number, which `serde_json` may miss; or it is the
/// text of a number or of JSON, where a text is meant.
fn means(written: &Value, read: &Value) -> bool {
    if written == read {
        return true;
    }
    match (written, read) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().zip(other.as_f64()).is_some_and(near)
        }
        (Value::String(text), _) => {
            let inner = serde_json::from_str::<Value>(text);
            inner.is_ok_and(|inner| !inner.is_string() && means(&inner, read))
        }
        _ => false,
    }
}

/// No secret is in a frame that may be logged.
pub(super) fn assert_no_secrets(shown: &Value) {
    match shown {
        Value::Object(members) => {
            for (name, value) in members {
                let secret = ["signature", "invite_code", "payment", "received"];
                let hidden = value.is_null() || value.as_str() == Some("***");
                assert!(
                    hidden || !secret.contains(&name.as_str()),
                    "a secret is shown"
                );
                assert_no_secrets(value);
            }
        }
        Value::Array(items) => items.iter().for_each(assert_no_secrets),
        Value::String(text) => {
            let is_long_url = text.len() > 80 && text.starts_with("data:");
            assert!(!is_long_url, "a data URL is shown");
        }
        _ => {}
    }
}
