//! Signing and verifying: the checks, their order, and what each of them says.

use connectonion_proto::auth::AddressList;
use connectonion_proto::auth::{Address, AuthError, Canonical, Draft, Payload, Signer, Verifier};
use connectonion_proto::frame::Signed;
use proptest::prelude::*;
use rpc_core::{Json, Limits};
use serde_json::{Value, json};

const NOW: f64 = 1_702_234_567.0;

/// How old a payload may be.
const WINDOW: f64 = 300.0;

fn host() -> Signer {
    Signer::from_seed(&[1; 32])
}

fn client() -> Signer {
    Signer::from_seed(&[2; 32])
}

/// A verifier of the host.
fn verifier() -> Verifier {
    Verifier {
        recipient: Some(*host().address()),
        ..Verifier::default()
    }
}

/// A payload of the client.
fn signed(payload: &Value) -> Signed {
    client().sign_payload(payload).unwrap()
}

/// Any texts in place of a payload, an address and a signature.
fn claimed(payload: &str, from: &str, signature: &str) -> Signed {
    Signed::new(Json::new(payload).unwrap(), from, signature)
}

/// Another text in place of the payload.
fn with_payload(signed: &Signed, payload: &str) -> Signed {
    let mut changed = signed.clone();
    changed.payload = Some(Json::new(payload).unwrap());
    changed
}

/// Why a payload is refused that is signed well.
fn refusal(verifier: &Verifier, payload: &Value) -> Option<AuthError> {
    verifier.verify(&signed(payload), NOW).err()
}

#[test]
fn a_signed_frame_is_attributed_to_its_signer() {
    let draft = Draft::new(NOW + 0.25)
        .with_to(host().address())
        .with_nonce(9)
        .with("invite_code", "rëd");
    let signed = client().sign_payload(&draft).unwrap();
    let verified = verifier().verify(&signed, NOW).unwrap();
    assert_eq!(&verified.address, client().address());
    assert_eq!(verified.timestamp.to_bits(), (NOW + 0.25).to_bits());
    assert_eq!(verified.payload.text("invite_code").as_deref(), Some("rëd"));
    assert_eq!(
        signed.signature.as_deref(),
        Some(&*verified.signature.to_string())
    );
}

#[test]
fn an_unsigned_frame_has_no_signer() {
    let whole = signed(&json!({"timestamp": NOW}));
    let (mut bare, mut unproved) = (whole.clone(), whole);
    bare.payload = None;
    unproved.signature = None;
    for unsigned in [Signed::none(), bare, unproved] {
        let refused = verifier().verify(&unsigned, NOW).unwrap_err();
        assert_eq!(refused, AuthError::SignedRequestRequired);
    }
}

#[test]
fn the_first_check_that_fails_gives_the_error() {
    let blacklist = AddressList::parse(&client().address().to_string());
    let strict = Verifier {
        blacklist,
        ..verifier()
    };
    let stranger = Address::from_bytes([9; 32]).to_string();
    let from = client().address().to_string();
    let in_upper_case = from.trim_start_matches("0x").to_uppercase();
    for (payload, from, signature, expected) in [
        ("{}", from.as_str(), "", AuthError::Blacklisted),
        ("{}", &in_upper_case, "00", AuthError::Blacklisted),
        ("{}", "", "", AuthError::FromRequired),
        ("{}", &stranger, "", AuthError::SignatureRequired),
        ("{}", &stranger, "00", AuthError::TimestampRequired),
        (
            r#"{"timestamp":"1"}"#,
            &stranger,
            "00",
            AuthError::TimestampNotNumeric,
        ),
        (
            r#"{"timestamp":1,"to":"x"}"#,
            &stranger,
            "00",
            AuthError::Expired {
                behind: 1_702_234_566,
            },
        ),
        (
            r#"{"timestamp":1702234567,"to":"x"}"#,
            &stranger,
            "00",
            AuthError::WrongRecipient,
        ),
        (
            r#"{"timestamp":1702234567}"#,
            &stranger,
            "00",
            AuthError::InvalidSignature,
        ),
        (
            r#"{"timestamp":1702234567}"#,
            "0x",
            "00",
            AuthError::InvalidSignature,
        ),
        (
            r#"{"timestamp":1702234567}"#,
            "someone",
            "00",
            AuthError::InvalidSignature,
        ),
    ] {
        let claimed = claimed(payload, from, signature);
        let refused = strict.verify(&claimed, NOW).unwrap_err();
        assert_eq!(refused, expected, "{payload} {from} {signature}");
    }
}

