//! The types inside frames: [`User`], [`Channel`], [`Final`].

use rpc_core::Str;
use rpc_core::json::lenient;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::ChannelUid;
use crate::limits::DM_TAG;

/// Whether a message is complete. Exhaustive: the wire has a boolean for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Final {
    /// Complete.
    Yes,
    /// Partial: the next message replaces it.
    No,
}

impl From<bool> for Final {
    fn from(is_final: bool) -> Self {
        if is_final { Self::Yes } else { Self::No }
    }
}

impl From<Final> for bool {
    fn from(is_final: Final) -> Self {
        is_final == Final::Yes
    }
}

/// No positional arguments: `[]`.
pub(crate) type NoArgs = [(); 0];

/// No named arguments: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct NoKwargs {}

/// A user's record. Other members of the record are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// The login name, unique.
    pub username: Str,
    /// The display name; may be empty.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub nick: Str,
}

impl User {
    /// Creates a record.
    pub fn new(username: impl Into<Str>, nick: impl Into<Str>) -> Self {
        Self {
            username: username.into(),
            nick: nick.into(),
        }
    }
}

/// A channel. Other members of the record are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Channel {
    /// Its uid.
    #[serde(deserialize_with = "uid")]
    pub uid: ChannelUid,
    /// Its display name; may be empty.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: Str,
    /// Its kind: `"dm"`, any other text, or nothing.
    pub tag: Option<Str>,
}

/// Reads a uid; a number is not one.
fn uid<'de, D: Deserializer<'de>>(from: D) -> Result<ChannelUid, D::Error> {
    Str::deserialize(from).map(ChannelUid::new)
}

impl Channel {
    /// Creates a channel.
    pub fn new(uid: impl Into<ChannelUid>, name: impl Into<Str>, tag: Option<&str>) -> Self {
        Self {
            uid: uid.into(),
            name: name.into(),
            tag: tag.map(Str::from),
        }
    }

    /// Returns whether it is a direct message channel: its tag is exactly `"dm"`.
    #[must_use]
    pub fn is_dm(&self) -> bool {
        self.tag.as_deref() == Some(DM_TAG)
    }
}
