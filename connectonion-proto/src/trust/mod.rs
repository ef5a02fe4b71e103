//! Access: trust levels, lists of addresses, and the decision about a caller. ConnectOnion
//! specification, *Authentication* and *Trust Gate*.
//!
//! [`auth`](crate::auth) identifies the caller; a [`TrustBook`] has the caller's level at this
//! host. An `AccessControl` (feature `auth`) does all of it, and decides.

#[cfg(feature = "auth")]
mod access;
mod book;
#[cfg(feature = "auth")]
mod policy;
#[cfg(all(test, feature = "auth"))]
mod tests;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use access::{AccessControl, Admission, Onboarding, prompt_of};
pub use book::{ClientLevel, TrustBook};
#[cfg(feature = "auth")]
use policy::{Decision, TrustPolicy};
#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use policy::{SignaturePolicy, TrustLevel};
