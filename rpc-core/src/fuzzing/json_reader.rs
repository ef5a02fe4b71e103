//! The body of the target `json_reader`: our deserializer beside `serde_json`.

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Limits;
use crate::json::{DecodeError, Json, LooseStr, Str, each_member, find_member, parse};
use crate::tagged;

tagged! {
    /// Any object with a tag.
    #[derive(Debug, PartialEq)]
    pub(super) enum Tagged by "a" {
        "b" => Known(Members),
        "c" => Alone,
    }
}

/// Members of several types.
#[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
pub(super) struct Members {
    text: Option<Str>,
    number: Option<u64>,
    list: Option<Vec<Json>>,
}

/// Reads a text in every way and checks that `serde_json` reads the same, or refuses it too.
pub fn json_reader(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    raw(text);
    same::<String>(text, "a text");
    same::<u64>(text, "a number");
    same::<i8>(text, "a small number");
    same::<bool>(text, "a boolean");
    double(text);
    value(text);
    same::<Vec<&RawValue>>(text, "a list");
    object(text);
    if matches!(crate::json::first_byte(text), Some(b'{')) {
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
        _ => assert_eq!(ours, theirs, "a value"),
    }
}

fn near((one, other): (f64, f64)) -> bool {
    (one - other).abs() <= one.abs() * 1e-14 + 1e-300
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

/// All members, in order.
#[derive(Debug, Default, PartialEq)]
struct All(Vec<(String, String)>);

impl<'de> Visitor<'de> for All {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            self.0.push((name, value.get().to_owned()));
        }
        Ok(self)
    }
}

fn object(text: &str) {
    let mut ours = All::default();
    let read = each_member(text, |name, value| {
        ours.0.push((name.into_owned(), value.to_owned()));
    });
    let mut parser = serde_json::Deserializer::from_str(text);
    let theirs = parser.deserialize_map(All::default());
    let theirs = theirs.and_then(|all| parser.end().map(|()| all));
    assert_eq!(read.is_ok(), theirs.is_ok(), "an object");
    let Ok(theirs) = theirs else {
        return;
    };
    assert_eq!(ours, theirs, "an object");
    for (name, _) in &theirs.0 {
        let first = theirs.0.iter().find(|(other, _)| other == name);
        let expected = first.map(|(_, value)| value.as_str());
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
