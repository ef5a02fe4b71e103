//! Access: trust levels, lists of addresses, and the decision about a caller. ConnectOnion
//! specification, *Authentication* and *Trust Gate*.
//!
//! [`auth`](crate::auth) identifies the caller; a [`TrustBook`] has the caller's level at this
//! host; a [`TrustPolicy`] decides.
//!
//! ```
//! use connectonion_proto::auth::{Address, AuthError};
//! use connectonion_proto::frame::OnboardMethod;
//! use connectonion_proto::trust::{Decision, TrustBook, TrustLevel, TrustPolicy};
//!
//! let policy = TrustPolicy::new(TrustLevel::Careful).with_methods([OnboardMethod::InviteCode]);
//! let mut book = TrustBook::default();
//! let caller = Address::from_bytes([7; 32]);
//!
//! let gate = Decision::Gate { methods: vec![OnboardMethod::InviteCode] };
//! assert_eq!(policy.decide(Some(book.level_of(&caller))), gate);
//! book.promote(&caller)?;
//! assert_eq!(policy.decide(Some(book.level_of(&caller))), Decision::Accept);
//! book.block(&caller)?;
//! let denied = Decision::Deny(AuthError::DeniedByRules);
//! assert_eq!(policy.decide(Some(book.level_of(&caller))), denied);
//! # Ok::<(), connectonion_proto::auth::ListFull>(())
//! ```

#[cfg(feature = "auth")]
mod access;
mod book;
mod policy;
#[cfg(test)]
mod tests;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use access::{AccessControl, Admission, Onboarding, prompt_of};
pub use book::{ClientLevel, TrustBook};
pub use policy::{Decision, SignaturePolicy, TrustLevel, TrustLevelError, TrustPolicy};
