//! [`RequestSigner`]: signs what a client sends.

use std::sync::Arc;
use std::time::SystemTime;

use rpc_core::Refused;
use rpc_core::net::entropy;

use crate::auth::{Address, Draft, unix_seconds};
use crate::client::Sign;
use crate::frame::{OnboardSubmit, Signed};

/// The parts of a signature: the key, the recipient, and the wall clock.
#[derive(Clone)]
pub(super) struct RequestSigner {
    pub(super) identity: Arc<dyn Sign>,
    pub(super) host: Option<Address>,
    pub(super) clock: fn() -> SystemTime,
}

impl RequestSigner {
    /// Creates a unique payload, because hosts may accept a signature only once.
    fn draft(&self) -> Draft {
        let now = unix_seconds((self.clock)());
        let random = u128::from(entropy()) << 64 | u128::from(entropy());
        let draft = Draft::new(now).with_nonce(random);
        match &self.host {
            Some(host) => draft.with_to(host),
            None => draft,
        }
    }

    /// Signs a payload with what `add` adds to it.
    pub(super) fn sign(&self, add: impl FnOnce(Draft) -> Draft) -> Result<Signed, Refused> {
        self.identity.sign(&add(self.draft()))
    }

    /// Signs an onboarding.
    pub(super) fn submit(
        &self,
        add: impl FnOnce(Draft) -> Draft,
    ) -> Result<OnboardSubmit, Refused> {
        self.sign(add).map(OnboardSubmit::new)
    }
}
