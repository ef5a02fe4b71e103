//! [`find_member`] and [`each_member`]: members of an object without decoding it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};

use super::tagged::Key;
use super::{DecodeError, Deserializer, Json};
use crate::limits::Limits;

/// Returns the member `name` of a JSON object; `None` if it is missing or null, or if `object` is
/// not an object. Of several it returns the first. Scans the text, so call it once.
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
/// [`DecodeError`] if `object` is not a JSON object.
pub fn each_member<'j>(
    object: &'j str,
    member: impl FnMut(Cow<'j, str>, &'j str),
) -> Result<(), DecodeError> {
    let mut reader = Deserializer::new(object, &Limits::default());
    reader.deserialize_map(Each(member))?;
    reader.end()
}

/// Like [`each_member`], with values to keep.
///
/// # Errors
/// As for [`each_member`].
#[doc(hidden)]
pub fn each_json<'j>(
    object: &'j str,
    mut member: impl FnMut(Cow<'j, str>, Json),
) -> Result<(), DecodeError> {
    // They were read on the way.
    each_member(object, |name, value| member(name, Json::scanned(value)))
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
            (self.0)(key.0, value.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Str;

    fn found(object: &str, name: &str) -> Option<Str> {
        Some(find_member(object, name)?.into_text())
    }

    #[test]
    fn a_member_is_found_verbatim() {
        let object = r#" {"a":{"id":1},"id": "x\ny" ,"b":[[]]}"#;
        assert_eq!(found(object, "id").as_deref(), Some(r#""x\ny""#));
        assert_eq!(found(object, "b").as_deref(), Some("[[]]"));
    }

    #[test]
    fn an_escaped_name_matches() {
        assert_eq!(found(r#"{"\u0069d":7}"#, "id").as_deref(), Some("7"));
    }

    #[test]
    fn the_first_of_repeated_members_is_found_and_null_is_none() {
        assert_eq!(found(r#"{"id":1,"id":2}"#, "id").as_deref(), Some("1"));
        assert_eq!(found(r#"{"id":null}"#, "id").as_deref(), None);
        assert_eq!(found(r#"{"ID":1}"#, "id").as_deref(), None);
    }

    #[test]
    fn a_non_object_has_no_members() {
        for text in ["", "[]", r#"["id",1]"#, r#""id""#, r#"{"id":1"#, "{]"] {
            assert_eq!(found(text, "id"), None, "{text}");
        }
    }

    #[test]
    fn depth_is_not_limited() {
        let object = format!(
            r#"{{"deep":{}{},"id":1}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(found(&object, "id").as_deref(), Some("1"));
    }
}
