//! [`AuthError`]: why somebody is not let in, in the words that every host uses.

use rpc_core::DecodeError;

/// Why somebody is not let in. `Display` is the `message` of the ERROR frame, word for word what
/// the known hosts send; a client gets the variant back with [`parse`](Self::parse).
///
/// The connection stays open. The same frame is refused again, except after
/// [`ReplayProtectionUnavailable`](Self::ReplayProtectionUnavailable); a new one may pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There is no payload or no signature, and both are needed here.
    #[error("unauthorized: signed request required")]
    SignedRequestRequired,
    /// A signed frame does not say whose it is.
    #[error("unauthorized: 'from' field required")]
    FromRequired,
    /// The signature is empty.
    #[error("unauthorized: signature required")]
    SignatureRequired,
    /// The payload is no JSON object, or too large. Known hosts drop the connection in that case.
    #[error("unauthorized: invalid payload: {0}")]
    InvalidPayload(DecodeError),
    /// The payload has no `timestamp`, or one that is 0, null, false or empty.
    #[error("unauthorized: timestamp required in payload")]
    TimestampRequired,
    /// The payload's `timestamp` is no number.
    #[error("unauthorized: timestamp must be numeric")]
    TimestampNotNumeric,
    /// The payload is more than five minutes old, or as far in the future.
    #[error("unauthorized: signature expired")]
    Expired,
    /// The payload is for somebody else, or for nobody where that is not allowed.
    #[error("unauthorized: wrong recipient")]
    WrongRecipient,
    /// It was not this key that signed this payload; or what claims to be a key or a signature is
    /// none.
    #[error("unauthorized: invalid signature")]
    InvalidSignature,
    /// The payload names another command than the frame.
    #[error("unauthorized: signed command type mismatch")]
    WrongCommand,
    /// A signature counts once, and this one did.
    #[error("unauthorized: this CONNECT was already used")]
    AlreadyUsed,
    /// An ADMIN_* frame on a connection that is not let in, so that nobody answers for it.
    #[error("unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)")]
    CommandWithoutConnection,
    /// A command without payload or signature, on a connection whose commands have to be signed.
    #[error("unauthorized: signed command required")]
    SignedCommandRequired,
    /// A command that another key has signed than the one that the connection belongs to.
    #[error("unauthorized: command signer does not own this connection")]
    NotTheOwner,
    /// A signed command without a `nonce`, on a connection whose commands have to be signed.
    #[error("unauthorized: signed command nonce required")]
    NonceRequired,
    /// A signed command counts once, and this one did.
    #[error("unauthorized: signed command already used")]
    CommandAlreadyUsed,
    /// So many signatures are remembered that no further one fits, and forgetting one would let it
    /// count twice. Passes with time.
    #[error("misconfigured: replay protection unavailable")]
    ReplayProtectionUnavailable,
    /// The address is on the host's own list of addresses that are never let in.
    #[error("forbidden: blacklisted")]
    Blacklisted,
    /// The trust level does not let this caller in.
    #[error("forbidden: Denied by fast rules")]
    DeniedByRules,
    /// The caller has to go through onboarding. Over WebSockets, `ONBOARD_REQUIRED` says so instead.
    #[error("forbidden: Onboard required")]
    OnboardRequired,
    /// A blocked caller tried to go through onboarding.
    #[error("forbidden: blocked")]
    Blocked,
    /// The invite code is not one of the host's.
    #[error("Invalid invite code")]
    InvalidInviteCode,
    /// The payment was not found, or is too small.
    #[error("Insufficient payment")]
    InsufficientPayment,
    /// An `ONBOARD_SUBMIT` has neither a code nor a payment.
    #[error("invite_code or payment required")]
    InviteOrPaymentRequired,
    /// An ADMIN_* frame of somebody who is no administrator.
    #[error("forbidden: admin only")]
    AdminOnly,
    /// A frame that only the host's own key may send.
    #[error("forbidden: super admin only")]
    SuperAdminOnly,
}

impl AuthError {
    /// Every variant that is nothing but its words.
    const PLAIN: [Self; 25] = [
        Self::SignedRequestRequired,
        Self::FromRequired,
        Self::SignatureRequired,
        Self::TimestampRequired,
        Self::TimestampNotNumeric,
        Self::Expired,
        Self::WrongRecipient,
        Self::InvalidSignature,
        Self::WrongCommand,
        Self::AlreadyUsed,
        Self::CommandWithoutConnection,
        Self::SignedCommandRequired,
        Self::NotTheOwner,
        Self::NonceRequired,
        Self::CommandAlreadyUsed,
        Self::ReplayProtectionUnavailable,
        Self::Blacklisted,
        Self::DeniedByRules,
        Self::OnboardRequired,
        Self::Blocked,
        Self::InvalidInviteCode,
        Self::InsufficientPayment,
        Self::InviteOrPaymentRequired,
        Self::AdminOnly,
        Self::SuperAdminOnly,
    ];

    /// The error with this message; `None` if it is no message of this list.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        let mut plain = Self::PLAIN.into_iter();
        plain.find(|error| error.to_string() == message)
    }
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
            "unauthorized: signature expired",
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
        assert_eq!(AuthError::parse("prompt required"), None);
        let payload =
            AuthError::InvalidPayload(DecodeError::new(DecodeErrorKind::NotAnObject)).to_string();
        assert!(payload.starts_with("unauthorized: invalid payload: not a JSON object"));
        assert_eq!(AuthError::parse(&payload), None);
    }
}
