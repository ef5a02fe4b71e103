//! [`Address`]: a public key, which is the identity of a client or an agent.

use std::fmt;
use std::str::FromStr;

use rpc_core::{Refused, text};

use super::hex;

/// A public key, which is the identity of a client or an agent.
///
/// Peers write it with and without `0x`, in lower and upper case, so compare addresses, also in
/// lists, as this type and never as text. It is written as `0x` and 64 lower-case digits.
///
/// Whether the 32 bytes are a valid key is only checked when a signature is verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 32]);

impl Address {
    /// The number of characters that [`short`](Self::short) keeps.
    const SHORT: usize = 16;

    /// Creates the address of a public key.
    #[must_use]
    pub const fn from_bytes(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Returns the public key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits in any case, with or without `0x`.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if it is not `0x` and the 64 hex digits of a key.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let why = "it is not 0x and 64 hexadecimal digits";
        let address = hex::parse(text).map(Self);
        address.ok_or_else(|| Refused::invalid("address", why))
    }

    /// Returns the first 16 characters and `...`, for log lines. Never compare by it.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(Self::SHORT);
        text + "..."
    }
}

impl FromStr for Address {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        Self::parse(text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        f.write_str(&text::hex(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl serde::Serialize for Address {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0xb16959e4baab682412e21ba70e84739c9b3efbf974613814a0923007e30910c2";

    #[test]
    fn every_spelling_of_an_address_is_the_same_identity() {
        let address = Address::parse(TEXT).unwrap();
        let bare = TEXT.trim_start_matches("0x");
        for text in [
            bare.to_owned(),
            bare.to_uppercase(),
            TEXT.to_uppercase(),
            format!("0x{}", bare.to_uppercase()),
        ] {
            assert_eq!(Address::parse(&text), Ok(address), "{text}");
        }
        assert_eq!(address.to_string(), TEXT);
        assert_eq!(address.short(), "0xb16959e4baab68...");
        assert_eq!(format!("{address:?}"), format!("Address({TEXT})"));
    }

    #[test]
    fn an_address_has_32_bytes() {
        let short = TEXT.get(..64).unwrap();
        for text in ["", "0x", short, &format!("{TEXT}00"), &format!("{TEXT} ")] {
            let error = Address::parse(text).unwrap_err();
            let words = "invalid address: it is not 0x and 64 hexadecimal digits";
            assert_eq!(error.to_string(), words, "{text}");
        }
    }
}
