//! [`InviteCodes`]: the codes that turn a stranger into a contact.

use std::sync::Arc;

use rpc_core::{Refused, Secret};
use subtle::{Choice, ConstantTimeEq};

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
/// # Ok::<(), connectonion_proto::Refused>(())
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
    /// [`Refused::Invalid`] if a code is empty or too long, or there are too many.
    pub fn new<C: Into<Secret>>(codes: impl IntoIterator<Item = C>) -> Result<Self, Refused> {
        let invalid = |why| Refused::invalid("invite code", why);
        let mut list = Vec::new();
        for code in codes {
            let code = code.into();
            let text = code.expose();
            if text.is_empty() {
                return Err(invalid("it is empty".to_owned()));
            }
            if list.len() == MAX_INVITE_CODES {
                return Err(invalid(format!("there are more than {MAX_INVITE_CODES}")));
            }
            let too_long = || format!("it is longer than {MAX_INVITE_CODE_BYTES} bytes");
            list.push(Secret::new(Code {
                padded: pad(text).ok_or_else(|| invalid(too_long()))?,
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
        let error = |codes: &[&str]| {
            let error = InviteCodes::new(codes.iter().copied()).unwrap_err();
            error.to_string()
        };
        assert_eq!(error(&["a", ""]), "invalid invite code: it is empty");
        let too_long = "invalid invite code: it is longer than 256 bytes";
        assert_eq!(error(&[&(longest + "x")]), too_long);
        let too_many = "invalid invite code: there are more than 1024";
        assert_eq!(error(&["a"; MAX_INVITE_CODES + 1]), too_many);
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
