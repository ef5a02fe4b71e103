//! The trust gate from the stranger's side.

use serde_json::{Value, json};
use switchboard_testing::play::Play as _;

use super::{Duration, Played, connected, error, raw, user_input};
use crate::client::{CallValue, ClientConfig, ClientEvent, ClientState};
use crate::frame::{OnboardSubmit, Signed};
use rpc_core::{CallError, Refused};

pub(super) const PING_INTERVAL: Duration = Duration::from_secs(30);
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const ONBOARDED_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn gate() -> Value {
    json!({"type": "ONBOARD_REQUIRED", "identity": "0xab", "methods": ["invite_code"]})
}

pub(super) fn success() -> Value {
    json!({"type": "ONBOARD_SUCCESS", "identity": "0xab", "level": "contact", "message": "ok"})
}

fn offer() -> OnboardSubmit {
    OnboardSubmit::from(Signed::new(raw(r#"{"invite_code":"x"}"#), "0xab", "cd"))
}

#[test]
fn a_client_may_try_several_invite_codes() {
    let mut played = Played::new(ClientConfig::default());
    played.sent();
    assert_eq!(
        played.conn.onboard(&offer(), played.now),
        Err(Refused::NotReady)
    );
    let event = played.after(&gate());
    assert!(matches!(event, ClientEvent::OnboardRequired(_)));
    assert_eq!(played.conn.state(), ClientState::AwaitOnboarding);
    let first = played.conn.onboard(&offer(), played.now).unwrap();
    assert_eq!(played.sent()[0]["type"], "ONBOARD_SUBMIT");
    let event = played.after(&error("Invalid invite code"));
    assert!(
        matches!(event, ClientEvent::Reply { id, result: Err(CallError::Remote(_)) }
        if id == first)
    );
    let second = played.conn.onboard(&offer(), played.now).unwrap();
    played.take(&success());
    played.take(&connected("new"));
    let events = played.events();
    assert!(
        matches!(&events[0], ClientEvent::Reply { id, result: Ok(CallValue::Onboarded(_)) }
        if *id == second)
    );
    assert!(matches!(&events[1], ClientEvent::Connected(_)));
    assert_eq!(played.sent().len(), 1, "the offer, and no CONNECT");
    assert_eq!(played.conn.state(), ClientState::Ready);
    played.wait(ONBOARDED_TIMEOUT);
    assert_eq!(played.events(), []);
}

#[test]
fn onboarding_has_no_deadline() {
    let mut played = Played::new(ClientConfig::default());
    played.take(&gate());
    for _ in 0..200 {
        played.wait(PING_INTERVAL);
        played.take(&json!({"type": "PING"}));
    }
    assert_eq!(played.conn.state(), ClientState::AwaitOnboarding);
}

#[test]
fn debug_output_shows_no_contents() {
    let mut played = Played::ready();
    played.input("secret");
    played.take(&user_input("secret", "u"));
    assert!(!format!("{:?}", played.conn).contains("secret"));
}
