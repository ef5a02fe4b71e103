//! Ids: [`ChannelUid`], the client's [`CallId`], and [`WireId`], a call id as the peer sent it.

use std::borrow::Cow;
use std::fmt;

use rpc_core::json::lenient;
use rpc_core::{DecodeError, Json};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The id of a call of this client: 16 lower-case hex digits on the wire.
pub type CallId = rpc_core::CallId;

/// Marks ids of channels.
#[derive(Debug)]
pub enum ChannelKind {}

/// The uid of a channel. It can hold any text; [`is_channel_uid`] says whether the text is a valid
/// uid.
pub type ChannelUid = rpc_core::Id<ChannelKind>;

/// Returns whether a text is a channel uid: one or more of `a-z`, `A-Z`, `0-9`, `_` and `-`, and
/// nothing else, not even a newline at the end.
#[must_use]
pub fn is_channel_uid(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The `callId` of a frame: any JSON string, number or boolean, kept as it was sent, to be returned
/// unchanged.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct WireId(Json);

impl WireId {
    /// Creates an id from a string, a number or a boolean.
    ///
    /// # Errors
    /// [`DecodeError`] for an object, an array or null.
    pub fn new(json: impl Into<Json>) -> Result<Self, DecodeError> {
        let json = json.into();
        match json.first_byte() {
            b'{' | b'[' | b'n' => Err(DecodeError::wrong_type("callId", SCALAR)),
            _ => Ok(Self(json)),
        }
    }

    /// Creates an id from a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self(Json::string(text))
    }

    /// Returns the id as a text: a string's contents or a number's digits. `None` for a boolean.
    #[must_use]
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        self.0.as_id()
    }

    /// Returns the id as JSON.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

const SCALAR: &str = "a string, a number or a boolean";

impl From<WireId> for Json {
    fn from(id: WireId) -> Self {
        id.0
    }
}

impl fmt::Debug for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(lenient::verbatim(from)?).map_err(|_| D::Error::custom(SCALAR))
    }
}

/// Returns whether a new user may have this name: others see it, so it must not be blank or control how
/// text is shown.
#[cfg(feature = "server")]
pub(crate) fn is_username(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(rpc_core::text::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_has_a_strict_form() {
        for good in ["ch1", "a-b_C9", "-"] {
            assert!(is_channel_uid(good), "{good}");
        }
        for bad in ["", "ch1\n", "a b", "é", "a/b", "a.b"] {
            assert!(!is_channel_uid(bad), "{bad:?}");
        }
    }

    #[test]
    fn any_scalar_id_is_echoed_unchanged() {
        for json in [r#""a\u0062""#, "7", "1.50", "true", r#""\ud800""#] {
            let id: WireId = rpc_core::json::parse(json, &rpc_core::Limits::default()).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
        }
        for json in ["null", "[]", "{}"] {
            let json = Json::new(json).unwrap();
            assert!(json.parse::<WireId>().is_err(), "{}", json.get());
        }
    }

    #[test]
    fn an_id_displays_as_text() {
        let raw = Json::new(r#""a\u0062""#).unwrap();
        assert_eq!(WireId::new(raw).unwrap().as_text().as_deref(), Some("ab"));
        assert_eq!(WireId::text("a\"b").get(), r#""a\"b""#);
    }
}
