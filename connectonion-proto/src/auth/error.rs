//! [`AuthError`]: why a caller is refused, in the words that every host uses.

use rpc_core::DecodeError;

/// Why a caller is refused. `Display` is the `message` of the ERROR frame, word for word as the known
/// hosts send it.
///
/// The connection stays open. The same frame is refused again, except after
/// [`ReplayProtectionUnavailable`](Self::ReplayProtectionUnavailable); a new one may be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The payload is not a JSON object, or too large. Known hosts drop the connection in that case.
    #[error("unauthorized: invalid payload: {0}")]
    InvalidPayload(DecodeError),
    /// The payload is more than five minutes old, or as far in the future. Known hosts do not say by how
    /// much.
    #[error("unauthorized: signature expired{}", clock(*.behind))]
    Expired {
        /// How many seconds the signer's clock is behind the host's, if the frame was just made; negative
        /// if it is ahead, 0 if that is not known.
        behind: i64,
    },
    /// The payload or the signature is missing, and both are required here.
    #[error("unauthorized: signed request required")]
    SignedRequestRequired,
    /// A signed frame does not name its sender.
    #[error("unauthorized: 'from' field required")]
    FromRequired,
    /// The signature is empty.
    #[error("unauthorized: signature required")]
    SignatureRequired,
    /// The payload has no `timestamp`, or one that is 0, null, false or empty.
    #[error("unauthorized: timestamp required in payload")]
    TimestampRequired,
    /// The payload's `timestamp` is not a number.
    #[error("unauthorized: timestamp must be numeric")]
    TimestampNotNumeric,
    /// The payload is for another recipient, or has none where that is not allowed.
    #[error("unauthorized: wrong recipient")]
    WrongRecipient,
    /// The payload was not signed by this key, or the key or the signature is malformed.
    #[error("unauthorized: invalid signature")]
    InvalidSignature,
    /// The payload names another command than the frame.
    #[error("unauthorized: signed command type mismatch")]
    WrongCommand,
    /// The signature of a CONNECT was used before, for whatever; each counts once.
    #[error("unauthorized: this CONNECT was already used")]
    AlreadyUsed,
    /// An ADMIN_* frame on a connection that is not authenticated.
    #[error("unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)")]
    CommandWithoutConnection,
    /// A command without payload or signature, on a connection whose commands must be signed.
    #[error("unauthorized: signed command required")]
    SignedCommandRequired,
    /// A command signed by another key than that of the connection.
    #[error("unauthorized: command signer does not own this connection")]
    NotTheOwner,
    /// A signed command without a `nonce`, on a connection whose commands must be signed.
    #[error("unauthorized: signed command nonce required")]
    NonceRequired,
    /// The signature of a command was used before, for whatever; each counts once.
    #[error("unauthorized: signed command already used")]
    CommandAlreadyUsed,
    /// The memory of used signatures is full, and forgetting one would let it count twice.
    /// Temporary.
    #[error("misconfigured: replay protection unavailable")]
    ReplayProtectionUnavailable,
    /// The address is on the host's own blacklist.
    #[error("forbidden: blacklisted")]
    Blacklisted,
    /// The trust level does not admit this caller.
    #[error("forbidden: Denied by fast rules")]
    DeniedByRules,
    /// The caller must go through onboarding. Over WebSockets, `ONBOARD_REQUIRED` says so instead.
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
    /// An ADMIN_* frame of a caller who is not an administrator.
    #[error("forbidden: admin only")]
    AdminOnly,
    /// A frame that only the host's own key may send.
    #[error("forbidden: super admin only")]
    SuperAdminOnly,
}

#[cfg(feature = "server")]
impl AuthError {
    /// Returns the same error of a frame other than a CONNECT.
    pub(crate) fn of_command(self) -> Self {
        match self {
            Self::AlreadyUsed => Self::CommandAlreadyUsed,
            other => other,
        }
    }
}

/// Returns the hint for a caller whose clock differs.
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
    use super::*;

    #[test]
    fn error_texts_match_known_hosts() {
        for (error, words) in [
            (
                AuthError::SignedRequestRequired,
                "unauthorized: signed request required",
            ),
            (
                AuthError::FromRequired,
                "unauthorized: 'from' field required",
            ),
            (
                AuthError::SignatureRequired,
                "unauthorized: signature required",
            ),
            (
                AuthError::TimestampRequired,
                "unauthorized: timestamp required in payload",
            ),
            (
                AuthError::TimestampNotNumeric,
                "unauthorized: timestamp must be numeric",
            ),
            (AuthError::WrongRecipient, "unauthorized: wrong recipient"),
            (
                AuthError::InvalidSignature,
                "unauthorized: invalid signature",
            ),
            (
                AuthError::WrongCommand,
                "unauthorized: signed command type mismatch",
            ),
            (
                AuthError::AlreadyUsed,
                "unauthorized: this CONNECT was already used",
            ),
            (
                AuthError::CommandWithoutConnection,
                "unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)",
            ),
            (
                AuthError::SignedCommandRequired,
                "unauthorized: signed command required",
            ),
            (
                AuthError::NotTheOwner,
                "unauthorized: command signer does not own this connection",
            ),
            (
                AuthError::NonceRequired,
                "unauthorized: signed command nonce required",
            ),
            (
                AuthError::CommandAlreadyUsed,
                "unauthorized: signed command already used",
            ),
            (
                AuthError::ReplayProtectionUnavailable,
                "misconfigured: replay protection unavailable",
            ),
            (AuthError::Blacklisted, "forbidden: blacklisted"),
            (AuthError::DeniedByRules, "forbidden: Denied by fast rules"),
            (AuthError::OnboardRequired, "forbidden: Onboard required"),
            (AuthError::Blocked, "forbidden: blocked"),
            (AuthError::InvalidInviteCode, "Invalid invite code"),
            (AuthError::InsufficientPayment, "Insufficient payment"),
            (
                AuthError::InviteOrPaymentRequired,
                "invite_code or payment required",
            ),
            (AuthError::AdminOnly, "forbidden: admin only"),
            (AuthError::SuperAdminOnly, "forbidden: super admin only"),
        ] {
            assert_eq!(error.to_string(), words);
        }
    }

    #[test]
    fn a_client_learns_how_far_its_clock_is_off() {
        for (behind, words) in [
            (0, ""),
            (3600, " (the client's clock is 3600 s behind the host's)"),
            (-301, " (the client's clock is 301 s ahead of the host's)"),
        ] {
            let words = format!("unauthorized: signature expired{words}");
            assert_eq!(AuthError::Expired { behind }.to_string(), words);
        }
    }
}
