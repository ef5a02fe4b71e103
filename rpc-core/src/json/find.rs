//! [`find_member`] and [`each_member`]: members of an object that is not worth decoding.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};

use super::tagged::Key;
use super::{Deserializer, Json};
use crate::decode::DecodeError;
use crate::limits::Limits;

/// The member `name` of a JSON object; `None` if it is absent or null, or if `object` is none. Of
/// several the first. Looks through the text, so ask once.
#[must_use]
pub fn find_member(object: &str, name: &str) -> Option<Json> {
    let mut found = None;
    let read = each_member(object, |known, value| {
        if found.is_none() && known == name {
            found = Some(Json::scanned(value));
        }
    });
    read.ok()?;
    found.filter(|json| !json.is_null())
}

/// Calls `member` with the name and the raw value of each member of a JSON object.
///
/// # Errors
/// If `object` is no JSON object.
pub fn each_member<'j>(
    object: &'j str,
    member: impl FnMut(Cow<'j, str>, &'j str),
) -> Result<(), DecodeError> {
    let mut reader = Deserializer::new(object, &Limits::default());
    reader.deserialize_map(Each(member))?;
    reader.end()
}

struct Each<F>(F);

impl<'de, F: FnMut(Cow<'de, str>, &'de str)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let value: &serde_json::value::RawValue = map.next_value()?;
            let name = match key {
                Key::Borrowed(name) => Cow::Borrowed(name),
                Key::Owned(name) => Cow::Owned(name.into()),
            };
            (self.0)(name, value.get());
        }
        Ok(())
    }
}
