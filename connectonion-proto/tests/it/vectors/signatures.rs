//! Signatures of real clients are accepted, others are not, and which host accepts which is known.

use connectonion_proto::auth::{
    Address, Canonical, Payload, Signature, Signer, Verifier, canonical_json, verify_signature,
};
use connectonion_proto::frame::Signed;
use rpc_core::{Json, Limits, json};

use super::{Vector, run};

/// The time of most payloads.
const NOW: f64 = 1_702_234_567.0;

/// The host that these payloads are for, if they are for anybody.
const HOST: &str = "0x0389957884cb62711a90b0ae5a32ea1c340668530433c75e1c13499936f1948b";

fn is_accepted(vector: &Vector, forms: &[Canonical]) -> bool {
    let payload = Payload::parse(vector.str("payload"), &Limits::default()).unwrap();
    let address = Address::parse(vector.str("from"));
    let signature = Signature::parse(vector.str("signature"));
    let (Ok(address), Ok(signature)) = (address, signature) else {
        return false;
    };
    verify_signature(&address, &payload, &signature, forms)
}

/// A payload as it came in a frame.
#[derive(serde::Deserialize)]
struct Received(#[serde(deserialize_with = "json::lenient::verbatim")] Json);

fn received(payload: &str) -> Json {
    let Received(payload) = json::parse(payload, &Limits::default()).unwrap();
    payload
}

#[test]
fn real_signatures_verify_and_altered_ones_do_not() {
    run("signatures", |vector| {
        let expected = vector.str("signer") != "nobody";
        assert_eq!(is_accepted(vector, &Canonical::ALL), expected);
        assert!(expected || !vector.is("1.9.2"), "no host accepts it either");
        let host = Address::parse(HOST).unwrap();
        let signed = Signed::new(
            received(vector.str("payload")),
            vector.str("from"),
            vector.str("signature"),
        );
        let verifier = Verifier {
            recipient: Some(host),
            ..Verifier::default()
        };
        let verified = verifier.verify(&signed, NOW);
        assert_eq!(verified.is_ok(), expected, "{verified:?}");
    });
}

#[test]
fn old_hosts_accept_the_python_form_only() {
    run("signatures", |vector| {
        let accepted = is_accepted(vector, &[Canonical::Python]);
        assert_eq!(accepted, vector.is("1.2.1"));
    });
}

#[test]
fn newer_hosts_accept_three_forms() {
    // They write numbers as Python does and sort as Python does, and JavaScript does not.
    let beyond_them = [
        "names that are numbers, outermost members sorted",
        "names beyond the first plane, outermost members sorted",
        "a small number, outermost members sorted",
    ];
    run("signatures", |vector| {
        let forms = [Canonical::Python, Canonical::Utf8, Canonical::TopLevel];
        let accepted = is_accepted(vector, &forms);
        let expected = vector.is("1.9.2") || beyond_them.contains(&vector.name());
        assert_eq!(accepted, expected);
    });
}

#[test]
fn signatures_match_python() {
    run("signatures", |vector| {
        let is_pythons = vector.str("signer") == "python 1.2.1";
        let Some(canonical) = vector.try_str("canonical").filter(|_| is_pythons) else {
            return;
        };
        let Some(seed) = vector.try_str("seed") else {
            return;
        };
        // As it was received: the value of another library would lose digits.
        let payload = received(vector.str("payload"));
        let seed = Address::parse(seed).unwrap();
        let signed = Signer::from_seed(seed.as_bytes()).sign_payload(&payload);
        let signed = signed.unwrap();
        let signature = signed.signature.unwrap();
        let theirs = Signature::parse(vector.str("signature")).unwrap();
        assert_eq!(&*signature, theirs.to_string());
        let from = Address::parse(&signed.from.unwrap());
        assert_eq!(from, Address::parse(vector.str("from")));
        assert_eq!(signed.payload.unwrap().get(), canonical);
    });
}

#[test]
fn every_recorded_payload_has_a_known_form() {
    run("signatures", |vector| {
        let Some(canonical) = vector.try_str("canonical") else {
            return;
        };
        let text = vector.str("payload");
        let mut forms = Canonical::ALL
            .map(|form| canonical_json(text, form))
            .into_iter();
        assert!(forms.any(|form| form.as_deref() == Ok(canonical)));
    });
}
