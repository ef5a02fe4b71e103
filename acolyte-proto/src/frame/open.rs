//! [`Extra`]: unknown members, from peers of other versions.

use std::fmt;

use rpc_core::{Json, Str};
use serde::{Serialize, Serializer};

use crate::limits::MAX_EXTRA;

/// The unknown members of an open object, in order: at most 64.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Extra {
    members: Vec<(Str, Json)>,
}

impl Extra {
    /// Returns the member of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns an iterator over all members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns whether there are no members.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Sets a member, replacing one of the same name. A member beyond the limit is left out, and so
    /// is null, which counts as absent.
    pub fn set(&mut self, name: impl Into<Str>, value: impl Into<Json>) {
        let (name, value) = (name.into(), value.into());
        self.members.retain(|it| it.0 != name);
        if self.members.len() < MAX_EXTRA && !value.is_null() {
            self.members.push((name, value));
        }
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

/// Prints the names only.
impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|it| it.0)).finish()
    }
}

/// Lets a type of `#[serde(remote = "Self")]` keep unknown members in `extra`. An optional function
/// adjusts the value after reading.
macro_rules! keep_extra {
    ($Name:ty $(, $then:path)?) => {
        #[automatically_derived]
        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let mut extra = crate::frame::Extra::default();
                let keep = |name: &str, value| extra.set(name, value);
                let read = Self::deserialize(rpc_core::json::open(from, keep))?;
                Ok($($then)?(Self { extra, ..read }))
            }
        }

        #[automatically_derived]
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }
    };
}

pub(crate) use keep_extra;
