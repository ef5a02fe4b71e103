//! Ids: a prefix for the kind of thing, then lower-case letters and digits.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;

use rpc_core::{Refused, Str};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::ToolCall;
use crate::limits::MAX_ID_BYTES;
pub(crate) use kind::Kind;

mod kind {
    //! The kinds of ids.

    /// A kind of id.
    pub trait Kind {
        /// The prefixes of its ids. New ones have the first.
        const PREFIXES: &'static [&'static str];
    }

    macro_rules! kinds {
        ($($Name:ident: $($prefix:literal)+;)+) => {$(
            #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $Name {}

            impl Kind for $Name {
                const PREFIXES: &'static [&'static str] = &[$($prefix),+];
            }
        )+};
    }

    kinds! {
        RpcKind: "rpc_";
        TaskKind: "task_";
        SessionKind: "sess_";
        FailureKind: "err_";
        MessageKind: "msg_";
        ResourceKind: "proj_" "user_";
    }
}

/// An id of the kind `K`: `^prefix_[a-z0-9]+$`, at most 1,024 bytes long.
///
/// Known peers refuse any other text, so this type cannot hold one. Cheap to clone; an id of usual
/// length allocates nothing.
///
/// ```
/// use acolyte_proto::id::RpcId;
///
/// let id = "rpc_0a1b2c3d".parse::<RpcId>()?;
/// assert_eq!(id.as_str(), "rpc_0a1b2c3d");
/// assert!("rpc_0A".parse::<RpcId>().is_err());
/// # Ok::<(), acolyte_proto::Refused>(())
/// ```
#[derive(Clone, Eq, PartialOrd, Ord, Hash)]
pub struct Id<K>(Str, PhantomData<fn() -> K>);

/// The id of a request, `rpc_…`: all its answers carry it.
pub type RpcId = Id<kind::RpcKind>;
/// The id of an accepted chat, `task_…`.
pub type TaskId = Id<kind::TaskKind>;
/// The id of a conversation, `sess_…`.
pub type SessionId = Id<kind::SessionKind>;
/// The id of a failure, `err_…`, for the server's log.
pub type ErrorId = Id<kind::FailureKind>;
/// The id of a message in a history, `msg_…`.
pub type MessageId = Id<kind::MessageKind>;
/// The id of a memory's owner, `proj_…` or `user_…`.
pub type ResourceId = Id<kind::ResourceKind>;

/// The id of a call of a tool: any text, by which its outputs and its result refer to it.
pub type ToolCallId = rpc_core::Id<ToolCall>;

/// The id in the answer to a request whose own id could not be read.
pub(crate) const UNREADABLE_ID: &str = "rpc_unknown";

pub(crate) const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

pub(crate) const fn is_digit(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9')
}

impl<K: Kind> FromStr for Id<K> {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        Self::read(text).ok_or_else(|| {
            let prefix = K::PREFIXES.join("` or `");
            let why = format!("it is not `{prefix}` and then lower-case letters and digits");
            Refused::invalid("id", why)
        })
    }
}

impl<K: Kind> Id<K> {
    /// Parses an id, for places where another text is left out.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let is_id = K::PREFIXES.iter().any(|prefix| {
            text.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_digit))
        });
        (is_id && text.len() <= MAX_ID_BYTES).then(|| Self::new(text))
    }

    /// Creates an id of the usual form: its prefix and 8 characters from random bits. A resource's
    /// id starts with `proj_`.
    #[must_use]
    pub fn random(entropy: u64) -> Self {
        let mut text = String::with_capacity(24);
        text.push_str(K::PREFIXES.first().copied().unwrap_or_default());
        let mut rest = entropy;
        for _ in 0..8 {
            // The remainder is an index: it is below 36.
            let digit = usize::try_from(rest % 36).unwrap_or_default();
            text.push(DIGITS.get(digit).copied().unwrap_or(b'0').into());
            rest /= 36;
        }
        Self::new(&text)
    }
}

impl<K> Id<K> {
    fn new(text: &str) -> Self {
        Self(text.into(), PhantomData)
    }

    /// Returns the text on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RpcId {
    /// Returns `rpc_unknown`, the id in the answer to a request whose own id could not be read.
    #[must_use]
    pub fn unreadable() -> Self {
        Self::new(UNREADABLE_ID)
    }

    /// Creates an id from a text known to have the form: one of this client.
    pub(crate) fn of_call(text: &str) -> Self {
        Self::new(text)
    }

    /// Returns whether this is `rpc_unknown`.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.as_str() == UNREADABLE_ID
    }
}

impl<K> Deref for Id<K> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<K> AsRef<str> for Id<K> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// Compares with every text: `str`, `String`, [`Str`], another id.
impl<K, T: AsRef<str> + ?Sized> PartialEq<T> for Id<K> {
    fn eq(&self, other: &T) -> bool {
        self.0 == *other
    }
}

impl<K> PartialEq<Id<K>> for str {
    fn eq(&self, other: &Id<K>) -> bool {
        other == self
    }
}

impl<K> PartialEq<Id<K>> for &str {
    fn eq(&self, other: &Id<K>) -> bool {
        other == self
    }
}

impl<K> PartialEq<Id<K>> for String {
    fn eq(&self, other: &Id<K>) -> bool {
        other == self
    }
}

impl<K> Borrow<str> for Id<K> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_str(&Str::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_strict_form_parses_as_an_id() {
        for text in [
            "rpc_a",
            "rpc_0",
            "rpc_unknown",
            &format!("rpc_{}", "z".repeat(500)),
            &format!("rpc_{}", "z".repeat(1_020)),
        ] {
            assert_eq!(text.parse::<RpcId>().unwrap().as_str(), text);
        }
        let long = format!("rpc_{}", "a".repeat(1_021));
        for text in [
            "", "rpc_", "rpc", "rpc_A", "rpc_a-b", "rpc_a_b", "task_a", " rpc_a", "rpc_é", &long,
        ] {
            assert!(text.parse::<RpcId>().is_err(), "{text}");
        }
        assert!("user_a".parse::<ResourceId>().is_ok() && "proj_a".parse::<ResourceId>().is_ok());
        assert!("sess_a".parse::<ResourceId>().is_err());
    }

    #[test]
    fn a_random_id_has_eight_characters_of_the_strict_form() {
        for entropy in [0, 35, u64::MAX] {
            let id = TaskId::random(entropy);
            assert_eq!(id.as_str().len(), "task_".len() + 8);
            assert_eq!(id.as_str().parse::<TaskId>(), Ok(id));
        }
        assert_eq!(RpcId::random(36).as_str(), "rpc_01000000");
    }

    #[test]
    fn an_id_is_found_by_its_text() {
        let ids = std::collections::HashSet::from([RpcId::random(1)]);
        assert!(ids.contains("rpc_10000000"));
        assert!(RpcId::unreadable().is_unreadable());
    }
}
