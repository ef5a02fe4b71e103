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
//! # Deviations
//!
//! What the specification leaves open follows the known hosts (Python, 1.2.1 and 1.9.2), except:
//!
//! - Numbers of a payload may be signed as they were sent, and the order of members may be
//!   JavaScript's. Known hosts rewrite numbers and sort by code point, and so refuse some valid
//!   signatures of JavaScript clients.
//! - Addresses are compared in one spelling. Known hosts compare texts, so a blocked caller gets in
//!   by writing its address in upper case.
//! - A payload for another recipient is refused, as in 1.9.2; 1.2.1 does not check it. A payload
//!   without a recipient is accepted, as in 1.2.1; 1.9.2 refuses it, and so does
//!   `Verifier::require_to`.
//! - A payload that is not an object, or a signature that is not a text, gets an ERROR. Known hosts
//!   drop the connection.
//! - The signature of a CONNECT can be used more than once, as in 1.2.1. 1.9.2 refuses that, and so
//!   does `AccessControl::with_used_signatures`, with the same words. A command counts once, as in
//!   1.9.2.
//! - Blocked callers are refused, and are not offered onboarding.
//! - Where callers are blocked or whitelisted, or strangers must go through onboarding, a caller
//!   without a signature is refused, although the specification's table lets open and careful hosts
//!   accept it: a blocked caller could otherwise get in by leaving its signature out. See
//!   `AccessControl::require_signatures`.
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
#[cfg(all(feature = "auth", feature = "tokio"))]
mod used;
#[cfg(feature = "auth")]
mod verifier;

pub use address::Address;
pub use address_list::AddressList;
pub use canonical::{Canonical, canonical_json};
pub use error::AuthError;
#[cfg(feature = "auth")]
pub use invite::InviteCodes;
pub use payload::{Draft, Payload, unix_seconds};
pub use signature::Signature;
#[cfg(feature = "auth")]
pub use signer::Signer;
#[cfg(all(feature = "auth", feature = "tokio"))]
pub use used::Spent;
#[cfg(all(feature = "auth", feature = "tokio"))]
pub(crate) use used::{Use, UsedSignatures, end_of};
#[cfg(feature = "auth")]
pub use verifier::{Verified, Verifier, verify_signature};
