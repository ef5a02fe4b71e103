//! [`SessionKey`]: the name of a conversation.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rpc_core::Refused;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// The name of a conversation: `{agent}:{channel}:{account}:{peer}`. Exoclaw specification,
/// `chat.send`, step 2.
///
/// In the text `%` and `:` within a part are written `%25` and `%3A`, so that different parts never
/// give the same key; other parts appear as they are. Cheap to clone, compare and hash: a key is
/// one shared text. Keys are ordered by that text.
///
/// ```
/// use exoclaw_proto::session::SessionKey;
///
/// let key = SessionKey::new("default", "websocket", "user-123", "main");
/// assert_eq!(key.to_string(), "default:websocket:user-123:main");
/// let odd = SessionKey::new("default", "a:b", "c", "main");
/// assert_eq!(odd.as_str(), "default:a%3Ab:c:main");
/// assert_eq!(odd.channel(), "a:b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(Arc<str>);

const PARTS: usize = 4;

/// Returns whether every `%` begins one of the two escapes that are ever written.
fn well_escaped(part: &str) -> bool {
    part.split('%')
        .skip(1)
        .all(|rest| rest.starts_with("25") || rest.starts_with("3A"))
}

fn unescape(part: &str) -> Cow<'_, str> {
    if !part.contains('%') {
        return Cow::Borrowed(part);
    }
    // In this order: what "%25" gives is not read again.
    Cow::Owned(part.replace("%3A", ":").replace("%25", "%"))
}

impl SessionKey {
    /// Creates the key of these parts. Each can be any text.
    #[must_use]
    pub fn new(agent: &str, channel: &str, account: &str, peer: &str) -> Self {
        let parts = [agent, channel, account, peer];
        let mut text = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
        for (i, part) in parts.into_iter().enumerate() {
            if i > 0 {
                text.push(':');
            }
            let mut rest = part;
            while let Some(at) = rest.find(['%', ':']) {
                let (plain, odd) = rest.split_at(at);
                text.push_str(plain);
                text.push_str(if odd.starts_with('%') { "%25" } else { "%3A" });
                // Both are one byte long.
                rest = odd.get(1..).unwrap_or_default();
            }
            text.push_str(rest);
        }
        Self(text.into())
    }

    /// Parses the text of a key. Only what [`Display`](fmt::Display) writes is accepted, so that a
    /// key has one text.
    ///
    /// # Errors
    /// [`Refused::Invalid`]; parsing it again fails again.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        if text.split(':').count() != PARTS {
            return Err(Refused::invalid(
                "session key",
                "it has other than four parts",
            ));
        }
        if !text.split(':').all(well_escaped) {
            return Err(Refused::invalid(
                "session key",
                "a % is not followed by 25 or 3A",
            ));
        }
        Ok(Self(text.into()))
    }

    /// Returns the text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id of the agent.
    #[must_use]
    pub fn agent(&self) -> Cow<'_, str> {
        self.part(0)
    }

    /// Returns the channel, such as `websocket`.
    #[must_use]
    pub fn channel(&self) -> Cow<'_, str> {
        self.part(1)
    }

    /// Returns the account within the channel.
    #[must_use]
    pub fn account(&self) -> Cow<'_, str> {
        self.part(2)
    }

    /// Returns the peer of the account.
    #[must_use]
    pub fn peer(&self) -> Cow<'_, str> {
        self.part(3)
    }

    fn part(&self, index: usize) -> Cow<'_, str> {
        unescape(self.0.split(':').nth(index).unwrap_or_default())
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Serializes the text.
impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Deserializes the text.
impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_parts_are_not_escaped() {
        let key = SessionKey::new("default", "websocket", "user-123", "main");
        assert_eq!(key.to_string(), "default:websocket:user-123:main");
        assert_eq!(
            format!("{key:?}"),
            r#"SessionKey("default:websocket:user-123:main")"#
        );
    }

    #[test]
    fn parts_with_colons_do_not_collide() {
        let (one, two) = (
            SessionKey::new("d", "a:b", "c", "m"),
            SessionKey::new("d", "a", "b:c", "m"),
        );
        assert_ne!(one, two);
        assert_eq!(one.as_str(), "d:a%3Ab:c:m");
        assert_ne!(SessionKey::new("%3A", "", "", "").agent(), ":");
    }

    #[test]
    fn empty_parts_are_kept() {
        let key = SessionKey::new("d", "", "", "");
        assert_eq!(key.as_str(), "d:::");
        assert_eq!(SessionKey::parse("d:::"), Ok(key));
    }

    #[test]
    fn invalid_session_keys_are_refused() {
        for (text, why) in [
            ("", "parts"),
            ("a:b:c", "parts"),
            ("a:b:c:d:e", "parts"),
            ("a:b:c:%", "a %"),
            ("a:b:c:%41", "a %"),
            ("a:b:c:%3a", "a %"),
            ("a:b%2:5c:d", "a %"),
        ] {
            let error = SessionKey::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_session_key_is_a_json_string() {
        let key = SessionKey::new("d", "a:b", "\"c\"", "m");
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json, r#""d:a%3Ab:\"c\":m""#);
        assert_eq!(serde_json::from_str::<SessionKey>(&json).unwrap(), key);
        assert!(serde_json::from_str::<SessionKey>(r#""a:b""#).is_err());
    }
}
