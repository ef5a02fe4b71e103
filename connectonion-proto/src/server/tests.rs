//! Tests of the machine.

use std::time::Duration;

use rpc_core::{Limits, Refused, Text};

use super::*;
use crate::frame::{
    Connected, ErrorFrame, OnboardMethod, OnboardRequired, OnboardSuccess, RuntimeInputAck,
    SessionState,
};
use crate::limits::{AUTHENTICATE_FIRST, PROMPT_REQUIRED, defaults};

const SECOND: Duration = Duration::from_secs(1);
const CONNECT: &str = r#"{"type":"CONNECT","session_id":"s"}"#;
const INPUT: &str = r#"{"type":"INPUT","prompt":"hi"}"#;

struct Rig {
    conn: ServerConn,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self::with(ServerConfig {
            keep_alive: rpc_core::keepalive::KeepAlive::off(),
            ..ServerConfig::default()
        })
    }

    fn with(config: ServerConfig) -> Self {
        let now = Instant::now();
        let conn = ServerConn::new(config, now);
        Self { conn, now }
    }

    /// A rig whose client is in.
    fn inside() -> Self {
        let mut rig = Self::new();
        rig.send(CONNECT);
        rig.accept();
        assert_eq!(
            rig.written(),
            [r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#]
        );
        rig.events();
        rig
    }

    fn send(&mut self, text: &str) {
        self.conn.handle_message(Incoming::Text(text), self.now);
    }

    fn accept(&mut self) {
        let connected = Connected::new("s", SessionState::New);
        self.conn.accept(&connected).unwrap();
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.conn.handle_timeout(self.now);
    }

    /// What the client gets.
    fn written(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.conn.poll_transmit())
            .map(|frame| match frame {
                Outgoing::Text(text) => text.as_str().to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    /// The message of the one ERROR that the client gets.
    fn error(&mut self) -> String {
        let written = self.written();
        let [error] = &written[..] else {
            panic!("{written:?}");
        };
        let error: serde_json::Value = serde_json::from_str(error).unwrap();
        assert_eq!(error["type"], "ERROR");
        error["message"].as_str().unwrap().to_owned()
    }

    fn events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.conn.poll_event()).collect()
    }

    fn names(&mut self) -> Vec<String> {
        let name = |event: &ServerEvent| {
            let text = format!("{event:?}");
            text.split([' ', '(', '{']).next().unwrap().to_owned()
        };
        self.events().iter().map(name).collect()
    }
}

#[test]
fn a_client_is_ready_when_the_application_accepts() {
    let mut rig = Rig::new();
    assert_eq!(rig.conn.state(), ServerState::AwaitConnect);
    rig.send(CONNECT);
    assert_eq!(rig.conn.state(), ServerState::AwaitVerdict);
    assert!(!rig.conn.wants_input());
    rig.accept();
    assert_eq!(rig.conn.state(), ServerState::Ready);
    assert_eq!(rig.names(), ["Connect"]);
    assert_eq!(rig.conn.begun(), Err(Refused::UnknownId));
}

