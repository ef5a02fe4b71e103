//! Validation.

use serde_json::{Map, Value};
use smarthole_proto::error::{ErrorCode, RegistrationError};
use smarthole_proto::frame::Registration;
use smarthole_proto::validate::{Side, description, is_name, name, payload, registration};

use crate::frames::written;
use crate::plain::{Plain, trimmed};

/// The payload of a registration is accepted or refused as the table of rules says, and what is
/// accepted is what was sent.
pub fn validate(text: &str) {
    rules(text);
    let found = payload(text);
    match Plain::read(text) {
        Plain::Nothing => {
            let code = found.map_err(|error| error.code).err();
            assert_eq!(code, Some(ErrorCode::ValidationError), "no JSON");
        }
        Plain::Odd => {}
        Plain::Clear(value) => {
            let expected = judged(&value);
            let code = found.as_ref().err().map(|error| &error.code);
            let words = found.as_ref().err().map(|error| error.message.as_str());
            assert_eq!(code.zip(words), expected.as_ref().map(|(c, w)| (c, *w)));
            if let Ok(found) = found {
                kept(&found, &value);
            }
        }
    }
}

/// What is accepted is written as it was read, and passes again.
fn kept(found: &Registration, value: &Value) {
    let rest = |name: &str| value.get(name).cloned();
    let mut expected = Map::new();
    for name in ["name", "description", "version", "capabilities"] {
        let empty = |it: &Value| name == "capabilities" && it == &Value::Array(Vec::new());
        expected.extend(
            rest(name)
                .filter(|it| !empty(it))
                .map(|it| (name.into(), it)),
        );
    }
    let written = written(found);
    let read = serde_json::from_str::<Value>(written.as_str());
    assert!(
        read.is_ok_and(|read| read == Value::Object(expected)),
        "what was accepted is not what was sent"
    );
    assert_eq!(
        payload(written.as_str()).as_ref(),
        Ok(found),
        "what was accepted is refused"
    );
    assert_eq!(
        registration(found, Side::Server),
        Ok(()),
        "two ways to check differ"
    );
    assert!(
        registration(found, Side::Client).is_err() <= (found.description.len() > 1024),
        "a client is stricter in one thing only"
    );
}

/// Names and descriptions by themselves.
fn rules(text: &str) {
    let error = |result: Result<(), RegistrationError>| result.err().map(|it| it.code);
    assert_eq!(error(name(text)), bad_name(text).map(|it| it.0), "a name");
    assert!(name(text).is_err() || is_name(text), "a name is one");
    let server = description(text, Side::Server);
    let client = description(text, Side::Client);
    assert!(client.is_err() || server.is_ok(), "a server is no stricter");
    let expected = bad_description(text).map(|it| it.0);
    assert_eq!(error(server), expected, "a description");
}

type Judgement = Option<(ErrorCode, &'static str)>;

/// The rules in their order.
fn judged(value: &Value) -> Judgement {
    const NAME: &str = "Name is required and must be a string";
    const DESCRIPTION: &str = "Description is required and must be a string";
    let invalid = |words| Some((ErrorCode::ValidationError, words));
    let members = match value {
        Value::Object(members) => members,
        Value::Array(_) => return Some((ErrorCode::InvalidName, NAME)),
        _ => return invalid("Registration must be an object"),
    };
    let Some(Value::String(name)) = members.get("name") else {
        return Some((ErrorCode::InvalidName, NAME));
    };
    if let Some(bad) = bad_name(name) {
        return Some(bad);
    }
    let Some(Value::String(description)) = members.get("description") else {
        return Some((ErrorCode::InvalidDescription, DESCRIPTION));
    };
    if let Some(bad) = bad_description(description) {
        return Some(bad);
    }
    if members.get("version").is_some_and(|it| !it.is_string()) {
        return invalid("Version must be a string if provided");
    }
    match members.get("capabilities") {
        None => None,
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => None,
        Some(Value::Array(_)) => invalid("Each capability must be a string"),
        Some(_) => invalid("Capabilities must be an array if provided"),
    }
}

fn bad_name(name: &str) -> Judgement {
    let letters: Vec<char> = name.chars().collect();
    let words = if trimmed(name).is_empty() {
        "Name cannot be empty"
    } else if letters.iter().map(|it| it.len_utf16()).sum::<usize>() > 64 {
        "Name must be 64 characters or less"
    } else if !letters.first().is_some_and(char::is_ascii_alphabetic)
        || !letters
            .iter()
            .all(|it| it.is_ascii_alphanumeric() || "-_".contains(*it))
    {
        "Name must start with a letter and contain only alphanumeric characters, hyphens, and underscores"
    } else {
        return None;
    };
    Some((ErrorCode::InvalidName, words))
}

fn bad_description(description: &str) -> Judgement {
    let words = if trimmed(description).is_empty() {
        "Description cannot be empty"
    } else if description.chars().nth(1024).is_some() {
        "Description must be 1024 characters or less"
    } else {
        return None;
    };
    Some((ErrorCode::InvalidDescription, words))
}
