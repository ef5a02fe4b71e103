//! [`find_member`]: one member of an object, where the object is not worth decoding.

use super::unescape::unescape;
use super::{RawJson, Reader};

/// The member `name` of a JSON object; `None` if it is absent or null, or if `object` is none. Of
/// several the first. Looks through the text, so ask once.
#[must_use]
pub fn find_member<'a>(object: &'a str, name: &str) -> Option<RawJson<'a>> {
    let mut found = None;
    let mut reader = Reader::new(object);
    let read = reader.members(|reader, key| {
        let is_it = match key.has_escapes {
            false => key.inner == name,
            true => unescape(key.inner).is_some_and(|key| key == name),
        };
        if is_it && found.is_none() {
            found = Some(reader.raw_or_null()?);
            return Ok(());
        }
        reader.skip()
    });
    read.ok()?;
    found.filter(|raw| !raw.is_null())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn found<'a>(object: &'a str, name: &str) -> Option<Cow<'a, str>> {
        Some(find_member(object, name)?.into_text())
    }

    #[test]
    fn a_member_is_found_as_it_was_sent() {
        let object = r#" {"a":{"id":1},"id": "x\ny" ,"b":[[]]}"#;
        assert_eq!(found(object, "id").as_deref(), Some(r#""x\ny""#));
        assert_eq!(found(object, "b").as_deref(), Some("[[]]"));
    }

    #[test]
    fn an_escaped_name_is_the_name() {
        assert_eq!(found(r#"{"\u0069d":7}"#, "id").as_deref(), Some("7"));
    }

    #[test]
    fn of_several_the_first_is_found_and_null_is_none() {
        assert_eq!(found(r#"{"id":1,"id":2}"#, "id").as_deref(), Some("1"));
        assert_eq!(found(r#"{"id":null}"#, "id").as_deref(), None);
        assert_eq!(found(r#"{"ID":1}"#, "id").as_deref(), None);
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
        assert_eq!(found(&object, "id").as_deref(), Some("1"));
    }
}
