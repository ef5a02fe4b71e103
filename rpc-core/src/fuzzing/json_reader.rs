//! The body of the target `json_reader`: our reader beside `serde_json`.

use std::borrow::Cow;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::{DecodeError, Field, Members, RawJson, Reader, Slot, find_member};

/// Reads a text in every way and checks that `serde_json` reads the same, or refuses it too.
pub fn json_reader(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    raw(text);
    same(text, "a text", |reader| reader.str().map(own));
    same(text, "a number", Reader::u64);
    same(text, "a boolean", Reader::bool);
    same(text, "a double", |reader| reader.value::<f64>("a number"));
    double(text);
    same(text, "a value", |reader| reader.value::<Value>("a value"));
    list(text);
    object(text);
}

fn own(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

/// Reads the whole text with our reader.
fn whole<'a, T>(
    text: &'a str,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(text);
    let value = read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn same<'a, T: Deserialize<'a> + Debug>(
    text: &'a str,
    what: &str,
    read: impl FnOnce(&mut Reader<'a>) -> Result<Option<T>, DecodeError>,
) {
    let ours = whole(text, read);
    if let Err(error) = &ours {
        assert_place(error, text);
    }
    let ours = ours.ok();
    let theirs = serde_json::from_str::<Option<T>>(text).ok();
    // Printed, a double is equal to itself and -0 differs from 0.
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{what}");
}

/// Numbers are read to the nearest, which `serde_json` comes close to.
fn double(text: &str) {
    let ours = whole(text, Reader::f64);
    if let Err(error) = &ours {
        assert_place(error, text);
    }
    let theirs = serde_json::from_str::<Option<f64>>(text);
    match (ours.ok().flatten(), theirs.ok().flatten()) {
        (Some(ours), Some(theirs)) => {
            let apart = (ours - theirs).abs();
            assert!(apart <= ours.abs() * 1e-14 + 1e-300, "a double");
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
    let ours = RawJson::new(text);
    let theirs = serde_json::from_str::<&RawValue>(text);
    assert_eq!(ours.is_ok(), theirs.is_ok(), "raw");
    let loose = whole(text, Reader::loose_str);
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else {
        assert!(loose.is_err(), "what is not JSON is nothing loose");
        return;
    };
    assert_eq!(ours.get(), theirs.get(), "raw");
    let read = serde_json::from_str::<String>(text).ok();
    let is_string = ours.first_byte() == Some(b'"');
    assert_eq!(loose.is_ok(), !is_string || read.is_some(), "loose");
    assert_eq!(ours.as_str().as_deref(), read.as_deref(), "a raw text");
    let unknown = RawJson::from(theirs).into_str();
    assert_eq!(unknown.as_deref(), read.as_deref(), "a raw text of theirs");
    let skipped = whole(text, Reader::skip);
    assert!(skipped.is_ok(), "what is raw is skipped: {skipped:?}");
}

fn list(text: &str) {
    let mut items = Vec::new();
    let ours = whole(text, |reader| {
        reader.items(usize::MAX, |reader| {
            items.push(reader.raw_or_null()?);
            Ok(())
        })
    });
    let theirs = serde_json::from_str::<Vec<&RawValue>>(text);
    assert_eq!(ours.is_ok(), theirs.is_ok(), "a list");
    if let Ok(theirs) = theirs {
        let ours: Vec<_> = items.iter().map(RawJson::get).collect();
        let theirs: Vec<_> = theirs.iter().map(|item| item.get()).collect();
        assert_eq!(ours, theirs, "a list");
    }
}

/// All members, in order.
#[derive(Default)]
struct All(Vec<(String, String)>);

impl<'de> Members<'de> for All {
    fn member(&mut self, name: &str, field: Field<'_, 'de>) -> Result<(), DecodeError> {
        let mut value = Slot::default();
        field.raw_or_null("value", &mut value)?;
        let value = value.take().map(|raw| raw.get().to_owned());
        self.0.push((name.to_owned(), value.unwrap_or_default()));
        Ok(())
    }
}

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
    let read = whole(text, |reader| reader.object_into(&mut ours));
    let mut parser = serde_json::Deserializer::from_str(text);
    let theirs = parser.deserialize_map(All::default());
    let theirs = theirs.and_then(|all| parser.end().map(|()| all));
    assert_eq!(read.is_ok(), theirs.is_ok(), "an object");
    let Ok(theirs) = theirs else {
        return;
    };
    assert_eq!(ours.0, theirs.0, "an object");
    for (name, _) in &theirs.0 {
        let first = theirs.0.iter().find(|(other, _)| other == name);
        let expected = first.map(|(_, value)| value.as_str());
        let found = find_member(text, name);
        let found = found.as_ref().map_or("null", RawJson::get);
        assert_eq!(Some(found), expected, "a member");
    }
}
