//! [`find_member`]: one member of an object, where the object is not worth decoding.

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::raw_str;

/// The member `name` of a JSON object; `None` if it is absent or null, or if `object` is none. Of
/// several the first. Looks through the text, so ask once.
#[must_use]
pub fn find_member<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    let members: Finder<'_, 'a> = Finder { name, found: None };
    let mut parser = serde_json::Deserializer::from_str(object);
    let found = parser.deserialize_map(members).ok()??;
    (found.get() != "null").then_some(found)
}

struct Finder<'n, 'de> {
    name: &'n str,
    found: Option<&'de RawValue>,
}

impl<'de> Visitor<'de> for Finder<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(key) = map.next_key::<&RawValue>()? {
            if self.found.is_none() && raw_str(key).is_some_and(|key| key == self.name) {
                self.found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(self.found)
    }
}
