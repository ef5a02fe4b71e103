//! The handshake of the specification, as far as it exists: [`Capabilities`] and [`Mismatch`].
//!
//! A server reports a version and its capabilities in its [`Status`]; checking them is optional.
//! All known servers report version `1` and the same capabilities, although they differ.

use std::collections::BTreeSet;
use std::fmt;

use crate::frame::Status;
use crate::limits::PROTOCOL_VERSION;

/// The capabilities that a server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    words: BTreeSet<String>,
}

/// Why a server is not compatible. Asking again gives the same result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It speaks another version.
    #[error("the server speaks version {theirs:?} of the protocol, not {PROTOCOL_VERSION:?}")]
    Version {
        /// The reported version; empty if there is none.
        theirs: String,
    },
    /// It lacks capabilities.
    #[error("the server lacks {}", .missing.join(", "))]
    Capabilities {
        /// The missing ones.
        missing: Vec<String>,
    },
}

impl Capabilities {
    /// Returns the capabilities of this server.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        let words = status.capability_words().map(str::to_owned).collect();
        Self { words }
    }

    /// Returns the server's capabilities, if it speaks version 1 and has all
    /// the needed ones.
    ///
    /// # Errors
    /// [`Mismatch`].
    ///
    /// ```
    /// use acolyte_proto::frame::Status;
    /// use acolyte_proto::handshake::{Capabilities, Mismatch};
    ///
    /// let status = Status::new("m", "http://localhost:6767");
    /// let capabilities = Capabilities::agree(&status, &["stream.sse"])?;
    /// assert!(!capabilities.contains("workspace.path"));
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

    /// Returns whether the server has this capability.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Returns an iterator over all words, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

/// Prints the capabilities as servers write them.
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
        assert!(capabilities.contains("stream.sse"));
        assert!(!capabilities.contains("stream"));
    }

    #[test]
    fn a_client_refuses_every_version_but_its_own() {
        let mut status = Status::new("m", "s");
        assert_eq!(status.protocol_version, PROTOCOL_VERSION);
        Capabilities::agree(&status, &[]).unwrap();
        for theirs in ["", "0", "01", "1.0", "1 ", "2", "11", "v1"] {
            status.protocol_version = theirs.into();
            let mismatch = Capabilities::agree(&status, &[]).unwrap_err();
            let theirs = theirs.to_owned();
            assert_eq!(mismatch, Mismatch::Version { theirs });
        }
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
