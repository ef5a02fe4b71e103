//! [`Json`]: a raw JSON value, borrowed or shared, and how lists in it are read.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, RawJson, Reader, SharedJson};
use serde::Serialize;

/// A JSON value that is kept as it was sent: [`RawJson`] in decoded frames, [`SharedJson`] in what
/// applications get and give.
pub trait Json: Clone + PartialEq + Serialize {
    /// The JSON text.
    fn json(&self) -> &str;
}

impl Json for RawJson<'_> {
    fn json(&self) -> &str {
        self.get()
    }
}

impl Json for SharedJson {
    fn json(&self) -> &str {
        self.get()
    }
}

/// A member of an object, as it was sent; `None` if it is absent or null, or if this is no object. Of
/// several the last: that is the one that the known peers read, and sign.
pub(super) fn last_member<'j>(object: &'j str, name: &str) -> Option<RawJson<'j>> {
    let mut found = None;
    let mut reader = Reader::new(object);
    let read = reader.each_member(|known, value| {
        if known == name {
            found = Some(value.raw_or_null()?);
            return Ok(());
        }
        value.skip()
    });
    read.ok()?;
    found.filter(|value| !value.is_null())
}

/// The items of a list of texts; none is an empty list.
pub(super) fn texts<'j>(
    list: Option<&'j impl Json>,
    limits: &Limits,
) -> Result<Vec<Cow<'j, str>>, DecodeError> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let items = decode::raw_list(list.json(), limits)?;
    let text = |item: RawJson<'j>| {
        item.into_str()
            .ok_or_else(|| DecodeError::new(decode::DecodeErrorKind::Mismatch))
    };
    items.into_iter().map(text).collect()
}
