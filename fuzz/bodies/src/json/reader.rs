//! The JSON reader, beside `serde_json`.

use std::fmt::Debug;

use rpc_core::json::{LooseStr, each_member, find_member, first_byte, mend, parse};
use rpc_core::{DecodeError, Json, Limits, Str, tagged};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plain::{members, near};

tagged! {
    /// Any object with a tag.
    #[derive(Debug, PartialEq)]
    enum Tagged by "a" {
        "b" => Known(Members),
        "c" => Alone,
    }
}

/// Members of several types.
#[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
struct Members {
    text: Option<Str>,
    number: Option<u64>,
    list: Option<Vec<Json>>,
}

/// Reads a text in every way and checks that `serde_json` reads the same, or refuses it too.
pub fn reader(text: &str) {
    // `serde_json` refuses half of a surrogate pair.
    let mended = mend(text);
    let read = |text| format!("{:?}", parse::<Value>(text, &Limits::default()));
    assert_eq!(read(text), read(&mended), "with halves of characters");
    let text = &*mended;
    raw(text);
    same::<String>(text, "a text");
    same::<u64>(text, "a number");
    same::<i8>(text, "a small number");
    same::<bool>(text, "a boolean");
    double(text);
    value(text);
    same::<Vec<&RawValue>>(text, "a list");
    object(text);
    if matches!(first_byte(text), Some(b'{')) {
        same::<Members>(text, "members");
        tag(text);
    }
}

fn ours<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    let read = parse(text, &Limits::default());
    if let Err(error) = &read {
        assert_place(error, text);
    }
    read
}

fn same<'a, T: Deserialize<'a> + Debug>(text: &'a str, what: &str) {
    let ours = ours::<Option<T>>(text).ok();
    let theirs = serde_json::from_str::<Option<T>>(text).ok();
    // Printed, a double is equal to itself and -0 differs from 0.
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{what}");
}

/// Whether a number in here is larger than every double.
fn is_beyond(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.as_f64().is_some_and(f64::is_finite),
        Value::Array(items) => items.iter().any(is_beyond),
        Value::Object(members) => members.values().any(is_beyond),
        _ => false,
    }
}

/// All but doubles is the same.
fn value(text: &str) {
    fn alike(ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Value::Number(ours), Value::Number(theirs)) => {
                ours == theirs || ours.as_f64().zip(theirs.as_f64()).is_some_and(near)
            }
            (Value::Array(ours), Value::Array(theirs)) => {
                let mut pairs = ours.iter().zip(theirs);
                ours.len() == theirs.len() && pairs.all(|(ours, theirs)| alike(ours, theirs))
            }
            (Value::Object(ours), Value::Object(theirs)) => {
                let same = |(name, ours)| theirs.get(name).is_some_and(|it| alike(ours, it));
                ours.len() == theirs.len() && ours.iter().all(same)
            }
            _ => ours == theirs,
        }
    }
    let ours = ours::<Value>(text).ok();
    let theirs = serde_json::from_str::<Value>(text).ok();
    match (&ours, &theirs) {
        (Some(ours), Some(theirs)) => assert!(alike(ours, theirs), "{ours} is no {theirs}"),
        // With `arbitrary_precision` it keeps the text of a number that no double holds.
        (None, Some(theirs)) => assert!(is_beyond(theirs), "a value"),
        _ => assert_eq!(ours, theirs, "a value"),
    }
}

/// Numbers are read to the nearest, which `serde_json` comes close to.
fn double(text: &str) {
    let ours = ours::<Option<f64>>(text).ok().flatten();
    let theirs = serde_json::from_str::<Option<f64>>(text).ok().flatten();
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => {
            assert!(near((ours, theirs)), "a double");
        }
        (Some(one), None) | (None, Some(one)) => {
            assert!(one == 0.0 || one.abs() > 1e308, "a double of one reader");
        }
        (None, None) => {}
    }
}

/// An error points into the text, or right behind it.
fn assert_place(error: &DecodeError, text: &str) {
    let line = text.split('\n').nth(error.line() - 1);
    let line = line.expect("the text has this line");
    assert!((1..=line.len() + 1).contains(&error.column()), "{error}");
}

fn raw(text: &str) {
    let ours = Json::new(text);
    let theirs = serde_json::from_str::<&RawValue>(text);
    assert_eq!(ours.is_ok(), theirs.is_ok(), "raw");
    let loose = parse::<LooseStr>(text, &Limits::default());
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else {
        assert!(loose.is_err(), "what is not JSON is nothing loose");
        return;
    };
    assert_eq!(ours.get(), theirs.get(), "raw");
    let read = serde_json::from_str::<String>(text).ok();
    if ours.first_byte() == b'"' {
        assert_eq!(loose.is_ok(), read.is_some(), "loose");
    }
    assert_eq!(ours.as_str().as_deref(), read.as_deref(), "a raw text");
}

fn object(text: &str) {
    let mut ours = Vec::new();
    let read = each_member(text, |name, value| {
        ours.push((name.into_owned(), value.to_owned()));
    });
    let theirs = members(text);
    assert_eq!(read.is_ok(), theirs.is_some(), "an object");
    let theirs = theirs.unwrap_or_default();
    if read.is_ok() {
        let theirs = theirs.iter().map(|(name, value)| (&**name, value.get()));
        let ours = ours.iter().map(|(name, value)| (&**name, &**value));
        assert!(ours.eq(theirs), "an object");
    }
    for (name, _) in &theirs {
        let first = theirs.iter().find(|(other, _)| other == name);
        let expected = first.map(|(_, value)| value.get());
        let found = find_member(text, name);
        let found = found.as_ref().map_or("null", Json::get);
        assert_eq!(Some(found), expected, "a member");
    }
}

/// An object is read by its tag as it is without it, and is written as something that reads back.
fn tag(text: &str) {
    let read = ours::<Tagged>(text);
    let theirs = serde_json::from_str::<Tagged>(text).ok();
    assert_eq!(read.as_ref().ok(), theirs.as_ref(), "a tagged object");
    if let Ok(Tagged::Known(members)) = &read {
        assert_eq!(ours::<Members>(text).as_ref(), Ok(members), "its members");
    }
    if let Ok(read) = read {
        let written = serde_json::to_string(&read).expect("what was read is written");
        assert_eq!(ours::<Tagged>(&written), Ok(read), "a tagged object again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_json_agrees_with_serde_json() {
        let text = "{\"a\\u00e9\": [1, -0.5e+3, true, null, {\"\": \"\u{1f600}\\\\\"}], \"b\":{}}";
        for end in 0..=text.len() {
            if let Some(text) = text.get(..end) {
                reader(text);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_agrees_with_serde_json(text: String) {
            reader(&text);
        }

        #[test]
        fn likely_json_agrees_with_serde_json(
            text in r#"([ \n\t\r]|[\[\]{},:\"]|"a"|"\\\\"|"\\u00[0-9]e"|"\\ud83d\\ude00"|"[é\\ -~]{0,20}"|true|false|null|-?[0-9]{0,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{0,3})?|:1,|"b":){0,12}"#,
        ) {
            reader(&text);
        }
    }
}
