//! How members are read that have more than one form, and what client and server frames share.

use rpc_core::json::{self, DecodeErrorKind, lenient};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A member of an object, as it was sent; `None` if it is absent or null, or if this is no object. Of
/// several the last: that is the one that the known peers read, and sign.
pub(super) fn last_member(object: &Json, name: &str) -> Option<Json> {
    let mut found = None;
    let read = json::each_member(object.get(), |known, value| {
        if known == name {
            found = Some(value);
        }
    });
    read.ok()?;
    Json::new(found?).ok().filter(|json| !json.is_null())
}

/// The items of a list; none is an empty list.
pub(super) fn list<'j, T: Deserialize<'j>>(
    list: Option<&'j Json>,
    limits: &Limits,
) -> Result<Vec<T>, DecodeError> {
    list.map_or_else(|| Ok(Vec::new()), |list| json::parse(list.get(), limits))
}

/// A string, or the JSON of any other value; null is an empty text.
pub(super) fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    Ok(lenient::optional_loose(from)?.unwrap_or_default())
}

/// An id. An empty one is none.
pub(super) fn filled_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    Ok(lenient::optional_id(from)?.filter(|id: &Str| !id.is_empty()))
}

/// Members that may be absent or null, for `with`: each module has the way that it is read by.
pub(super) mod opt {
    use serde::{Serialize, Serializer};

    pub(in crate::frame) mod array {
        pub(in crate::frame) use super::serialize;
        pub(in crate::frame) use rpc_core::json::lenient::optional_array as deserialize;
    }

    pub(in crate::frame) mod id {
        pub(in crate::frame) use super::serialize;
        pub(in crate::frame) use rpc_core::json::lenient::optional_id as deserialize;
    }

    pub(in crate::frame) mod loose {
        pub(in crate::frame) use super::serialize;
        pub(in crate::frame) use rpc_core::json::lenient::optional_loose as deserialize;
    }

    pub(in crate::frame) mod object {
        pub(in crate::frame) use super::serialize;
        pub(in crate::frame) use rpc_core::json::lenient::optional_object as deserialize;
    }

    pub(in crate::frame) fn serialize<S: Serializer>(
        member: &impl Serialize,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        member.serialize(to)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(super) const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A frame that is nothing but its type.
pub(super) fn type_alone<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("type", name)])
}

/// A frame of an unknown type, as it was sent.
pub(super) fn verbatim<S: Serializer>(_: &Str, raw: &Json, to: S) -> Result<S::Ok, S::Error> {
    raw.serialize(to)
}

/// What is wrong with a frame of one of these types: that it is no JSON, before anything else.
#[cold]
pub(super) fn in_frame<'n>(
    error: DecodeError,
    text: &str,
    mut names: impl Iterator<Item = &'n &'static str>,
) -> DecodeError {
    match error.kind() {
        DecodeErrorKind::DuplicateMember(name)
        | DecodeErrorKind::MissingMember(name)
        | DecodeErrorKind::WrongType { member: name, .. }
        | DecodeErrorKind::BadValue { member: name, .. } => {
            if let Err(error) = json::parse::<IgnoredAny>(text, &Limits::default()) {
                return error;
            }
            if name == "type" {
                return error;
            }
        }
        _ => return error,
    }
    let tag = json::find_member(text, "type");
    let tag = tag.as_ref().and_then(Json::as_str).unwrap_or_default();
    match names.find(|name| tag == **name || **name == "ADMIN" && tag.starts_with("ADMIN_")) {
        Some(name) => error.in_frame(name),
        None => error,
    }
}
