//! [`TrustLevel`]: who is admitted.

use rpc_core::words;

use crate::auth::{Address, AuthError};
use crate::frame::{OnboardRequired, OnboardSuccess};
use crate::hub::Owner;

use super::ClientLevel;

words! {
    /// The trust level of a host. ConnectOnion specification, *Authentication*.
    pub enum TrustLevel {
        /// Everyone is admitted who is not blocked.
        "open" => Open,
        /// Strangers must go through onboarding.
        "careful" => Careful,
        /// Only the whitelist is admitted, and a signature is always required.
        "strict" => Strict,
    }
}

/// The decision about a CONNECT. Exhaustive: there is no other case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Admission {
    /// The caller is admitted.
    Accept {
        /// The caller.
        owner: Owner,
        /// Whether to recommend a signature to the host's operator and the caller.
        recommend_signature: bool,
    },
    /// The caller must go through onboarding first.
    Gate {
        /// The caller.
        identity: Address,
        /// The reply.
        required: OnboardRequired,
    },
    /// The caller is refused, with this reply.
    Refuse(AuthError),
}

/// The decision about an `ONBOARD_SUBMIT`. Exhaustive: there is no other case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Onboarding {
    /// The caller is a contact now.
    Welcome(OnboardSuccess),
    /// The caller claims to have paid. Check the payment, then [promote](super::AccessControl::paid) the
    /// caller or refuse it with [`AuthError::InsufficientPayment`].
    Payment {
        /// The amount.
        amount: f64,
    },
    /// Nothing has changed; the caller may try again.
    Refuse(AuthError),
}

/// The decision of a policy about a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The caller is admitted, with its identity.
    Accept,
    /// The caller is admitted without an identity.
    AcceptUnsigned {
        /// Whether to recommend a signature to the host's operator and the caller.
        recommend_signature: bool,
    },
    /// The caller must go through onboarding first.
    Gate,
    /// The caller is refused. The text of the error is the reply.
    Deny(AuthError),
}

/// The policy of a host: who is admitted, at a level of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrustPolicy {
    pub(crate) level: TrustLevel,
    /// Whether all callers need a signature, at every level.
    pub(crate) needs_signatures: bool,
}

impl TrustPolicy {
    /// Decides about a caller at a host with or without onboarding; `None` is a caller without a
    /// signature. A caller with a wrong signature is refused before, and must not be passed as `None`.
    ///
    /// A stranger at a careful host without onboarding is refused, unless callers without a
    /// signature are admitted: then a signature is no disadvantage.
    pub(crate) fn decide(self, caller: Option<ClientLevel>, has_onboarding: bool) -> Decision {
        let has_gate = self.level == TrustLevel::Careful && has_onboarding;
        let Some(standing) = caller else {
            return self.decide_unsigned(has_gate);
        };
        match (standing, self.level) {
            (ClientLevel::Blocked, _) => Decision::Deny(AuthError::DeniedByRules),
            (_, TrustLevel::Open)
            | (ClientLevel::Whitelisted, _)
            | (ClientLevel::Contact, TrustLevel::Careful) => Decision::Accept,
            (_, TrustLevel::Strict) => Decision::Deny(AuthError::DeniedByRules),
            (ClientLevel::Stranger, TrustLevel::Careful) if has_gate => Decision::Gate,
            (ClientLevel::Stranger, TrustLevel::Careful) => match self.needs_signatures {
                false => Decision::Accept,
                true => Decision::Deny(AuthError::DeniedByRules),
            },
        }
    }

    fn decide_unsigned(self, has_gate: bool) -> Decision {
        match (self.needs_signatures, self.level) {
            (false, TrustLevel::Open) => Decision::AcceptUnsigned {
                recommend_signature: false,
            },
            (false, TrustLevel::Careful) if !has_gate => Decision::AcceptUnsigned {
                recommend_signature: true,
            },
            _ => Decision::Deny(AuthError::SignedRequestRequired),
        }
    }
}
