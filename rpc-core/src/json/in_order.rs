//! [`InOrder`]: objects in the form in which these crates write them.

use std::borrow::Cow;

use super::Json;
use super::mend::mend;
use super::scan::plain_end;
use super::skip::value_end;
use crate::limits::Limits;

/// Reads an object in the form in which these crates write it: the members come in a known order,
/// without white space. Whatever is not found in this form is left to [`decode`](super::decode), which
/// reads all forms and takes longer.
///
/// A member that is not there is not passed, so another one may be tried.
pub struct InOrder<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> InOrder<'t> {
    /// Returns `None` for a text that is too long.
    #[must_use]
    pub fn new(text: &'t str, limits: &Limits) -> Option<Self> {
        (text.len() <= limits.max_message_bytes).then_some(Self { text, at: 0 })
    }

    /// Returns where the value of the next member begins, if that has this name.
    #[inline(always)]
    fn value(&self, name: &str) -> Option<usize> {
        let start = self.at + name.len() + r#"{"":"#.len();
        let head = self.text.as_bytes().get(self.at..start)?;
        let [before, b'"', inner @ .., b'"', b':'] = head else {
            return None;
        };
        let separator = if self.at == 0 { b'{' } else { b',' };
        (*before == separator && inner == name.as_bytes()).then_some(start)
    }

    /// Returns where a string without escapes ends.
    #[inline(always)]
    fn plain_end(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let end = plain_end(bytes, start + 1);
        (bytes.get(end) == Some(&b'"')).then_some(end)
    }

    /// Reads the next member: a string without escapes.
    #[inline(always)]
    pub fn text(&mut self, name: &str) -> Option<&'t str> {
        let start = self.value(name)?;
        let end = self.plain_end(start)?;
        self.at = end + 1;
        self.text.get(start + 1..end)
    }

    /// Reads the next member: any value, as it was sent.
    #[inline(always)]
    pub fn raw(&mut self, name: &str) -> Option<&'t str> {
        let start = self.value(name)?;
        self.value_text(start, &mut false)
    }

    #[inline(always)]
    fn value_text(&mut self, start: usize, has_escape: &mut bool) -> Option<&'t str> {
        self.at = value_end(self.text.as_bytes(), start, has_escape).ok()?;
        self.text.get(start..self.at)
    }

    /// Reads the next member: any value without halves of surrogate pairs.
    #[inline(always)]
    pub fn json(&mut self, name: &str) -> Option<Json> {
        let start = self.value(name)?;
        if let Some(end) = self.plain_end(start) {
            self.at = end + 1;
            return self.text.get(start..=end).map(Json::whole);
        }
        let empty = match self.text.get(start..start + 2) {
            Some("[]") => Some(Json::EMPTY_ARRAY),
            Some("{}") => Some(Json::EMPTY_OBJECT),
            _ => None,
        };
        if empty.is_some() {
            self.at = start + 2;
            return empty;
        }
        let mut has_escape = false;
        let raw = self.value_text(start, &mut has_escape)?;
        (!has_escape || matches!(mend(raw), Cow::Borrowed(_))).then(|| Json::whole(raw))
    }

    /// Returns whether there are no further members.
    #[must_use]
    #[inline]
    pub fn is_end(&self) -> bool {
        self.text.as_bytes().get(self.at..) == Some(b"}")
    }
}

// Not the text, which may be private.
crate::debug::debug_fields!(['t] InOrder<'t>, this => { at: this.at });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_in_their_order_only() {
        let limits = Limits::default();
        let text = r#"{"id":"a","x":[1, {"y":"}"}],"z":null}"#;
        let mut object = InOrder::new(text, &limits).unwrap();
        assert_eq!((object.text("x"), object.text("i")), (None, None));
        assert_eq!(object.text("id"), Some("a"));
        assert_eq!((object.text("x"), object.text("id")), (None, None));
        assert_eq!(object.json("x").unwrap().get(), r#"[1, {"y":"}"}]"#);
        assert!(!object.is_end());
        assert_eq!(object.raw("z"), Some("null"));
        assert!(object.is_end());
    }

    #[test]
    fn other_forms_are_left_to_decode() {
        let limits = Limits::default();
        for text in [
            "",
            "{",
            "{}",
            r#"{ "a":"b"}"#,
            r#"{"a" :"b"}"#,
            r#"{"a": "b"}"#,
            r#"{"a":"b\n"}"#,
            r#"{"a":"b"#,
            r#"["a":"b"]"#,
            r#"{"a":"b"} "#,
            r#"{"a":"b","#,
            r#"{"a":7}"#,
        ] {
            let mut object = InOrder::new(text, &limits).unwrap();
            assert!(object.text("a").is_none() || !object.is_end(), "{text}");
        }
        let mut half = InOrder::new(r#"{"a":"\ud83d"}"#, &limits).unwrap();
        assert_eq!(half.json("a"), None);
        let short = Limits {
            max_message_bytes: 1,
            ..Limits::default()
        };
        assert!(InOrder::new("{}", &short).is_none());
    }
}
