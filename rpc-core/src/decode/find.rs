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

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(object: &'a str, name: &str) -> Option<&'a str> {
        find_member(object, name).map(RawValue::get)
    }

    #[test]
    fn a_member_is_found_as_it_was_sent() {
        let object = r#" {"a":{"id":1},"id": "x\ny" ,"b":[[]]}"#;
        assert_eq!(found(object, "id"), Some(r#""x\ny""#));
        assert_eq!(found(object, "b"), Some("[[]]"));
    }

    #[test]
    fn an_escaped_name_is_the_name() {
        assert_eq!(found(r#"{"\u0069d":7}"#, "id"), Some("7"));
    }

    #[test]
    fn of_several_the_first_is_found_and_null_is_none() {
        assert_eq!(found(r#"{"id":1,"id":2}"#, "id"), Some("1"));
        assert_eq!(found(r#"{"id":null}"#, "id"), None);
        assert_eq!(found(r#"{"ID":1}"#, "id"), None);
    }

    #[test]
    fn what_is_no_object_has_no_member() {
        for text in ["", "[]", r#"["id",1]"#, r#""id""#, r#"{"id":1"#, "{]"] {
            assert_eq!(found(text, "id"), None, "{text}");
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let object = format!(
            r#"{{"deep":{}{},"id":1}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(found(&object, "id"), Some("1"));
    }
}
