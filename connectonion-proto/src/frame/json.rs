//! Readers of members that have more than one form, and parts shared by client and server frames.

use rpc_core::json::{self, DecodeErrorKind, lenient};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::SessionId;

/// Returns a member of an object, as it was sent; `None` if it is absent or null, or if this is not
/// an object. Of several members of that name the last counts, which the known peers read and sign.
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

/// Reads the items of a list; an absent list is empty.
pub(super) fn list<'j, T: Deserialize<'j>>(
    list: Option<&'j Json>,
    limits: &Limits,
) -> Result<Vec<T>, DecodeError> {
    list.map_or_else(|| Ok(Vec::new()), |list| json::parse(list.get(), limits))
}

/// Reads a string, or the JSON of any other value; null is an empty text.
pub(super) fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    Ok(lenient::optional_loose(from)?.unwrap_or_default())
}

/// Reads the id of a session. An empty one counts as absent.
pub(super) fn filled_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
    Ok(lenient::optional_id(from)?.filter(|id: &SessionId| !id.is_empty()))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(super) const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Writes a frame that only has a type.
pub(super) fn type_alone<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("type", name)])
}

/// Writes a frame of an unknown type, as it was sent.
pub(super) fn verbatim<S: Serializer>(_: &Str, raw: &Json, to: S) -> Result<S::Ok, S::Error> {
    raw.serialize(to)
}

/// Returns the error of a frame of one of these types. Invalid JSON takes precedence.
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
