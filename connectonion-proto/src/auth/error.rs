//! [`AuthError`]: why a caller is refused, in the words that every host uses. [`InputError`]: what is
//! no address, signature or invite code.

use rpc_core::DecodeError;

use crate::limits::{MAX_ADDRESSES, MAX_INVITE_CODE_BYTES, MAX_INVITE_CODES};

/// Why a text is not an [`Address`](super::Address) or a [`Signature`](super::Signature), or why a
/// list or invite codes do not take something; nothing was changed then. Contains nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// An address has 64 hexadecimal digits, with or without `0x`.
    #[error("an address is 0x and 64 hexadecimal digits")]
    NotAnAddress,
    /// A signature has 128 hexadecimal digits, with or without `0x`.
    #[error("a signature is 128 hexadecimal digits")]
    NotASignature,
    /// The list already has 100,000 addresses.
    #[error("a list of addresses is full: it takes {MAX_ADDRESSES}")]
    ListFull,
    /// An invite code is empty; in a frame an empty code counts as none.
    #[error("an invite code is empty")]
    EmptyCode,
    /// An invite code is longer than 256 bytes.
    #[error("an invite code is longer than {MAX_INVITE_CODE_BYTES} bytes")]
    CodeTooLong,
    /// There are more than 1,024 invite codes.
    #[error("there are more than {MAX_INVITE_CODES} invite codes")]
    TooManyCodes,
}

