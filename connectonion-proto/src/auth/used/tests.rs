//! Signatures count once, as long as they are valid.

use serde_json::{Value, json};

use super::*;
use crate::auth::{Signer, Verifier};
use crate::frame::Signed;
use crate::limits::MAX_USED_SIGNATURES;

const NOW: f64 = 1_702_234_567.0;
const WINDOW: f64 = 300.0;

fn verifier() -> Verifier {
    Verifier::default()
}

fn signed(payload: &Value) -> Signed {
    let client = Signer::from_seed(&[2; 32]);
    client.sign_payload(payload).unwrap()
}

/// Uses up a signature of the client at a time.
fn spend(used: &mut UsedSignatures, timestamp: f64, now: f64) -> Result<(), AuthError> {
    let signed = signed(&json!({ "timestamp": timestamp }));
    used.spend(&verifier().verify(&signed, now)?, 1, now)
}

#[test]
fn a_signature_is_accepted_once() {
    let mut used = UsedSignatures::new(MAX_USED_SIGNATURES);
    assert_eq!(spend(&mut used, NOW, NOW), Ok(()));
    assert_eq!(spend(&mut used, NOW, NOW), Err(AuthError::AlreadyUsed));
    assert_eq!(spend(&mut used, NOW + 1.0, NOW), Ok(()));
    let last = NOW + WINDOW;
    assert_eq!(spend(&mut used, NOW, last), Err(AuthError::AlreadyUsed));
    assert_eq!(
        spend(&mut used, NOW, last + 0.5),
        Err(AuthError::Expired { behind: 300 })
    );
}

#[test]
fn another_spelling_of_a_used_signature_is_refused() {
    let mut used = UsedSignatures::new(MAX_USED_SIGNATURES);
    let signed = signed(&json!({"timestamp": 1_702_234_567}));
    let first = verifier().verify(&signed, NOW).unwrap();
    assert_eq!(used.spend(&first, 1, NOW), Ok(()));
    let mut other = signed.clone();
    other.payload = rpc_core::Json::new(" {\"timestamp\" : 1702234567} ").ok();
    other.signature = Some(format!("0x{}", first.signature).to_uppercase().into());
    let second = verifier().verify(&other, NOW).unwrap();
    assert_eq!(used.spend(&second, 1, NOW), Err(AuthError::AlreadyUsed));
}

#[test]
fn valid_signatures_are_never_evicted() {
    let mut used = UsedSignatures::new(2);
    assert_eq!(spend(&mut used, NOW - 200.0, NOW), Ok(()));
    assert_eq!(spend(&mut used, NOW, NOW), Ok(()));
    let full = Err(AuthError::ReplayProtectionUnavailable);
    assert_eq!(spend(&mut used, NOW + 1.0, NOW), full);
    assert_eq!(
        spend(&mut used, NOW - 200.0, NOW),
        Err(AuthError::AlreadyUsed)
    );
    assert_eq!(spend(&mut used, NOW + 1.0, NOW + 100.0), full);
    assert_eq!(spend(&mut used, NOW + 1.0, NOW + 101.0), Ok(()));
    assert_eq!(used.used.len(), 2);
    assert_eq!(spend(&mut used, NOW + 1000.0, NOW + 1000.0), Ok(()));
    assert_eq!(used.used.len(), 1, "what has expired is forgotten");
}

#[test]
fn one_signer_cannot_exhaust_the_memory_of_others() {
    let mut used = UsedSignatures::new(100);
    let full = Err(AuthError::ReplayProtectionUnavailable);
    let mut place = 0.0;
    for _ in 0..64 {
        place += 0.5;
        assert_eq!(spend(&mut used, NOW + place, NOW), Ok(()));
    }
    assert_eq!(spend(&mut used, NOW + 100.0, NOW), full);
    let other = Signer::from_seed(&[7; 32]);
    let signed = other.sign_payload(&json!({ "timestamp": NOW })).unwrap();
    let verified = verifier().verify(&signed, NOW).unwrap();
    assert_eq!(used.spend(&verified, 1, NOW), Ok(()));
    // What has expired makes room.
    let later = NOW + 2.0 * WINDOW;
    assert_eq!(spend(&mut used, later, later), Ok(()));
    assert_eq!(used.used.len(), 1);
}
