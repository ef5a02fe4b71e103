//! [`RequestSigner`]: signs what a client sends.

use std::sync::Arc;
use std::time::SystemTime;

use rpc_core::Refused;

use crate::auth::{Address, Draft, unix_seconds};
use crate::client::Sign;
use crate::frame::Signed;
use crate::net::random;

/// The parts of a signature: the key, the recipient, and the wall clock.
#[derive(Clone)]
pub(super) struct RequestSigner {
    pub(super) identity: Arc<dyn Sign>,
    pub(super) host: Option<Address>,
    pub(super) clock: fn() -> SystemTime,
}

impl RequestSigner {
    /// Signs the payload of a frame of this type with what `add` adds to it. It is unique, because hosts may
    /// accept a signature only once.
    pub(super) fn sign(
        &self,
        kind: &str,
        add: impl FnOnce(Draft) -> Draft,
    ) -> Result<Signed, Refused> {
        let now = unix_seconds((self.clock)());
        let mut draft = Draft::new(now).with_nonce(random()).with("type", kind);
        if let Some(host) = &self.host {
            draft = draft.with_to(host);
        }
        self.identity.sign(&add(draft))
    }
}
