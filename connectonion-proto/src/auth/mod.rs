//! The identity of callers: addresses, canonical JSON, and with the feature `auth` keys and
//! signatures. ConnectOnion specification, *Authentication*.
//!
//! An [`Address`] is a public key. A `Signer` holds the private one and signs payloads; a
//! `Verifier` returns the signer of a frame, or the [`AuthError`] with which it is refused.
//! `trust` (with `tokio`) decides who is admitted.
//!
//! A client signs in the one form that every host accepts, and a host accepts every form that a
//! known client signs: see [`Canonical`].
//!
//! Where the specification and the known hosts differ, [`spec`](crate::spec#deviations) says what
//! this crate does.
//!
#![cfg_attr(
    feature = "auth",
    doc = r#"
```
use connectonion_proto::auth::{AuthError, Draft, Signer, Verifier};

let host = Signer::from_seed(&[1; 32]);
let client = Signer::from_seed(&[2; 32]);
let now = 1_702_234_567.25;

let signed = client.sign_payload(&Draft::new(now).with_to(host.address()))?;

let verifier = Verifier { recipient: Some(*host.address()), ..Verifier::default() };
let verified = verifier.verify(&signed, now)?;
assert_eq!(&verified.address, client.address());
assert_eq!(verifier.verify(&signed, now + 302.0).unwrap_err(), AuthError::Expired { behind: 302 });
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
)]

mod address;
mod address_list;
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
#[cfg(feature = "server")]
mod used;
#[cfg(feature = "auth")]
mod verifier;

pub use address::Address;
pub use address_list::AddressList;
pub use canonical::{Canonical, canonical_json};
pub(crate) use canonical::{Tree, read as read_tree, same_name};
pub use error::AuthError;
#[cfg(feature = "auth")]
pub use invite::InviteCodes;
pub(crate) use payload::whole;
pub use payload::{Draft, Payload, unix_seconds};
pub use signature::Signature;
#[cfg(feature = "auth")]
pub use signer::Signer;
#[cfg(feature = "server")]
pub use used::Spent;
#[cfg(feature = "server")]
pub(crate) use used::{UsedSignatures, end_of};
#[cfg(feature = "auth")]
pub use verifier::{Verified, Verifier, verify_signature};
