//! [`Extra`]: members that peers of other versions send.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Refused;
use rpc_core::decode::{DecodeError, Field, RawJson, Slot};
use serde::Serialize;
use serde::ser::SerializeMap;

use crate::limits::MAX_EXTRA;

/// Members of an open object that this crate does not know, in their order: at most [`MAX_EXTRA`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Extra<'a> {
    members: Vec<(Cow<'a, str>, RawJson<'a>)>,
}

impl<'a> Extra<'a> {
    /// The member of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson<'a>> {
        self.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Every member.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson<'a>)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member, in place of one of the same name. One too many is left out, and null, which
    /// is as good as nothing.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: RawJson<'a>) {
        let name = name.into();
        self.members.retain(|it| it.0 != name);
        if self.members.len() < MAX_EXTRA && !value.is_null() {
            self.members.push((name, value));
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Extra<'static> {
        let members = self.members.into_iter();
        Extra {
            members: members
                .map(|(name, value)| (owned(name), value.into_owned()))
                .collect(),
        }
    }
}

impl<'a> Extra<'a> {
    /// Takes a member, if it is not null.
    pub(crate) fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        let mut value = Slot::default();
        field.raw("extra", &mut value)?;
        if let Some(value) = value.take() {
            self.set(name.to_owned(), value);
        }
        Ok(())
    }

    /// Writes the members behind others.
    pub(crate) fn write<M: SerializeMap>(&self, to: &mut M) -> Result<(), M::Error> {
        self.iter()
            .try_for_each(|(name, value)| to.serialize_entry(name, value))
    }
}

/// Prints the names only.
impl fmt::Debug for Extra<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|it| it.0)).finish()
    }
}

/// A text that borrows nothing.
pub(crate) fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// A value as raw JSON.
pub(crate) fn to_raw(value: &impl Serialize) -> Result<RawJson<'static>, Refused> {
    serde_json::value::to_raw_value(value)
        .map(RawJson::from)
        .map_err(|error| Refused::Encode {
            message: error.to_string(),
        })
}
