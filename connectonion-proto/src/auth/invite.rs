//! [`InviteCodes`]: the codes that turn a stranger into a contact.

use std::sync::Arc;

use rpc_core::{Refused, Secret, constant_time_eq};

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
pub struct InviteCodes(Arc<[Secret]>);

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
            if text.len() > MAX_INVITE_CODE_BYTES {
                let why = format!("it is longer than {MAX_INVITE_CODE_BYTES} bytes");
                return Err(invalid(why));
            }
            list.push(code);
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
        if offered.len() > MAX_INVITE_CODE_BYTES {
            return false;
        }
        let is_it = |code: &Secret| constant_time_eq(code.expose().as_bytes(), offered.as_bytes());
        self.0.iter().fold(false, |found, code| found | is_it(code))
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
