//! [`TrustPolicy`]: who may come in.

use std::str::FromStr;

use crate::auth::AuthError;
use crate::frame::OnboardMethod;

use super::ClientLevel;

/// How careful a host is. ConnectOnion specification, *Authentication*. Exhaustive: these are the
/// levels of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrustLevel {
    /// Everybody comes in who is not blocked.
    Open,
    /// Strangers go through onboarding.
    Careful,
    /// Only the whitelist comes in, and a signature is always required.
    Strict,
}

/// A text is no [`TrustLevel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trust level is open, careful or strict")]
#[non_exhaustive]
pub struct TrustLevelError;

impl TrustLevel {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Careful => "careful",
            Self::Strict => "strict",
        }
    }
}

impl FromStr for TrustLevel {
    type Err = TrustLevelError;

    fn from_str(text: &str) -> Result<Self, TrustLevelError> {
        let mut levels = [Self::Open, Self::Careful, Self::Strict].into_iter();
        levels
            .find(|level| level.as_str() == text)
            .ok_or(TrustLevelError)
    }
}

/// Who needs a signature. Exhaustive: either the specification or the known hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignaturePolicy {
    /// As the specification's table says: `open` accepts callers without a signature, `careful`
    /// accepts them and recommends one, `strict` requires it. A caller without has no identity, so
    /// where strangers have to go through onboarding it cannot come in; nor, at a `AccessControl` (feature
    /// `auth`), where anybody is blocked or whitelisted.
    SpecTable,
    /// Everybody, at every level. What all known hosts do, and what to use wherever lists or
    /// sessions have to be safe.
    AlwaysSigned,
}

/// What a policy decides about a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It comes in, with its identity.
    Accept,
    /// It comes in without an identity.
    AcceptUnsigned {
        /// The host's operator and the caller should hear that a signature would be better.
        recommend_signature: bool,
    },
    /// It has to go through onboarding first.
    Gate {
        /// The ways through; never empty.
        methods: Vec<OnboardMethod>,
    },
    /// It does not come in. The text of the error is what it is told.
    Deny(AuthError),
}

/// Who may come in, at a level of trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustPolicy {
    level: TrustLevel,
    signatures: SignaturePolicy,
    methods: Vec<OnboardMethod>,
}

impl TrustPolicy {
    /// A policy with [`SignaturePolicy::SpecTable`] and no way through onboarding.
    #[must_use]
    pub const fn new(level: TrustLevel) -> Self {
        Self {
            level,
            signatures: SignaturePolicy::SpecTable,
            methods: Vec::new(),
        }
    }

    /// Who needs a signature.
    #[must_use]
    pub const fn with_signatures(mut self, signatures: SignaturePolicy) -> Self {
        self.signatures = signatures;
        self
    }

    /// The ways through onboarding, for [`TrustLevel::Careful`]; the other levels have none.
    #[must_use]
    pub fn with_methods(mut self, methods: impl IntoIterator<Item = OnboardMethod>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// The level of trust.
    #[must_use]
    pub const fn level(&self) -> TrustLevel {
        self.level
    }

    /// Decides about a caller; `None` is one without a signature. A caller whose signature is
    /// wrong is not one without: it is refused before this.
    ///
    /// A stranger at a careful host without onboarding is refused, unless callers without a
    /// signature come in: then a signature does not make it worse.
    #[must_use]
    pub fn decide(&self, caller: Option<ClientLevel>) -> Decision {
        let Some(standing) = caller else {
            return self.decide_unsigned();
        };
        match (standing, self.level) {
            (ClientLevel::Blocked, _) => Decision::Deny(AuthError::DeniedByRules),
            (_, TrustLevel::Open)
            | (ClientLevel::Whitelisted, _)
            | (ClientLevel::Contact, TrustLevel::Careful) => Decision::Accept,
            (_, TrustLevel::Strict) => Decision::Deny(AuthError::DeniedByRules),
            (ClientLevel::Stranger, TrustLevel::Careful) if self.has_gate() => Decision::Gate {
                methods: self.methods.clone(),
            },
            (ClientLevel::Stranger, TrustLevel::Careful) => match self.signatures {
                SignaturePolicy::SpecTable => Decision::Accept,
                SignaturePolicy::AlwaysSigned => Decision::Deny(AuthError::DeniedByRules),
            },
        }
    }

    fn decide_unsigned(&self) -> Decision {
        match (self.signatures, self.level) {
            (SignaturePolicy::SpecTable, TrustLevel::Open) => Decision::AcceptUnsigned {
                recommend_signature: false,
            },
            (SignaturePolicy::SpecTable, TrustLevel::Careful) if !self.has_gate() => {
                Decision::AcceptUnsigned {
                    recommend_signature: true,
                }
            }
            _ => Decision::Deny(AuthError::SignedRequestRequired),
        }
    }

    /// Whether strangers have to go through onboarding, and can.
    fn has_gate(&self) -> bool {
        self.level == TrustLevel::Careful && !self.methods.is_empty()
    }
}
