//! [`OtherEvent`]: an event of an agent's own type.

use std::borrow::Cow;

use rpc_core::decode::{RawJson, Reader, SharedJson, SharedStr};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::super::json::Json;
use super::super::keep::Keep;

/// Members that every event has.
const COMMON: [&str; 4] = ["type", "id", "ts", "session_id"];

/// An event of a type that this crate does not know: agents may send any. Two are equal if the texts
/// of their bodies are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherEvent<S = SharedStr, J = SharedJson> {
    /// Its type.
    pub name: S,
    /// An object with its members, as it was sent. The common ones (`type`, `id`, `ts`,
    /// `session_id`) may be among them and do not count.
    pub body: J,
}

impl OtherEvent {
    /// An event of this type with the members of this object. Nothing is written of a `body` that
    /// is no object.
    pub fn new(name: impl Into<SharedStr>, body: SharedJson) -> Self {
        Self {
            name: name.into(),
            body,
        }
    }
}

impl<S, J: Json> OtherEvent<S, J> {
    /// Its members but the common ones, in order and as they were sent.
    #[must_use]
    pub fn members(&self) -> Vec<(Cow<'_, str>, RawJson<'_>)> {
        let mut members = Vec::new();
        // What is no object has none.
        let _ = self.each(|name, value| {
            members.push((name, value));
            Ok(())
        });
        members
    }

    fn each<'j>(
        &'j self,
        mut member: impl FnMut(Cow<'j, str>, RawJson<'j>) -> Result<(), rpc_core::DecodeError>,
    ) -> Result<(), rpc_core::DecodeError> {
        Reader::new(self.body.json()).each_member(|name, value| {
            let value = value.raw_or_null()?;
            if COMMON.contains(&&*name) {
                return Ok(());
            }
            member(name, value)
        })
    }
}

impl<'a> OtherEvent<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn keep<K: Keep>(&self, how: &K) -> OtherEvent<K::Text, K::Json> {
        OtherEvent {
            name: how.text(&self.name),
            body: how.json(&self.body),
        }
    }
}

/// Writes the members but the common ones.
impl<S, J: Json> Serialize for OtherEvent<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut failed = None;
        let read = self.each(|name, value| {
            if failed.is_none() {
                failed = map.serialize_entry(&name, &value).err();
            }
            Ok(())
        });
        // What is no object has no members.
        drop(read);
        match failed {
            Some(error) => Err(error),
            None => map.end(),
        }
    }
}