#[test]
fn a_payload_that_is_not_an_object_is_refused() {
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    for payload in ["[]", "null", "7", r#""{}""#, &deep] {
        let changed = with_payload(&signed(&json!({"timestamp": NOW})), payload);
        let refused = verifier().verify(&changed, NOW).unwrap_err();
        assert!(matches!(refused, AuthError::InvalidPayload(_)), "{payload}");
    }
    // What is no JSON is in no frame.
    for payload in ["", "{", &"[".repeat(1000)] {
        assert!(Payload::parse(payload, &Limits::default()).is_err());
    }
}

#[test]
fn a_timestamp_must_be_a_nonzero_number() {
    let none = [
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(null),
        json!(false),
        json!(""),
        json!([]),
        json!({}),
    ];
    for timestamp in none {
        let refused = refusal(&verifier(), &json!({ "timestamp": timestamp }));
        assert_eq!(refused, Some(AuthError::TimestampRequired), "{timestamp}");
    }
    for timestamp in [
        json!(true),
        json!("1702234567"),
        json!([0]),
        json!({"a": 1}),
    ] {
        let refused = refusal(&verifier(), &json!({ "timestamp": timestamp }));
        assert_eq!(refused, Some(AuthError::TimestampNotNumeric), "{timestamp}");
    }
    assert_eq!(
        refusal(&verifier(), &json!({})),
        Some(AuthError::TimestampRequired)
    );
}

