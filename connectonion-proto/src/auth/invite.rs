//! [`InviteCodes`]: the codes that turn a stranger into a contact.

use std::sync::Arc;

use rpc_core::Secret;
use subtle::{Choice, ConstantTimeEq};

use super::InputError;
use crate::limits::{MAX_INVITE_CODE_BYTES, MAX_INVITE_CODES};

/// The codes that turn a stranger into a contact. There are none by default, because the known
/// host's default code is published.
///
/// ```
/// use connectonion_proto::auth::InviteCodes;
///
/// let codes = InviteCodes::new(["red-onion", "spring onion"])?;
/// assert!(codes.check("red-onion"));
/// assert!(!codes.check("Red-Onion"));
/// # Ok::<(), connectonion_proto::auth::InputError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct InviteCodes(Arc<[Secret<Code>]>);

/// A code, padded with zeros.
struct Code {
    padded: Padded,
    len: usize,
}

type Padded = [u8; MAX_INVITE_CODE_BYTES];

/// Copies a text into the fixed size; `None` if it is longer.
fn pad(text: &str) -> Option<Padded> {
    let mut padded = [0; MAX_INVITE_CODE_BYTES];
    padded
        .get_mut(..text.len())?
        .copy_from_slice(text.as_bytes());
    Some(padded)
}

impl InviteCodes {
    /// Creates the set of these codes.
    ///
    /// # Errors
    /// [`InputError::EmptyCode`], [`InputError::CodeTooLong`], [`InputError::TooManyCodes`].
    pub fn new<C: Into<Secret>>(codes: impl IntoIterator<Item = C>) -> Result<Self, InputError> {
        let mut list = Vec::new();
        for code in codes {
            let code = code.into();
            let text = code.expose();
            if text.is_empty() {
                return Err(InputError::EmptyCode);
            }
            if list.len() == MAX_INVITE_CODES {
                return Err(InputError::TooManyCodes);
            }
            list.push(Secret::new(Code {
                padded: pad(text).ok_or(InputError::CodeTooLong)?,
                len: text.len(),
            }));
        }
        Ok(Self(list.into()))
    }

    /// Returns whether there are no codes, so that none admits anyone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this is exactly one of the codes.
    ///
    /// All codes are compared, each as a whole: the time this takes reveals neither how much of the
    /// offer was right nor the length of a code.
    #[must_use]
    pub fn check(&self, offered: &str) -> bool {
        let Some(padded) = pad(offered) else {
            return false;
        };
        let mut found = Choice::from(0);
        for code in self.0.iter().map(Secret::expose) {
            found |= code.len.ct_eq(&offered.len()) & code.padded[..].ct_eq(&padded[..]);
        }
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_invite_codes_none_is_accepted() {
        let codes = InviteCodes::default();
        assert!(codes.is_empty() && !codes.check(""));
        assert!(!codes.check("OpenOnion"));
    }

    #[test]
    fn invite_codes_are_bounded() {
        let longest = "x".repeat(MAX_INVITE_CODE_BYTES);
        let codes = InviteCodes::new([longest.as_str()]).unwrap();
        assert!(codes.check(&longest) && !codes.check(&(longest.clone() + "x")));
        let error = |codes: &[&str]| InviteCodes::new(codes.iter().copied()).unwrap_err();
        assert_eq!(error(&["a", ""]), InputError::EmptyCode);
        assert_eq!(error(&[&(longest + "x")]), InputError::CodeTooLong);
        assert_eq!(
            error(&["a"; MAX_INVITE_CODES + 1]),
            InputError::TooManyCodes
        );
    }

    #[test]
    fn invite_codes_are_not_printed() {
        let codes = InviteCodes::new(["s3cret"]).unwrap();
        assert!(!format!("{codes:?}").contains("s3cret"));
    }

    proptest! {
        #[test]
        fn the_check_agrees_with_equality(
            codes in prop::collection::vec("[ab\0é]{1,3}", 0..4),
            offered in "[ab\0é]{0,3}",
        ) {
            let list = InviteCodes::new(codes.iter().map(String::as_str)).unwrap();
            prop_assert_eq!(list.check(&offered), codes.contains(&offered));
        }
    }
}
