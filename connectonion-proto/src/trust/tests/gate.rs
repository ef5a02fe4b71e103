//! Recordings of a real host: who comes in, who has to go through onboarding and who is refused, and
//! where we decide differently.

use std::collections::HashMap;

use crate::auth::{Address, AddressList, InviteCodes, Verifier};
use crate::frame::{ClientFrame, Number, Signed};
use crate::trust::{AccessControl, Admission, TrustBook, TrustLevel};
use rpc_core::Limits;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Line {
    note: Option<String>,
    dir: Option<String>,
    /// As it was sent: the order of members counts.
    frame: Option<Box<RawValue>>,
}

/// What a host answers: the type of the frame, or the words of an ERROR.
fn answer(frame: &str) -> String {
    let frame: Value = serde_json::from_str(frame).unwrap();
    let kind = frame["type"].as_str().unwrap();
    frame["message"]
        .as_str()
        .filter(|_| kind == "ERROR")
        .unwrap_or(kind)
        .to_owned()
}

/// The access control of the host of the recordings.
struct Host(AccessControl);

impl Host {
    fn new(level: TrustLevel) -> Self {
        let list = |address: &str| AddressList::parse(address);
        let book = TrustBook {
            contacts: list("0x047df188bb2e7a91398eb6ddbb2f8e3a61fbccd125ce7d0a32bad54bf8676c0f"),
            whitelist: list("0xbb808e60eac3e1d1ddb53e3011e56b10ca2186876e449283af6e3beb08d11d0a"),
            blocked: list("0xf904c99fe87efa2c5792f72b92590c3c3969b5ed87d7c7953ea1ae8761567bf1"),
            ..TrustBook::default()
        };
        let us = "0x0389957884cb62711a90b0ae5a32ea1c340668530433c75e1c13499936f1948b";
        let us = Address::parse(us).unwrap();
        let verifier = Verifier {
            recipient: Some(us),
            blacklist: list("0xa144e051e7141955fb101e47644c808050ea87dc5a3892e2ecde2975e4df2754"),
            ..Verifier::default()
        };
        let access = AccessControl::new(us, level)
            .require_signatures()
            .with_verifier(verifier)
            .with_book(book)
            .with_invites(InviteCodes::new(["OpenOnion"]).unwrap())
            .with_payment(10_u64, None);
        Self(access)
    }

    fn answer(&mut self, frame: &str) -> Option<String> {
        // Every frame is judged at its own time.
        let now = |signed: &Signed| signed.number("timestamp").map_or(0.0, Number::as_f64);
        match ClientFrame::decode(frame, &Limits::default()).unwrap() {
            ClientFrame::Connect(connect) => {
                let admission = self.0.admit(&connect, now(&connect.signed));
                Some(match admission {
                    Ok(Admission::Accept { .. }) => "CONNECTED".to_owned(),
                    Ok(Admission::Gate { .. }) => "ONBOARD_REQUIRED".to_owned(),
                    Err(error) => error.to_string(),
                })
            }
            ClientFrame::OnboardSubmit(submit) => {
                let identity = submit.signed.from.as_deref().unwrap_or_default();
                let identity = Address::parse(identity).unwrap_or(Address::from_bytes([0; 32]));
                let outcome = self.0.onboard(&identity, &submit, now(&submit.signed));
                Some(match outcome {
                    Err(error) => error.to_string(),
                    _ => "ONBOARD_SUCCESS".to_owned(),
                })
            }
            _ => None,
        }
    }
}

/// Plays a recording; `ours` are our answers where they differ, by the note in the recording.
fn play(recording: &str, mut host: Host, ours: &[(&str, &str)]) {
    let path = format!(
        "{}/tests/transcripts/{recording}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut ours: HashMap<_, _> = ours.iter().copied().collect();
    let (mut note, mut expected) = (String::new(), None);
    let mut judged = 0;
    for line in text.lines() {
        let line: Line = serde_json::from_str(line).unwrap();
        note = line.note.unwrap_or(note);
        let Some(frame) = line.frame else {
            continue;
        };
        if line.dir.as_deref() == Some("c2s") {
            expected = host.answer(frame.get());
            continue;
        }
        let Some(expected) = expected.take() else {
            continue;
        };
        judged += 1;
        let theirs = answer(frame.get());
        match ours.remove(&*note) {
            Some(different) => {
                assert_ne!(expected, theirs, "{note}");
                assert_eq!(expected, different, "{note}");
            }
            None => assert_eq!(expected, theirs, "{note}"),
        }
    }
    assert!(judged > 10, "{judged} frames were judged");
    assert!(ours.is_empty(), "these did not come up: {ours:?}");
}

#[test]
fn signature_verdicts_match_the_recorded_host() {
    let ours = [
        (
            "same, signed over raw UTF-8 JSON (JavaScript style)",
            "CONNECTED",
        ),
        (
            "nested payload, only top level sorted (TypeScript style)",
            "CONNECTED",
        ),
    ];
    play(
        "v1.2.1__13_signature_forms_accepted",
        Host::new(TrustLevel::Open),
        &ours,
    );
}

#[test]
fn onboarding_starts_where_the_recorded_host_starts_it() {
    let ours = [
        ("blocked", "forbidden: Denied by fast rules"),
        ("host(blacklist=) member", "forbidden: blacklisted"),
        (
            "payment number inside the signed CONNECT payload",
            "ONBOARD_REQUIRED",
        ),
    ];
    play(
        "v1.2.1__15_onboarding_gate",
        Host::new(TrustLevel::Careful),
        &ours,
    );
}
