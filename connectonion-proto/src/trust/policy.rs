//! [`TrustPolicy`]: who is admitted.

use std::str::FromStr;

use crate::auth::AuthError;
use crate::frame::OnboardMethod;

use super::ClientLevel;

/// The trust level of a host. ConnectOnion specification, *Authentication*. Exhaustive: these are
/// the levels of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrustLevel {
    /// Everyone is admitted who is not blocked.
    Open,
    /// Strangers must go through onboarding.
    Careful,
    /// Only the whitelist is admitted, and a signature is always required.
    Strict,
}

/// The error for a text that is not a [`TrustLevel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trust level is open, careful or strict")]
#[non_exhaustive]
pub struct TrustLevelError;

impl TrustLevel {
    /// Returns its name.
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

/// Who needs a signature. Exhaustive: either the specification's rule or the known hosts' one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignaturePolicy {
    /// As in the specification's table: `open` accepts callers without a signature, `careful`
    /// accepts them and recommends one, `strict` requires it. A caller without a signature has no
    /// identity, so it is refused where strangers must go through onboarding and, at an
    /// `AccessControl` (feature `auth`), where anyone is blocked or whitelisted.
    SpecTable,
    /// All callers, at every level. All known hosts do this; use it wherever lists or sessions must
    /// be safe.
    AlwaysSigned,
}

/// The decision of a policy about a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The caller is admitted, with its identity.
    Accept,
    /// The caller is admitted without an identity.
    AcceptUnsigned {
        /// Whether to recommend a signature to the host's operator and the caller.
        recommend_signature: bool,
    },
    /// The caller must go through onboarding first.
    Gate {
        /// The methods of onboarding; never empty.
        methods: Vec<OnboardMethod>,
    },
    /// The caller is refused. The text of the error is the reply.
    Deny(AuthError),
}

/// The policy of a host: who is admitted, at a level of trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustPolicy {
    level: TrustLevel,
    signatures: SignaturePolicy,
    methods: Vec<OnboardMethod>,
}

impl TrustPolicy {
    /// Creates a policy with [`SignaturePolicy::SpecTable`] and without onboarding.
    #[must_use]
    pub const fn new(level: TrustLevel) -> Self {
        Self {
            level,
            signatures: SignaturePolicy::SpecTable,
            methods: Vec::new(),
        }
    }

    /// Sets who needs a signature.
    #[must_use]
    pub const fn with_signatures(mut self, signatures: SignaturePolicy) -> Self {
        self.signatures = signatures;
        self
    }

    /// Sets the methods of onboarding, for [`TrustLevel::Careful`]; the other levels have none.
    #[must_use]
    pub fn with_methods(mut self, methods: impl IntoIterator<Item = OnboardMethod>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Returns the level of trust.
    #[must_use]
    pub const fn level(&self) -> TrustLevel {
        self.level
    }

    /// Decides about a caller; `None` is a caller without a signature. A caller with a wrong
    /// signature is refused before, and must not be passed as `None`.
    ///
    /// A stranger at a careful host without onboarding is refused, unless callers without a
    /// signature are admitted: then a signature is no disadvantage.
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

    /// Returns whether strangers must go through onboarding, and can.
    fn has_gate(&self) -> bool {
        self.level == TrustLevel::Careful && !self.methods.is_empty()
    }
}
