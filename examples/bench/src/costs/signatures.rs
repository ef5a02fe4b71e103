//! ConnectOnion: signing and verifying the payload of a CONNECT and of an INPUT, beside the
//! signature alone on the same bytes.

use std::hint::black_box;
use std::time::Instant;

use connectonion_proto::auth::{Draft, Signer, Verifier};
use connectonion_proto::frame::Signed;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

use super::COSTS;
use crate::text;
use crate::time;
use crate::work::Work;

const HOST: [u8; 32] = [1; 32];
const CLIENT: [u8; 32] = [2; 32];
const NOW: f64 = 1_770_000_000.25;
const ROUNDS: u64 = 25;

pub(super) fn works() -> Vec<Work> {
    let work = |name, run| Work::new(COSTS, name, 0, run).rounds(ROUNDS);
    vec![
        work("sign a ConnectOnion CONNECT", |n| sign(n, &connect()))
            .beside("ed25519-dalek", |n| sign_alone(n, &connect())),
        work("sign a ConnectOnion INPUT of 200 B", |n| sign(n, &input()))
            .beside("ed25519-dalek", |n| sign_alone(n, &input())),
        work("verify a ConnectOnion CONNECT", |n| verify(n, &connect()))
            .beside("ed25519-dalek", |n| verify_alone(n, &connect())),
        work("verify a ConnectOnion INPUT of 200 B", |n| {
            verify(n, &input());
        })
        .beside("ed25519-dalek", |n| verify_alone(n, &input())),
    ]
}

/// What a client signs in its CONNECT.
fn connect() -> Draft {
    let host = Signer::from_seed(&HOST);
    Draft::new(NOW).with_nonce(7).with_to(host.address())
}

/// What a client that signs its commands signs in an INPUT.
fn input() -> Draft {
    let prompt = text::words(200);
    connect().with("type", "INPUT").with("prompt", prompt)
}

/// The payload with its signature.
fn signed(draft: &Draft) -> Signed {
    Signer::from_seed(&CLIENT).sign_payload(draft).unwrap()
}

/// The bytes that are signed: a payload is sent in the form that is signed.
fn bytes(signed: &Signed) -> Vec<u8> {
    signed.payload.as_ref().unwrap().get().as_bytes().to_vec()
}

fn sign(n: u64, draft: &Draft) {
    let signer = Signer::from_seed(&CLIENT);
    let start = Instant::now();
    for _ in 0..n {
        black_box(signer.sign_payload(black_box(draft)).unwrap());
    }
    time::began(start);
}

fn sign_alone(n: u64, draft: &Draft) {
    let (key, signed) = (SigningKey::from_bytes(&CLIENT), signed(draft));
    let bytes = bytes(&signed);
    let ours = signed.signature.unwrap();
    let hex = |bytes: [u8; 64]| -> String { bytes.iter().map(|it| format!("{it:02x}")).collect() };
    assert_eq!(hex(key.sign(&bytes).to_bytes()), &*ours);
    let start = Instant::now();
    for _ in 0..n {
        black_box(key.sign(black_box(&bytes)));
    }
    time::began(start);
}

fn verify(n: u64, draft: &Draft) {
    let signed = signed(draft);
    let host = *Signer::from_seed(&HOST).address();
    let verifier = Verifier {
        recipient: Some(host),
        require_to: true,
        ..Verifier::default()
    };
    assert!(verifier.verify(&signed, NOW + 301.0).is_err());
    let start = Instant::now();
    for _ in 0..n {
        black_box(verifier.verify(black_box(&signed), NOW).unwrap());
    }
    time::began(start);
}

/// The key is read each time, because it comes with the frame.
fn verify_alone(n: u64, draft: &Draft) {
    let (key, bytes) = (SigningKey::from_bytes(&CLIENT), bytes(&signed(draft)));
    let signature = key.sign(&bytes);
    let key = key.verifying_key().to_bytes();
    let start = Instant::now();
    for _ in 0..n {
        let key = VerifyingKey::from_bytes(black_box(&key)).unwrap();
        key.verify_strict(black_box(&bytes), &signature).unwrap();
    }
    time::began(start);
}
