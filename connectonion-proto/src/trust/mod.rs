//! Who may come in: trust levels, lists of addresses, and the decision. ConnectOnion
//! specification, *Authentication* and *Trust Gate*.
//!
//! [`auth`](crate::auth) says who somebody is; a [`TrustBook`] says how they stand with this host;
//! a [`TrustPolicy`] decides.
//!
//! ```
//! use connectonion_proto::auth::{Address, AuthError};
//! use connectonion_proto::trust::{Decision, Method, TrustBook, TrustLevel, TrustPolicy};
//!
//! let policy = TrustPolicy::new(TrustLevel::Careful).with_methods([Method::InviteCode]);
//! let mut book = TrustBook::default();
//! let caller = Address::from_bytes([7; 32]);
//!
//! let gate = Decision::Gate { methods: vec![Method::InviteCode] };
//! assert_eq!(policy.decide(Some(book.standing(&caller))), gate);
//! book.promote(&caller)?;
//! assert_eq!(policy.decide(Some(book.standing(&caller))), Decision::Accept);
//! book.block(&caller)?;
//! let denied = Decision::Deny(AuthError::DeniedByRules);
//! assert_eq!(policy.decide(Some(book.standing(&caller))), denied);
//! # Ok::<(), connectonion_proto::trust::ListFull>(())
//! ```

mod book;
mod list;
mod policy;
#[cfg(test)]
mod tests;

pub use book::{Standing, TrustBook};
pub use list::{AddressList, ListFull, MAX_ADDRESSES};
pub use policy::{Decision, Method, SignaturePolicy, TrustLevel, TrustLevelError, TrustPolicy};
