//! Access: trust levels, lists of addresses, and the decision about a caller. ConnectOnion
//! specification, *Authentication* and *Trust Gate*.
//!
//! [`auth`](crate::auth) identifies the caller; a [`TrustBook`] has the caller's level at this
//! host. An [`AccessControl`] does all of it, and decides.

mod access;
mod book;
mod policy;
#[cfg(test)]
mod tests;

pub use access::AccessControl;
pub(crate) use access::{is_signed_by_another, prompt_of};
pub(crate) use book::ClientLevel;
pub use book::TrustBook;
pub use policy::TrustLevel;
use policy::TrustPolicy;
pub(crate) use policy::{Admission, Onboarding};