/// Declares the errors without contents, with their words.
macro_rules! auth_error {
    ($($(#[$doc:meta])* $words:literal => $Plain:ident,)*) => {
        /// Why a caller is refused. `Display` is the `message` of the ERROR frame, word for word as the
        /// known hosts send it; a client restores the variant with [`parse`](Self::parse).
        ///
        /// The connection stays open. The same frame is refused again, except after
        /// [`ReplayProtectionUnavailable`](Self::ReplayProtectionUnavailable); a new one may be accepted.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        pub enum AuthError {
            /// The payload is not a JSON object, or too large. Known hosts drop the connection in that
            /// case.
            #[error("unauthorized: invalid payload: {0}")]
            InvalidPayload(DecodeError),
            /// The payload is more than five minutes old, or as far in the future. Known hosts do not say by how
            /// much.
            #[error("{EXPIRED}{}", clock(*.behind))]
            Expired {
                /// How many seconds the signer's clock is behind the host's, if the frame was just made; negative
                /// if it is ahead, 0 if that is not known.
                behind: i64,
            },
            $($(#[$doc])* #[error($words)] $Plain,)*
        }

        impl AuthError {
            /// All variants without contents.
            const PLAIN: [Self; [$($words),*].len()] = [$(Self::$Plain),*];
        }
    };
}

auth_error! {
    /// The payload or the signature is missing, and both are required here.
    "unauthorized: signed request required" => SignedRequestRequired,
    /// A signed frame does not name its sender.
    "unauthorized: 'from' field required" => FromRequired,
    /// The signature is empty.
    "unauthorized: signature required" => SignatureRequired,
    /// The payload has no `timestamp`, or one that is 0, null, false or empty.
    "unauthorized: timestamp required in payload" => TimestampRequired,
    /// The payload's `timestamp` is not a number.
    "unauthorized: timestamp must be numeric" => TimestampNotNumeric,
    /// The payload is for another recipient, or has none where that is not allowed.
    "unauthorized: wrong recipient" => WrongRecipient,
    /// The payload was not signed by this key, or the key or the signature is malformed.
    "unauthorized: invalid signature" => InvalidSignature,
    /// The payload names another command than the frame.
    "unauthorized: signed command type mismatch" => WrongCommand,
    /// The signature was used before; each counts once.
    "unauthorized: this CONNECT was already used" => AlreadyUsed,
    /// An ADMIN_* frame on a connection that is not authenticated.
    "unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)" => CommandWithoutConnection,
    /// A command without payload or signature, on a connection whose commands must be signed.
    "unauthorized: signed command required" => SignedCommandRequired,
    /// A command signed by another key than that of the connection.
    "unauthorized: command signer does not own this connection" => NotTheOwner,
    /// A signed command without a `nonce`, on a connection whose commands must be signed.
    "unauthorized: signed command nonce required" => NonceRequired,
    /// The signed command was used before; each counts once.
    "unauthorized: signed command already used" => CommandAlreadyUsed,
    /// The memory of used signatures is full, and forgetting one would let it count twice.
    /// Temporary.
    "misconfigured: replay protection unavailable" => ReplayProtectionUnavailable,
    /// The address is on the host's own blacklist.
    "forbidden: blacklisted" => Blacklisted,
    /// The trust level does not admit this caller.
    "forbidden: Denied by fast rules" => DeniedByRules,
    /// The caller must go through onboarding. Over WebSockets, `ONBOARD_REQUIRED` says so instead.
    "forbidden: Onboard required" => OnboardRequired,
    /// A blocked caller tried to go through onboarding.
    "forbidden: blocked" => Blocked,
    /// The invite code is not one of the host's.
    "Invalid invite code" => InvalidInviteCode,
    /// The payment was not found, or is too small.
    "Insufficient payment" => InsufficientPayment,
    /// An `ONBOARD_SUBMIT` has neither a code nor a payment.
    "invite_code or payment required" => InviteOrPaymentRequired,
    /// An ADMIN_* frame of a caller who is not an administrator.
    "forbidden: admin only" => AdminOnly,
    /// A frame that only the host's own key may send.
    "forbidden: super admin only" => SuperAdminOnly,
}

impl AuthError {
    /// Returns the error with this message; `None` if there is none.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        if let Some(clock) = message.strip_prefix(EXPIRED) {
            let by: Option<i64> = clock.split(' ').find_map(|word| word.parse().ok());
            let sign = if clock.contains("ahead") { -1 } else { 1 };
            let behind = by.unwrap_or(0).saturating_mul(sign);
            return Some(Self::Expired { behind });
        }
        let mut plain = Self::PLAIN.into_iter();
        plain.find(|error| error.to_string() == message)
    }
}

/// The words of the known hosts for what is too old or too new.
const EXPIRED: &str = "unauthorized: signature expired";

/// Returns what a clock that differs is told.
fn clock(behind: i64) -> String {
    let way = match behind {
        0 => return String::new(),
        1.. => "behind",
        _ => "ahead of",
    };
    let by = behind.unsigned_abs();
    format!(" (the client's clock is {by} s {way} the host's)")
}

#[cfg(test)]
mod tests {
    use rpc_core::json::DecodeErrorKind;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_known_hosts() {
        let words: Vec<_> = AuthError::PLAIN.iter().map(ToString::to_string).collect();
        let expected = [
            "unauthorized: signed request required",
            "unauthorized: 'from' field required",
            "unauthorized: signature required",
            "unauthorized: timestamp required in payload",
            "unauthorized: timestamp must be numeric",
            "unauthorized: wrong recipient",
            "unauthorized: invalid signature",
            "unauthorized: signed command type mismatch",
            "unauthorized: this CONNECT was already used",
            "unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)",
            "unauthorized: signed command required",
            "unauthorized: command signer does not own this connection",
            "unauthorized: signed command nonce required",
            "unauthorized: signed command already used",
            "misconfigured: replay protection unavailable",
            "forbidden: blacklisted",
            "forbidden: Denied by fast rules",
            "forbidden: Onboard required",
            "forbidden: blocked",
            "Invalid invite code",
            "Insufficient payment",
            "invite_code or payment required",
            "forbidden: admin only",
            "forbidden: super admin only",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_client_learns_which_error_it_was() {
        for error in AuthError::PLAIN {
            assert_eq!(AuthError::parse(&error.to_string()), Some(error));
        }
        for behind in [-301, 0, 86_400] {
            let error = AuthError::Expired { behind };
            assert_eq!(AuthError::parse(&error.to_string()), Some(error));
        }
        assert_eq!(
            AuthError::Expired { behind: 3600 }.to_string(),
            "unauthorized: signature expired (the client's clock is 3600 s behind the host's)"
        );
        let far = format!("{EXPIRED} (ahead by {} s)", i64::MIN);
        let behind = i64::MAX;
        assert_eq!(AuthError::parse(&far), Some(AuthError::Expired { behind }));
        assert_eq!(AuthError::parse("prompt required"), None);
        let payload =
            AuthError::InvalidPayload(DecodeError::new(DecodeErrorKind::NotAnObject)).to_string();
        assert!(payload.starts_with("unauthorized: invalid payload: not a JSON object"));
        assert_eq!(AuthError::parse(&payload), None);
    }
}
