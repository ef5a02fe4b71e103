//! The handshake that the specification speaks of, as far as there is one: [`Capabilities`] and
//! [`Mismatch`].
//!
//! A server tells a version and its capabilities in its [`Status`]; nobody has to ask. All known
//! servers tell version `1` and the same capabilities, although they differ.

use std::collections::BTreeSet;
use std::fmt;

use crate::frame::Status;
use crate::limits::PROTOCOL_VERSION;

/// The words that known servers tell in [`Status::capabilities`]. The set is open.
pub mod capability {
    /// Errors carry details.
    pub const ERROR_STRUCTURED: &str = "error.structured";
    /// Chats run over HTTP and server-sent events too.
    pub const STREAM_SSE: &str = "stream.sse";
    /// A chat may name the folder that it works in.
    pub const WORKSPACE_PATH: &str = "workspace.path";
}

/// What a server can do, by its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    words: BTreeSet<String>,
}

/// Why a server does not fit. Asking again gives the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It speaks another version.
    #[error("the server speaks version {theirs:?} of the protocol, not {PROTOCOL_VERSION:?}")]
    Version {
        /// What it tells; empty if it tells none.
        theirs: String,
    },
    /// It lacks capabilities.
    #[error("the server lacks {}", .missing.join(", "))]
    Capabilities {
        /// Which.
        missing: Vec<String>,
    },
}

impl Capabilities {
    /// What this server can do.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        let words = status.capability_words().map(str::to_owned).collect();
        Self { words }
    }

    /// What this server can do, if it speaks [this version](PROTOCOL_VERSION) and can do all that is
    /// needed.
    ///
    /// # Errors
    /// [`Mismatch`].
    ///
    /// ```
    /// use acolyte_proto::frame::Status;
    /// use acolyte_proto::handshake::{Capabilities, Mismatch, capability};
    ///
    /// let status = Status::new("m", "http://localhost:6767");
    /// let capabilities = Capabilities::agree(&status, &[capability::STREAM_SSE])?;
    /// assert!(capabilities.contains(capability::WORKSPACE_PATH));
    /// let refused = Capabilities::agree(&status, &["teleport"]);
    /// assert!(matches!(refused, Err(Mismatch::Capabilities { missing }) if missing == ["teleport"]));
    /// # Ok::<(), Mismatch>(())
    /// ```
    pub fn agree(status: &Status, needed: &[&str]) -> Result<Self, Mismatch> {
        if status.protocol_version != PROTOCOL_VERSION {
            let theirs = status.protocol_version.to_string();
            return Err(Mismatch::Version { theirs });
        }
        let capabilities = Self::of(status);
        let missing = needed.iter().filter(|word| !capabilities.contains(word));
        let missing: Vec<_> = missing.map(|word| (*word).to_owned()).collect();
        match missing.is_empty() {
            true => Ok(capabilities),
            false => Err(Mismatch::Capabilities { missing }),
        }
    }

    /// Whether the server can do this.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Every word, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

/// As servers write them.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{word}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_words_between_commas() {
        let mut status = Status::new("m", "s");
        status.capabilities = " stream.sse ,workspace.path,, error.structured".into();
        let capabilities = Capabilities::of(&status);
        assert_eq!(capabilities.to_string(), crate::limits::CAPABILITIES);
        assert!(capabilities.contains(capability::STREAM_SSE));
        assert!(!capabilities.contains("stream"));
    }

    #[test]
    fn another_version_is_a_mismatch() {
        let mut status = Status::new("m", "s");
        status.protocol_version = "2".into();
        let theirs = "2".to_owned();
        let mismatch = Capabilities::agree(&status, &[]).unwrap_err();
        assert_eq!(mismatch, Mismatch::Version { theirs });
        assert!(mismatch.to_string().contains("\"2\""));
    }
}