#[test]
fn frames_during_authentication_are_kept_in_order() {
    let mut rig = Rig::new();
    rig.send(CONNECT);
    rig.send(INPUT);
    rig.send(r#"{"type":"PONG"}"#);
    rig.send(r#"{"type":"SEAL"}"#);
    assert_eq!(rig.names(), ["Connect"]);
    rig.accept();
    assert_eq!(rig.names(), ["Input"]);
    rig.conn
        .acknowledge(&RuntimeInputAck::new("s", "r1"))
        .unwrap();
    assert_eq!(rig.names(), ["Pong", "Warning"]);
    assert_eq!(
        rig.written(),
        [
            r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
            r#"{"type":"RUNTIME_INPUT_ACK","session_id":"s","id":"r1"}"#,
            r#"{"type":"ERROR","message":"unknown message type: 'SEAL'"}"#,
        ]
    );
}

#[test]
fn a_refused_connect_may_be_followed_by_another() {
    let mut rig = Rig::new();
    rig.send(CONNECT);
    rig.conn.refuse(&ErrorFrame::new("no")).unwrap();
    assert_eq!(rig.error(), "no");
    rig.send(INPUT);
    assert_eq!(rig.error(), AUTHENTICATE_FIRST);
    rig.send(CONNECT);
    rig.accept();
    // And one that is refused later leaves the client in.
    rig.send(CONNECT);
    rig.conn.refuse(&ErrorFrame::new("no")).unwrap();
    assert_eq!(rig.conn.state(), ServerState::Ready);
}

#[test]
fn an_input_needs_a_prompt() {
    let mut rig = Rig::inside();
    for text in [
        r#"{"type":"INPUT"}"#,
        r#"{"type":"INPUT","prompt":""}"#,
        r#"{"type":"INPUT","prompt":null,"payload":{"prompt":""}}"#,
    ] {
        rig.send(text);
        assert_eq!(rig.error(), PROMPT_REQUIRED);
    }
    rig.send(r#"{"type":"INPUT","payload":{"prompt":"signed"},"from":"x","signature":"y"}"#);
    assert_eq!(rig.names().last().unwrap(), "Input");
    rig.conn.begun().unwrap();
    rig.send(r#"{"type":"INPUT","prompt":7}"#);
    assert_eq!(
        rig.error(),
        "Invalid INPUT: member `prompt` is not a string"
    );
}

fn gated() -> Rig {
    let mut rig = Rig::new();
    rig.send(CONNECT);
    gate(&mut rig);
    rig.written();
    rig.events();
    rig
}

fn gate(rig: &mut Rig) {
    let required = OnboardRequired::new("0x07", &[OnboardMethod::InviteCode]).unwrap();
    rig.conn
        .gate(Address::from_bytes([7; 32]), &required)
        .unwrap();
}

const OFFER: &str = r#"{"type":"ONBOARD_SUBMIT","payload":{"invite_code":"c"}}"#;

#[test]
fn the_last_connect_waits_during_onboarding() {
    let mut rig = gated();
    assert_eq!(rig.conn.state(), ServerState::Gated);
    rig.send(INPUT);
    assert_eq!(rig.error(), AUTHENTICATE_FIRST);
    rig.send(r#"{"type":"CONNECT","session_id":"other"}"#);
    gate(&mut rig);
    rig.wait(SECOND * 86_400);
    rig.written();
    rig.events();
    rig.send(OFFER);
    let event = rig.events().pop().unwrap();
    assert!(
        matches!(event, ServerEvent::Onboard { identity, .. } if identity == Address::from_bytes([7; 32]))
    );
    rig.conn
        .refuse(&ErrorFrame::new("Invalid invite code"))
        .unwrap();
    assert_eq!(rig.error(), "Invalid invite code");
    assert_eq!(rig.conn.state(), ServerState::Gated);
    rig.send(OFFER);
    let success = OnboardSuccess::new("0x07", "contact", "hello");
    rig.conn.welcome(&success).unwrap();
    let event = rig.events().pop().unwrap();
    let ServerEvent::Onboarded { identity, connect } = event else {
        panic!("{event:?}");
    };
    assert_eq!(
        (identity, connect.session_id.as_deref()),
        (Address::from_bytes([7; 32]), Some("other"))
    );
    rig.accept();
    assert_eq!(rig.conn.state(), ServerState::Ready);
}

#[test]
fn one_empty_input_right_after_onboarding_is_swallowed() {
    let empty = r#"{"type":"INPUT","prompt":""}"#;
    for before in [true, false] {
        let mut rig = gated();
        rig.send(OFFER);
        let success = OnboardSuccess::new("0x07", "contact", "hello");
        rig.conn.welcome(&success).unwrap();
        if before {
            rig.send(empty);
        }
        rig.accept();
        if !before {
            rig.send(r#"{"type":"PONG"}"#);
            rig.send(empty);
        }
        assert_eq!(rig.written().len(), 2);
        assert!(
            rig.events()
                .contains(&ServerEvent::Warning(Warning::EmptyInput))
        );
        rig.send(empty);
        assert_eq!(rig.error(), PROMPT_REQUIRED);
    }
}

#[test]
fn onboarding_offers_need_an_open_onboarding() {
    let mut rig = Rig::new();
    rig.send(OFFER);
    assert_eq!(rig.error(), AUTHENTICATE_FIRST);
    let mut rig = Rig::inside();
    rig.send(OFFER);
    assert_eq!(rig.error(), "onboarding is not required");
    rig.send(CONNECT);
    let required = OnboardRequired::new("0x07", &[]).unwrap();
    let reported = rig.conn.gate(Address::from_bytes([7; 32]), &required);
    assert_eq!(reported, Err(Refused::UnknownId));
}

#[test]
fn an_oversized_connect_does_not_wait_for_onboarding() {
    let config = ServerConfig {
        max_gated_bytes: 10,
        ..ServerConfig::default()
    };
    let mut rig = Rig::with(config);
    rig.send(CONNECT);
    let required = OnboardRequired::new("0x07", &[]).unwrap();
    let reported = rig.conn.gate(Address::from_bytes([7; 32]), &required);
    assert!(matches!(reported, Err(Refused::TooLarge { max: 10, .. })));
    assert_eq!(rig.conn.state(), ServerState::AwaitVerdict);
    rig.conn.refuse(&ErrorFrame::new("too large")).unwrap();
    assert_eq!(rig.conn.state(), ServerState::AwaitConnect);
}

#[test]
fn pings_are_sent_every_30_seconds_from_the_start() {
    let mut rig = Rig::new();
    let ping = r#"{"type":"PING"}"#;
    rig.wait(SECOND * 29);
    assert!(rig.written().is_empty());
    rig.wait(SECOND);
    assert_eq!(rig.written(), [ping]);
    rig.send(CONNECT);
    rig.accept();
    rig.written();
    // A late one does not move those that follow.
    rig.wait(SECOND * 35);
    assert_eq!(rig.written(), [ping]);
    rig.wait(SECOND * 25);
    assert_eq!(rig.written(), [ping]);
    // After a long sleep there is one, not many.
    rig.wait(SECOND * 1000);
    assert_eq!(rig.written(), [ping]);
    assert!(!rig.conn.is_closed(), "nobody has to answer");
}

#[test]
fn binary_messages_are_answered_with_an_error() {
    let mut rig = Rig::new();
    rig.conn.handle_message(Incoming::Binary(&[0xff]), rig.now);
    assert_eq!(rig.error(), "unknown message type: None");
    // Text in a binary message is read like any other.
    rig.conn
        .handle_message(Incoming::Binary(CONNECT.as_bytes()), rig.now);
    assert_eq!(rig.names(), ["Warning", "Connect"]);
}

#[test]
fn a_full_outbox_refuses_and_reports_writability() {
    let limits = Limits {
        max_outbox_frames: 4,
        ..defaults()
    };
    let config = ServerConfig {
        limits,
        ..ServerConfig::default()
    };
    let mut rig = Rig::with(config);
    rig.send(CONNECT);
    rig.accept();
    rig.events();
    while rig.conn.has_room() {
        rig.conn.send(Text::from("{}")).unwrap();
    }
    assert!(rig.events().is_empty());
    rig.written();
    assert_eq!(rig.names(), ["Writable"]);
    assert!(rig.conn.has_room());
}

#[test]
fn events_go_to_ready_clients_only() {
    let mut rig = gated();
    assert_eq!(rig.conn.send(Text::from("{}")), Err(Refused::NotReady));
    rig.conn.send_text(Text::from("{}")).unwrap();
    rig.conn.close(rig.now);
    assert_eq!(rig.conn.send(Text::from("{}")), Err(Refused::Closed));
    assert_eq!(rig.conn.refuse(&ErrorFrame::new("x")), Err(Refused::Closed));
}
