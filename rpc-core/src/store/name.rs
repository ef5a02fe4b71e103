//! [`token`]: any text as one part of a subject or key.

use std::fmt::Write;

/// The longest token in bytes that a subject or key takes: [`try_token`] refuses longer ones. A subject of
/// four of them stays below the 4,096 bytes that a NATS server reads as one line by default.
const MAX_TOKEN: usize = 1_000;

/// The error of [`try_token`]: the name is too long for a part of a subject. Retrying never helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name of {len} bytes once encoded, at most {MAX_TOKEN}")]
#[non_exhaustive]
pub struct NameTooLong {
    /// The bytes of the token.
    pub len: usize,
}

/// Returns a text as one token of a subject or key: ASCII letters, digits, `-` and `_` as they are, every
/// other byte as `=` and two upper-case hexadecimal digits, the empty text as `=`.
///
/// Different texts have different tokens, and [`name_of`] returns the text. A token has no `.`, `*`, `>`,
/// white space or control character, and is never empty, so that no text reaches beyond its place.
///
/// A token has up to three times the bytes of its text. Use [`try_token`] for texts without a limit.
///
/// ```
/// use rpc_core::store::{name_of, token};
///
/// assert_eq!(token("general-2"), "general-2");
/// assert_eq!(token("a.>"), "a=2E=3E");
/// assert_eq!(name_of("a=2E=3E").as_deref(), Some("a.>"));
/// ```
#[must_use]
pub fn token(name: &str) -> String {
    if name.is_empty() {
        return "=".to_owned();
    }
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if kept(byte) {
            token.push(char::from(byte));
        } else {
            // Writing to a `String` never fails.
            let _ = write!(token, "={byte:02X}");
        }
    }
    token
}

/// Returns the [`token`] of a name, if it has at most 1,000 bytes. There is no hash of a longer one:
/// two names would then have one token, or a name could not be read back.
///
/// # Errors
/// [`NameTooLong`]; retrying never helps.
pub fn try_token(name: &str) -> Result<String, NameTooLong> {
    let sizes = name.bytes().map(|byte| if kept(byte) { 1 } else { 3 });
    let len = sizes.sum();
    if len > MAX_TOKEN {
        return Err(NameTooLong { len });
    }
    Ok(token(name))
}

/// Returns the text of a [`token`]. `None` if [`token`] makes no such token.
#[must_use]
pub fn name_of(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let mut name = Vec::with_capacity(token.len());
    let mut bytes = token.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'=' => {
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                Some(high << 4 | low).filter(|byte| !kept(*byte))?
            }
            byte => Some(byte).filter(|byte| kept(*byte))?,
        };
        name.push(byte);
    }
    String::from_utf8(name).ok().filter(|name| !name.is_empty())
}

const fn kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_always_one_token_of_a_subject() {
        for (name, expected) in [
            ("", "="),
            ("*", "=2A"),
            (">", "=3E"),
            ("a.b", "a=2Eb"),
            ("$JS.API.>", "=24JS=2EAPI=2E=3E"),
            ("=", "=3D"),
            ("=2E", "=3D2E"),
            ("é\r\n\0", "=C3=A9=0D=0A=00"),
        ] {
            assert_eq!(token(name), expected);
        }
    }

    #[test]
    fn an_invalid_token_has_no_name() {
        for wrong in [
            "", "=4", "=g0", "=2e", "=41", "a.b", "==", "=C3", "a b", "é",
        ] {
            assert_eq!(name_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_for_a_subject_is_refused() {
        assert!(try_token(&"a".repeat(MAX_TOKEN)).is_ok());
        let len = MAX_TOKEN + 1;
        assert_eq!(try_token(&"a".repeat(len)), Err(NameTooLong { len }));
        let len = 3 * 334;
        assert_eq!(try_token(&".".repeat(334)), Err(NameTooLong { len }));
    }

    proptest! {
        #[test]
        fn every_name_round_trips_through_a_plain_token(name: String) {
            let token = token(&name);
            prop_assert!(!token.is_empty());
            prop_assert!(token.bytes().all(|byte| kept(byte) || byte == b'='));
            prop_assert_eq!(name_of(&token), Some(name));
        }

        #[test]
        fn different_names_have_different_tokens(one in "[=.*>A-F0-9é ]{0,4}", other in "[=.*>A-F0-9é ]{0,4}") {
            prop_assert_eq!(one == other, token(&one) == token(&other));
        }

        #[test]
        fn a_token_is_valid_only_in_its_canonical_form(text in "[=.A-Fa-f0-9é]{0,8}") {
            if let Some(name) = name_of(&text) {
                prop_assert_eq!(token(&name), text);
            }
        }
    }
}