#[test]
fn a_payload_expires_after_five_minutes_to_either_side() {
    let expired = |behind| Some(AuthError::Expired { behind });
    for (timestamp, expected) in [
        (NOW, None),
        (NOW - WINDOW, None),
        (NOW + WINDOW, None),
        (NOW - WINDOW - 0.001, expired(300)),
        (NOW + 3600.0, expired(-3600)),
        (NOW + WINDOW + 0.001, expired(-300)),
        (-NOW, expired(3_404_469_134)),
        (1e300, expired(-1_000_000_000_000_000)),
    ] {
        let refused = refusal(&verifier(), &json!({ "timestamp": timestamp }));
        assert_eq!(refused, expected, "{timestamp}");
    }
    let claimed = claimed(r#"{"timestamp":1e999}"#, "0x", "00");
    assert_eq!(
        Some(verifier().verify(&claimed, NOW).unwrap_err()),
        expired(-1_000_000_000_000_000)
    );
}

#[test]
fn a_payload_for_another_recipient_is_refused() {
    let strict = Verifier {
        require_to: true,
        ..verifier()
    };
    let us = host().address().to_string();
    for to in [
        us.clone(),
        us.to_uppercase(),
        us.trim_start_matches("0x").to_owned(),
    ] {
        let payload = json!({"timestamp": NOW, "to": to});
        assert_eq!(refusal(&verifier(), &payload), None, "{to}");
        assert_eq!(refusal(&strict, &payload), None, "{to}");
    }
    let other = json!(client().address().to_string());
    for to in [
        other.clone(),
        json!("x"),
        json!(7),
        json!(true),
        json!([us]),
    ] {
        let payload = json!({"timestamp": NOW, "to": to});
        assert_eq!(
            refusal(&verifier(), &payload),
            Some(AuthError::WrongRecipient),
            "{to}"
        );
    }
    for payload in [
        json!({"timestamp": NOW}),
        json!({"timestamp": NOW, "to": null}),
        json!({"timestamp": NOW, "to": ""}),
    ] {
        assert_eq!(refusal(&verifier(), &payload), None, "{payload}");
        assert_eq!(
            refusal(&strict, &payload),
            Some(AuthError::WrongRecipient),
            "{payload}"
        );
    }
    let anybody = Verifier {
        require_to: true,
        ..Verifier::default()
    };
    assert_eq!(
        refusal(&anybody, &json!({"timestamp": NOW, "to": other})),
        None
    );
}

#[test]
fn onboarding_needs_no_recipient() {
    let strict = Verifier {
        require_to: true,
        ..verifier()
    };
    let submitted = signed(&json!({"timestamp": NOW, "invite_code": "x"}));
    assert!(strict.verify_onboarding(&submitted, NOW).is_ok());
    let submitted = signed(&json!({"timestamp": NOW, "to": "x"}));
    let refused = strict.verify_onboarding(&submitted, NOW).unwrap_err();
    assert_eq!(refused, AuthError::WrongRecipient);
}

#[test]
fn a_member_that_comes_twice_in_a_payload_is_refused() {
    let us = host().address().to_string();
    let signed = signed(&json!({"timestamp": 1_702_234_567, "to": us}));
    let payload = format!(r#"{{"timestamp":1702234567,"to":"{us}","\u0074o":"{us}"}}"#);
    let changed = with_payload(&signed, &payload);
    let refused = verifier().verify(&changed, NOW).unwrap_err().to_string();
    let words = "unauthorized: invalid payload: member `…` comes twice";
    assert!(refused.starts_with(words), "{refused}");
}

#[test]
fn no_secret_is_printed() {
    let signer = Signer::from_seed(b"0123456789abcdef0123456789abcdef");
    let payload = json!({"timestamp": NOW, "invite_code": "s3cret"});
    let signed = signer.sign_payload(&payload).unwrap();
    let verified = verifier().verify(&signed, NOW).unwrap();
    let printed = format!("{signer:?} {signed:?} {verified:?}");
    assert!(printed.contains(&signer.address().to_string()));
    let signature = verified.signature.to_string();
    for secret in [
        "s3cret",
        "30313233",
        "0123456789abcdef",
        "48, 49, 50",
        &signature,
    ] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn an_oversized_number_is_not_signed() {
    let payload = Json::new(r#"{"timestamp":1,"x":1e400}"#).unwrap();
    assert!(client().sign_payload(&payload).is_err());
}

#[test]
fn a_frame_without_a_timestamp_is_invalid() {
    let signed = signed(&json!({"timestamp": NOW}));
    let refused = verifier().verify(&signed, f64::NAN).unwrap_err();
    assert_eq!(refused, AuthError::Expired { behind: 0 });
}

#[test]
fn only_objects_are_signed() {
    for payload in [json!([]), json!(null), json!("x"), json!(7)] {
        assert!(client().sign_payload(&payload).is_err(), "{payload}");
    }
}

/// Any JSON value, not too large.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn signatures_verify_only_what_was_signed(
        members in prop::collection::vec(("[a-z]{1,4}", any_json()), 0..4),
        seed: [u8; 32],
        at in 0..1000_usize,
        bit in 0..8,
    ) {
        let mut payload: Value = Value::Object(members.into_iter().collect());
        payload["timestamp"] = json!(NOW);
        payload["to"] = json!(host().address());
        let signed = Signer::from_seed(&seed).sign_payload(&payload).unwrap();
        prop_assert!(verifier().verify(&signed, NOW).is_ok());
        // The same values, written by someone else.
        let rewritten = serde_json::to_string_pretty(&payload).unwrap();
        prop_assert!(verifier().verify(&with_payload(&signed, &rewritten), NOW).is_ok());
        // One bit of the text that was signed.
        let text = signed.payload.as_ref().unwrap().get();
        let mut bytes = text.to_owned().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        let changed = String::from_utf8(bytes).ok();
        // What is no JSON is in no frame.
        if let Some(changed) = changed.filter(|changed| Json::new(changed).is_ok()) {
            let changed = with_payload(&signed, &changed);
            if let Ok(verified) = verifier().verify(&changed, NOW) {
                let same = verified.payload.canonical(Canonical::Python);
                prop_assert_eq!(same, text, "a bit that says nothing");
            }
        }
    }

    #[test]
    fn arbitrary_claims_never_panic(
        payload in any_json(),
        from: String,
        signature: String,
    ) {
        let payload = payload.to_string();
        prop_assert!(verifier().verify(&claimed(&payload, &from, &signature), NOW).is_err());
    }
}
