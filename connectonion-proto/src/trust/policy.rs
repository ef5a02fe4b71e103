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

/// The decision about a CONNECT that is not refused. Exhaustive: there is no other case.
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
}

/// The decision about an `ONBOARD_SUBMIT` that is not refused. Exhaustive: there is no other case.
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
}

/// The policy of a host: who is admitted, at a level of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrustPolicy {
    pub(crate) level: TrustLevel,
    /// Whether all callers need a signature, at every level.
    pub(crate) needs_signatures: bool,
}

impl TrustPolicy {
    /// Decides about a caller with a signature, at a host with or without onboarding: whether it is
    /// admitted, or has to go through onboarding first.
    ///
    /// A stranger at a careful host without onboarding is refused, unless callers without a
    /// signature are admitted: then a signature is not a disadvantage.
    ///
    /// # Errors
    /// The reply to a caller that is refused.
    pub(crate) fn decide(
        self,
        caller: ClientLevel,
        has_onboarding: bool,
    ) -> Result<bool, AuthError> {
        match (caller, self.level) {
            (ClientLevel::Blocked, _) => Err(AuthError::DeniedByRules),
            (_, TrustLevel::Open)
            | (ClientLevel::Whitelisted, _)
            | (ClientLevel::Contact, TrustLevel::Careful) => Ok(true),
            (ClientLevel::Stranger, TrustLevel::Careful) if has_onboarding => Ok(false),
            (ClientLevel::Stranger, TrustLevel::Careful) if !self.needs_signatures => Ok(true),
            _ => Err(AuthError::DeniedByRules),
        }
    }

    /// Decides about a caller without a signature, which is not one with a wrong signature. Returns
    /// whether a signature is recommended to it.
    ///
    /// # Errors
    /// The reply to a caller that is refused.
    pub(crate) fn decide_unsigned(self, has_onboarding: bool) -> Result<bool, AuthError> {
        match self.level {
            TrustLevel::Open if !self.needs_signatures => Ok(false),
            TrustLevel::Careful if !self.needs_signatures && !has_onboarding => Ok(true),
            _ => Err(AuthError::SignedRequestRequired),
        }
    }
}
