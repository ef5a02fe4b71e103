//! [`leaves`]: the values of a JSON text that hold no others, with their paths and places.

use std::borrow::Cow;

use serde_json::value::RawValue;

use rpc_core::json::each_member;

use crate::frame;

/// The deepest nesting that is looked into. What is deeper is one value.
const MAX_DEPTH: usize = 64;

/// A value that is neither an object nor an array with something in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf<'a> {
    /// Such as `event.items[0].id`.
    pub(super) path: String,
    /// The last name of the path.
    pub(super) name: String,
    /// As it was sent.
    pub(super) raw: &'a str,
    /// Where it begins in the text, in bytes.
    pub(super) start: usize,
}

/// Returns the leaves of a text in their order; `None` if it is no JSON.
pub(super) fn leaves(text: &str) -> Option<Vec<Leaf<'_>>> {
    let whole: &RawValue = serde_json::from_str(text).ok()?;
    let mut found = Vec::new();
    let mut reader = Reader {
        base: text.as_ptr().addr(),
        found: &mut found,
    };
    reader.read(whole.get(), "", "", 0);
    Some(found)
}

struct Reader<'r, 'a> {
    base: usize,
    found: &'r mut Vec<Leaf<'a>>,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, raw: &'a str, path: &str, name: &str, depth: usize) {
        let before = self.found.len();
        if depth < MAX_DEPTH && raw.starts_with('{') {
            let _ = each_member(raw, |name, raw| {
                let path = match path {
                    "" => name.clone().into_owned(),
                    path => format!("{path}.{name}"),
                };
                self.read(raw, &path, &name, depth + 1);
            });
        } else if depth < MAX_DEPTH && raw.starts_with('[') {
            let items: Vec<&'a RawValue> = serde_json::from_str(raw).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                self.read(item.get(), &format!("{path}[{index}]"), name, depth + 1);
            }
        }
        if self.found.len() == before {
            self.found.push(Leaf {
                path: path.to_owned(),
                name: name.to_owned(),
                raw,
                start: raw.as_ptr().addr() - self.base,
            });
        }
    }
}

impl Leaf<'_> {
    /// Returns the text of a string or a whole number; `None` for other values.
    pub(super) fn scalar(&self) -> Option<Cow<'_, str>> {
        scalar(self.raw)
    }

    /// Returns whether this is a string.
    pub(super) fn is_string(&self) -> bool {
        self.raw.starts_with('"')
    }
}

/// Returns the text of a raw string or whole number; `None` for other values.
pub(super) fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    let is_number = || raw.bytes().all(|byte| byte.is_ascii_digit());
    frame::scalar(raw).filter(|_| raw.starts_with('"') || is_number())
}
