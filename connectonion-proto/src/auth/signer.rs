//! [`Signer`]: a private key, which signs payloads.

use std::sync::Arc;

use ed25519_dalek::{Signer as _, SigningKey};
use rpc_core::encode::encode_into;
use rpc_core::{DecodeError, Json, Limits, Refused, json};
use serde::{Deserialize, Serialize};

use super::{Address, Canonical, Payload, Signature};
use crate::frame::Signed;

/// A payload that is sent as it is signed.
#[derive(Deserialize)]
struct Verbatim(#[serde(deserialize_with = "json::lenient::verbatim")] Json);

/// A private key. It is never printed, is wiped from memory with its last clone, and is written
/// only to a [file](Self::save).
///
/// ```
/// use connectonion_proto::auth::{Signer, Verifier, unix_seconds};
/// use std::time::SystemTime;
///
/// let key = Signer::generate()?;
/// let now = unix_seconds(SystemTime::now());
/// let signed = key.sign_payload(&serde_json::json!({"to": "anyone", "timestamp": now}))?;
/// let verified = Verifier::default().verify(&signed, now)?;
/// assert_eq!(verified.address, *key.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Signer {
    key: Arc<SigningKey>,
    address: Address,
}

impl Signer {
    /// Creates the key of a seed of 32 random bytes. The seed reveals the key: take it from a good
    /// source, and wipe it.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let address = Address::from_bytes(key.verifying_key().to_bytes());
        let key = Arc::new(key);
        Self { key, address }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Signs a payload: a [`Draft`](super::Draft), or any other value that is a JSON object. The
    /// result goes into a frame. It holds the payload in exactly the form that is signed, which
    /// every known host accepts: [`Canonical::Python`].
    ///
    /// # Errors
    /// [`Refused::Encode`] if the payload is not a JSON object, nests more than 128 levels deep,
    /// has more than 65,536 values or a number that is too large. Retrying fails again.
    pub fn sign_payload(&self, payload: &(impl Serialize + ?Sized)) -> Result<Signed, Refused> {
        let mut text = String::new();
        encode_into(payload, &mut text)?;
        let limits = Limits::unlimited();
        let payload = Payload::parse(&text, &limits).map_err(refused)?;
        let canonical = payload.canonical(Canonical::Python);
        // A number beyond the largest one is not.
        let Verbatim(payload) = json::parse(&canonical, &limits).map_err(refused)?;
        let signature = self.key.sign(canonical.as_bytes());
        let signature = Signature::from_bytes(signature.to_bytes());
        let from = self.address.to_string();
        Ok(Signed::new(payload, from, signature.to_string()))
    }

    pub(super) fn seed(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn refused(error: DecodeError) -> Refused {
    let message = error.to_string();
    Refused::Encode { message }
}

// Prints the public key only.
rpc_core::debug_fields!([] Signer, this => { address: this.address });
