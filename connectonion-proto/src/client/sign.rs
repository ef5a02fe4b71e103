//! [`Sign`]: signs for a client.

use rpc_core::Refused;

use crate::auth::{Address, Draft};
use crate::frame::Signed;

/// A signer for a client: a key in memory (`auth::Signer`, with the feature `auth`), or one that is
/// kept elsewhere.
pub trait Sign: Send + Sync + 'static {
    /// Returns the client's address.
    fn address(&self) -> Address;

    /// Signs a payload, in the form that every known host accepts
    /// ([`Canonical::Python`](crate::auth::Canonical)). It is called in the connection's task, so it
    /// must not block for long.
    ///
    /// # Errors
    /// [`Refused`] if it cannot; the connection then ends for good.
    fn sign(&self, payload: &Draft) -> Result<Signed, Refused>;
}

#[cfg(feature = "auth")]
impl Sign for crate::auth::Signer {
    fn address(&self) -> Address {
        *Self::address(self)
    }

    fn sign(&self, payload: &Draft) -> Result<Signed, Refused> {
        self.sign_payload(payload)
    }
}
