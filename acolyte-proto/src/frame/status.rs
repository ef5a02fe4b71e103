//! [`Status`]: the identity and load of a server.

use rpc_core::{DecodeError, Limits, Str, json};
use serde::{Deserialize, Deserializer, Serialize};

use super::open::{Extra, keep_extra};
use crate::error::Mismatch;
use crate::limits::PROTOCOL_VERSION;
use crate::loose;

/// The identity and load of a server: `status.result`, and the body of `GET /v1/status`. Both
/// `provider_auth` and `tasks_detached` are written, because each known client requires one of
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Status {
    /// Whether the server is healthy; known servers always say so.
    #[serde(default = "well", deserialize_with = "ok_by_default")]
    pub ok: bool,
    /// The models' providers; seen: `anthropic`, `google`, `openai`, `vercel`.
    #[serde(default, deserialize_with = "loose::strings")]
    pub providers: Vec<Str>,
    /// The providers with a known key. Servers from 0.22.
    #[serde(default, deserialize_with = "loose::strings")]
    pub provider_auth: Vec<Str>,
    /// The default model.
    #[serde(default, deserialize_with = "loose::text")]
    pub model: Str,
    /// The protocol's version, `1`. It proves nothing: all known servers report the same.
    #[serde(default, deserialize_with = "loose::text")]
    pub protocol_version: Str,
    /// The server's capabilities, separated by commas. See
    /// [`capability_words`](Self::capability_words).
    #[serde(default, deserialize_with = "loose::text")]
    pub capabilities: Str,
    /// The server's own address.
    #[serde(default, deserialize_with = "loose::text")]
    pub service: Str,
    /// The number of remembered tasks.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_total: u64,
    /// The number of running tasks.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_running: u64,
    /// The number of running tasks without a client. Servers up to 0.21.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_detached: u64,
    /// The number of waiting chats, of all connections.
    #[serde(default, deserialize_with = "loose::count")]
    pub rpc_queue_length: u64,
    /// Members that this crate does not know. Known clients require texts, numbers, booleans and
    /// lists of texts here.
    #[serde(flatten, skip_deserializing)]
    pub extra: Extra,
}

keep_extra!(Status);

const fn well() -> bool {
    true
}

fn ok_by_default<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(well))
}

impl Status {
    /// Creates the status of an idle server with this model and address. It does not claim that
    /// chats work in the [workspace](super::ChatRequest::workspace) that they name: an agent that
    /// heeds it sets [`capabilities`](Self::capabilities) to
    /// [`CAPABILITIES`](crate::limits::CAPABILITIES).
    pub fn new(model: impl Into<Str>, service: impl Into<Str>) -> Self {
        Self {
            ok: true,
            protocol_version: PROTOCOL_VERSION.into(),
            capabilities: "error.structured, stream.sse".into(),
            model: model.into(),
            service: service.into(),
            providers: Vec::new(),
            provider_auth: Vec::new(),
            tasks_total: 0,
            tasks_running: 0,
            tasks_detached: 0,
            rpc_queue_length: 0,
            extra: Extra::default(),
        }
    }

    /// Returns the words of [`capabilities`](Self::capabilities), without the space around them.
    pub fn capability_words(&self) -> impl Iterator<Item = &str> {
        let words = self.capabilities.split(',').map(str::trim);
        words.filter(|word| !word.is_empty())
    }

    /// Checks that the server speaks version 1 and has all of the needed capabilities. The check is
    /// optional: all known servers report version `1` and the same capabilities, although they
    /// differ.
    ///
    /// # Errors
    /// [`Mismatch`] says which version the server speaks, or what it lacks: use another server, or do without.
    ///
    /// ```
    /// use acolyte_proto::error::Mismatch;
    /// use acolyte_proto::frame::Status;
    ///
    /// let status = Status::new("m", "http://localhost:6767");
    /// status.agree(&["stream.sse"])?;
    /// let refused = status.agree(&["teleport"]);
    /// assert!(matches!(refused, Err(Mismatch::Capabilities { missing }) if missing == ["teleport"]));
    /// # Ok::<(), Mismatch>(())
    /// ```
    pub fn agree(&self, needed: &[&str]) -> Result<(), Mismatch> {
        if self.protocol_version != PROTOCOL_VERSION {
            let theirs = self.protocol_version.to_string();
            return Err(Mismatch::Version { theirs });
        }
        let is_missing = |word: &&&str| self.capability_words().all(|it| it != **word);
        let missing = needed.iter().filter(is_missing);
        let missing: Vec<_> = missing.map(|word| (*word).to_owned()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Mismatch::Capabilities { missing }),
        }
    }

    /// Decodes the body of `GET /v1/status`. Absent members are empty or zero: check the
    /// [version](Self::protocol_version).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, or if `ok` is neither true nor false. Decoding
    /// it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_a_comma_separated_list() {
        let mut status = Status::new("m", "s");
        assert_eq!(status.agree(&["error.structured", "stream.sse"]), Ok(()));
        status.capabilities = " stream.sse ,workspace.path,, error.structured".into();
        assert_eq!(status.agree(&["stream.sse", "workspace.path"]), Ok(()));
        assert!(status.agree(&["stream"]).is_err());
        assert!(status.agree(&[""]).is_err());
    }

    #[test]
    fn a_client_refuses_every_version_but_its_own() {
        let mut status = Status::new("m", "s");
        assert_eq!(status.agree(&[]), Ok(()));
        for theirs in ["", "0", "01", "1.0", "1 ", "2", "11", "v1"] {
            status.protocol_version = theirs.into();
            let mismatch = status.agree(&[]).unwrap_err();
            assert!(mismatch.to_string().contains(&format!("{theirs:?}")));
            let theirs = theirs.to_owned();
            assert_eq!(mismatch, Mismatch::Version { theirs });
        }
    }
}
