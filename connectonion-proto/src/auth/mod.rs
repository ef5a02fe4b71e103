//! Who somebody is: addresses, canonical JSON, and with the feature `auth` keys and signatures.
//! ConnectOnion specification, *Authentication*.
//!
//! An [`Address`] is a public key. A [`Signer`] holds the private one and signs payloads; a
//! [`Verifier`] says whose a signed frame is, or with which [`AuthError`] it is refused. Whether
//! that somebody may come in is decided by [`trust`](crate::trust).
//!
//! A client signs in the one form that every host accepts, and a host accepts every form that a
//! known client signs: see [`Canonical`].
//!
#![cfg_attr(
    feature = "auth",
    doc = r#"
```
use connectonion_proto::auth::{AuthError, Claim, Draft, Signer, Verifier};

let host = Signer::from_seed(&[1; 32]);
let client = Signer::from_seed(&[2; 32]);
let now = 1_702_234_567.25;

let signed = client.sign_payload(&Draft::new(now).with_to(host.address()))?;
let (from, signature) = (signed.from.to_string(), signed.signature.to_string());
let claim = Claim::new(signed.payload.get(), &from, &signature);

let verifier = Verifier::new().with_recipient(*host.address());
let verified = verifier.verify(&claim, now)?;
assert_eq!(&verified.address, client.address());
assert_eq!(verifier.verify(&claim, now + 301.0).unwrap_err(), AuthError::Expired);
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
)]

mod address;
mod canonical;
mod error;
mod hex;
#[cfg(feature = "auth")]
mod invite;
#[cfg(feature = "auth")]
mod key_file;
mod payload;
mod signature;
#[cfg(feature = "auth")]
mod signer;
#[cfg(feature = "auth")]
mod used;
#[cfg(feature = "auth")]
mod verifier;

pub use address::{Address, AddressError};
pub use canonical::{Canonical, MAX_PAYLOAD, canonical_json};
pub use error::AuthError;
#[cfg(feature = "auth")]
pub use invite::{InviteCodes, InviteError, MAX_CODE_BYTES, MAX_CODES};
#[cfg(feature = "auth")]
pub use key_file::{KEY_FILE, KeyError};
pub use payload::{Draft, Payload, unix_seconds};
pub use signature::{Signature, SignatureError};
#[cfg(feature = "auth")]
pub use signer::{Signed, Signer};
#[cfg(feature = "auth")]
pub use used::UsedSignatures;
#[cfg(feature = "auth")]
pub use verifier::{Claim, EXPIRY_SECONDS, Verified, Verifier, verify_signature};
