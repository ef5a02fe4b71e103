//! [`Signature`]: 64 bytes of Ed25519.

use std::fmt;

use rpc_core::{Refused, text};

use super::hex;

/// An Ed25519 signature. It is written as 128 lower-case digits without `0x`, which the SDKs send
/// and all hosts accept; the form with `0x` (as in the specification) and upper case are read as
/// well.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Creates a signature from its bytes. They are only checked when the signature is verified.
    #[cfg(feature = "auth")]
    pub(super) const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    #[cfg(feature = "auth")]
    pub(super) const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// Parses 128 hexadecimal digits in any case, with or without `0x`.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if it is not 128 hex digits.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let signature = hex::parse(text).map(Self);
        signature.ok_or_else(|| Refused::invalid("signature", "it is not 128 hexadecimal digits"))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(&self.0))
    }
}

// Hides the signature: until it expires, anyone who has it can open a connection.
rpc_core::debug_fields!([] Signature, _ => {});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_accepted_with_or_without_prefix_and_written_without() {
        let text = "0fA".repeat(42) + "00";
        let signature = Signature::parse(&text).unwrap();
        assert_eq!(signature.to_string(), text.to_lowercase());
        assert_eq!(Signature::parse(&format!("0x{text}")), Ok(signature));
        assert_eq!(Signature::parse(&text.to_uppercase()), Ok(signature));
        assert_eq!(format!("{signature:?}"), "Signature { .. }");
        let error = Signature::parse(&text[2..]).unwrap_err();
        let words = "invalid signature: it is not 128 hexadecimal digits";
        assert_eq!(error.to_string(), words);
    }
}
