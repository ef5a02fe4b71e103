//! Frames, direct routing and validation.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};
use smarthole_proto::direct::{parse, route};
use smarthole_proto::error::{ErrorCode, RegistrationError};
use smarthole_proto::frame::{ClientFrame, Registration, ServerFrame};
use smarthole_proto::limits::defaults;
use smarthole_proto::timestamp;
use smarthole_proto::validate::{Side, description, is_name, name, payload, registration};

use crate::frames::{frame, written};
use crate::plain::{Plain, trimmed};

/// Decoding, encoding and decoding again gives the same frame.
pub fn client_frames(text: &str) {
    let _ = frame(text, &defaults(), ClientFrame::decode);
}

/// Decoding, encoding and decoding again gives the same frame, and so does its timestamp.
pub fn server_frames(text: &str) {
    if let Ok((ServerFrame::Message(message), _)) = frame(text, &defaults(), ServerFrame::decode)
        && let Some(time) = timestamp::parse(&message.timestamp)
    {
        let again = timestamp::format(time);
        let time = timestamp::parse(&again).map(timestamp::format);
        assert_eq!(time, Some(again), "a timestamp differs");
    }
}

/// The pattern of the known server; what its last group finds is trimmed.
static DIRECT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?s)^([a-zA-Z][a-zA-Z0-9_-]*)[,:](.+)$").expect("a pattern"));

/// A text is split as the pattern of the known server splits it, and the client is found that people
/// would find. Behind a NUL byte come the names of clients, with spaces between them.
pub fn direct(input: &str) {
    let (text, names) = input.split_once('\0').unwrap_or((input, ""));
    let names: Vec<&str> = names.split(' ').collect();
    let found = DIRECT.captures(text).map(|it| it.extract().1);
    let expected = found.map(|[name, rest]| (name, trimmed(rest)));
    let expected = expected.filter(|(_, rest)| !rest.is_empty());
    assert_eq!(split(text), expected, "how a text is split");
    // The same name, or else the first that differs in case.
    let meant = expected.and_then(|(name, rest)| {
        let same = names.iter().find(|it| **it == name);
        let similar = || names.iter().find(|it| it.eq_ignore_ascii_case(name));
        same.or_else(similar).map(|client| (*client, rest))
    });
    let found = route(text, names.iter().copied());
    assert_eq!(found, meant, "the client that is meant");
    assert_eq!(split(&format!(" {text}")), None, "white space in front");
    let longer = format!("{text}\u{3000}\n");
    assert_eq!(split(&longer), expected, "white space behind");
}

fn split(text: &str) -> Option<(&str, &str)> {
    parse(text).map(|direct| (direct.name, direct.text))
}

/// The payload of a registration is accepted or refused as the table of rules says, and what is
/// accepted is what was sent.
pub fn validate(text: &str) {
    let code = |result: Result<(), RegistrationError>| result.err().map(|it| it.code);
    assert_eq!(code(name(text)), bad_name(text).map(|it| it.0), "a name");
    assert!(name(text).is_err() || is_name(text), "a name is one");
    let server = code(description(text, Side::Server));
    assert_eq!(
        server,
        bad_description(text).map(|it| it.0),
        "a description"
    );
    let is_stricter = description(text, Side::Client).is_err();
    assert!(is_stricter || server.is_none(), "a server is no stricter");
    let found = payload(text);
    let reported = found.as_ref().err();
    let reported = reported.map(|error| (error.code.clone(), error.message.as_str()));
    match Plain::read(text) {
        Plain::Nothing => {
            let code = reported.map(|it| it.0);
            assert_eq!(code, Some(ErrorCode::ValidationError), "no JSON");
        }
        Plain::Odd => {}
        Plain::Clear(value) => {
            assert_eq!(reported, judged(&value), "the first rule that is broken");
            if let Ok(found) = found {
                kept(&found, &value);
            }
        }
    }
}

/// What is accepted is written as it was read, and passes again.
fn kept(found: &Registration, value: &Value) {
    let mut expected = value.as_object().cloned().unwrap_or_else(Map::new);
    let known = ["name", "description", "version", "capabilities"];
    let empty = Value::Array(Vec::new());
    expected.retain(|name, it| {
        known.contains(&name.as_str()) && !(name == "capabilities" && *it == empty)
    });
    let written = written(found);
    let read = serde_json::from_str::<Value>(written.as_str()).ok();
    assert_eq!(read, Some(Value::Object(expected)), "what was sent");
    assert_eq!(
        payload(written.as_str()).as_ref(),
        Ok(found),
        "it passes again"
    );
    assert_eq!(
        registration(found, Side::Server),
        Ok(()),
        "two ways to check"
    );
    assert!(
        registration(found, Side::Client).is_err() <= (found.description.len() > 1024),
        "a client is stricter in one thing only"
    );
}

type Judgement = Option<(ErrorCode, &'static str)>;

/// The rules in their order.
fn judged(value: &Value) -> Judgement {
    let invalid = |words| Some((ErrorCode::ValidationError, words));
    if !value.is_object() && !value.is_array() {
        return invalid("Registration must be an object");
    }
    let text = |name| value.get(name).and_then(Value::as_str);
    let Some(name) = text("name") else {
        return Some((
            ErrorCode::InvalidName,
            "Name is required and must be a string",
        ));
    };
    if let Some(bad) = bad_name(name) {
        return Some(bad);
    }
    let Some(description) = text("description") else {
        let words = "Description is required and must be a string";
        return Some((ErrorCode::InvalidDescription, words));
    };
    if let Some(bad) = bad_description(description) {
        return Some(bad);
    }
    if value.get("version").is_some_and(|it| !it.is_string()) {
        return invalid("Version must be a string if provided");
    }
    match value.get("capabilities").map(Value::as_array) {
        Some(None) => invalid("Capabilities must be an array if provided"),
        Some(Some(list)) if !list.iter().all(Value::is_string) => {
            invalid("Each capability must be a string")
        }
        _ => None,
    }
}

fn bad_name(name: &str) -> Judgement {
    static LETTERS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[a-zA-Z][a-zA-Z0-9_-]*\z").expect("a pattern"));
    let words = if trimmed(name).is_empty() {
        "Name cannot be empty"
    } else if name.encode_utf16().count() > 64 {
        "Name must be 64 characters or less"
    } else if !LETTERS.is_match(name) {
        "Name must start with a letter and contain only alphanumeric characters, hyphens, and underscores"
    } else {
        return None;
    };
    Some((ErrorCode::InvalidName, words))
}

fn bad_description(description: &str) -> Judgement {
    let words = if trimmed(description).is_empty() {
        "Description cannot be empty"
    } else if description.chars().count() > 1024 {
        "Description must be 1024 characters or less"
    } else {
        return None;
    };
    Some((ErrorCode::InvalidDescription, words))
}
