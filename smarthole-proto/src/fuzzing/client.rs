//! Body of the fuzz target of the client machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Disconnect, Incoming, Json, Machine, Outgoing, Refused};

use super::{FEW, inert, small};
use crate::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
use crate::codec;
use crate::frame::{Answer, ClientFrame, Notification, Registration, Response};
use crate::limits::REGISTRATION_FAILED_CODE;

/// How long a message waits for its response.
const PATIENCE: Duration = Duration::from_secs(30);

/// Messages that a server may send.
const IDS: [&str; 6] = ["m0", "m1", "m2", "m3", "m4", "m5"];

/// What else a server may send.
const FRAMES: [&str; 9] = [
    r#"{"type":"registration_response","payload":{"success":true,"clientId":"c","message":"hi"}}"#,
    r#"{"payload":{"success":true},"type":"registration_response"}"#,
    r#"{"type":"registration_response","payload":{"success":false,"code":"DUPLICATE_NAME"}}"#,
    r#"{"type":"registration_response","payload":{"success":false,"code":"INVALID_NAME","message":"no"}}"#,
    r#"{"type":"registration_response","payload":{}}"#,
    r#"{"type":"later","payload":[1]}"#,
    r#"{"type":"message","payload":{"id":"m0"}}"#,
    r#"{"type":7}"#,
    "junk",
];

#[derive(Default)]
struct Seen {
    /// Messages without a response, as the application knows them.
    open: BTreeMap<String, Instant>,
    /// What has to leave, in order.
    frames: VecDeque<String>,
    /// Responses that leave when there is room.
    owed: VecDeque<String>,
    /// Which messages they are about. These are answered at some time until the last one leaves.
    promised: BTreeSet<String>,
    registered: bool,
    refused: bool,
    left: bool,
    closed: bool,
}

/// Runs a client through operations: the registration comes first and once, messages only after the
/// answer to it, every response that was taken leaves, and nothing is overdue that was answered.
pub fn client_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let registration = Registration::new("notes", "Keeps notes.").with_capability("lists");
    let first = codec::encode(&registration.frame());
    let Ok(config) = ClientConfig::new(registration) else {
        panic!("a good registration")
    };
    let mut conn = ClientConn::new(configured(config, script.byte_or_zero()), now);
    let mut seen = Seen::default();
    let first = first.map(|text| text.as_str().to_owned());
    seen.frames.extend(first);
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn, now);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
        assert!(conn.in_flight() <= FEW, "open messages are bounded");
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    seen.events(&mut conn, now);
    assert!(seen.closed, "the end is told");
    assert_eq!(conn.in_flight(), 0, "nothing is open after the end");
    assert_eq!(conn.ack("m0"), Err(Refused::Closed), "after the end");
    inert(&mut conn, now);
}

fn configured(config: ClientConfig, settings: u8) -> ClientConfig {
    let mut config = config.with_limits(small()).with_response_timeout(PATIENCE);
    if settings & 1 == 1 {
        config = config.with_registration_timeout(None);
    }
    if settings & 2 == 2 {
        let often = KeepAlive::default().with_interval(Some(Duration::from_secs(7)));
        config = config.with_keep_alive(often.with_pong_timeout(Duration::from_secs(3)));
    }
    config
}

fn operate(
    op: u8,
    script: &mut Script<'_>,
    conn: &mut ClientConn,
    seen: &mut Seen,
    now: &mut Instant,
) {
    let at = *now;
    match op % 16 {
        0 => hear(conn, script.text(), at),
        1 | 2 => {
            let text = script.pick(&FRAMES).copied().unwrap_or_default();
            hear(conn, text, at);
        }
        3..=6 => {
            let id = script.pick(&IDS).copied().unwrap_or_default();
            let text = format!(
                r#"{{"type":"message","payload":{{"id":"{id}","text":"t","timestamp":"z","x":[1]}}}}"#
            );
            hear(conn, &text, at);
        }
        7..=9 => {
            let id = script.pick(&IDS).copied().unwrap_or_default();
            let answer = match script.byte_or_zero() % 5 {
                0 => Answer::Ack,
                1 => Answer::reject(Some("no".into())),
                2 => Answer::reject(None),
                3 => Answer::Notification(Notification::new(script.text())),
                _ => Answer::Unknown {
                    tag: "later".into(),
                    content: Json::new("[1]").ok(),
                },
            };
            seen.respond(conn, &Response::new(id, answer), at);
        }
        10 => {
            let id = script.pick(&IDS).copied().unwrap_or_default();
            seen.respond_later(conn, id, at);
        }
        11 | 12 => fire(conn, now, script.seconds()),
        13 => conn.handle_timeout(at),
        14 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"x"), at),
        14 => {}
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.handle_disconnect(Disconnect::Eof, at),
            2 => conn.handle_message(Incoming::Ping(b"x"), at),
            3 => hear(conn, &"x".repeat(3000), at),
            _ => conn.handle_message(Incoming::Pong(b"x"), at),
        },
    }
}

/// A line is read only while the machine wants input.
fn hear(conn: &mut ClientConn, text: &str, now: Instant) {
    if conn.wants_input() {
        conn.handle_message(Incoming::Text(text), now);
    }
}

impl Seen {
    /// A command: what it changes is known only if nothing is left to be told.
    fn respond(&mut self, conn: &mut ClientConn, response: &Response, now: Instant) {
        self.events(conn, now);
        let text = codec::encode(&ClientFrame::Response(response.clone()));
        // What is owed leaves first, as far as there is room.
        match conn.respond(response) {
            Ok(()) => {
                assert!(self.registered && !conn.is_closed(), "an early response");
                self.frames.append(&mut self.owed);
                self.frames
                    .extend(text.map(|text| text.as_str().to_owned()));
                if !matches!(response.answer, Answer::Unknown { .. }) {
                    let id = response.message_id.as_str();
                    assert!(!conn.is_open(id), "it is answered");
                    self.open.remove(id);
                }
            }
            Err(Refused::NotReady) => assert!(!self.registered, "it is registered"),
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(_) => assert!(self.registered, "it is not registered"),
        }
    }

    fn respond_later(&mut self, conn: &mut ClientConn, id: &'static str, now: Instant) {
        self.events(conn, now);
        if conn.is_closed() || self.owed.len() >= FEW {
            return;
        }
        let response = Response::new(id, Answer::reject(None));
        let text = codec::encode(&ClientFrame::Response(response.clone()));
        self.owed.extend(text.map(|text| text.as_str().to_owned()));
        self.promised.insert(id.to_owned());
        conn.respond_later(response);
    }

    /// Takes frames: each is what was promised next.
    fn transmits(&mut self, conn: &mut ClientConn) {
        while let Some(frame) = conn.poll_transmit() {
            assert!(!self.left, "a frame after the last one");
            match frame {
                Outgoing::Text(text) => self.sent(text.as_str()),
                Outgoing::Ping(_) => {}
                Outgoing::Close(close) => {
                    self.left = true;
                    let failed = close.code == REGISTRATION_FAILED_CODE;
                    assert!(!failed || !self.registered, "a registration that failed");
                }
                _ => panic!("a client must send texts"),
            }
        }
        if !conn.is_closed() {
            let held = conn.state() == ClientState::AwaitRegistered;
            assert!(self.frames.is_empty(), "a frame is missing");
            assert!(held || self.owed.is_empty(), "what was promised is kept");
        }
    }

    fn sent(&mut self, text: &str) {
        let next = self.frames.pop_front();
        let next = next.or_else(|| self.owed.pop_front());
        assert_eq!(Some(text), next.as_deref(), "what leaves");
    }

    fn events(&mut self, conn: &mut ClientConn, now: Instant) {
        self.take_events(conn, now);
        self.transmits(conn);
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
        if self.owed.is_empty() {
            let promised = std::mem::take(&mut self.promised);
            self.open
                .retain(|id, _| !promised.contains(id) || conn.is_open(id));
        }
        if !self.closed && self.promised.is_empty() {
            assert_eq!(self.open.len(), conn.in_flight(), "what is open");
            let all = self.open.keys().all(|id| conn.is_open(id));
            assert!(all, "what is open");
        }
    }

    fn take_events(&mut self, conn: &mut ClientConn, now: Instant) {
        while let Some(event) = conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            match event {
                ClientEvent::Registered { .. } => {
                    assert!(!self.registered && !self.refused, "registered once");
                    self.registered = true;
                }
                ClientEvent::Refused(_) => {
                    assert!(!self.registered && !self.refused, "refused once");
                    self.refused = true;
                }
                ClientEvent::Message {
                    message, deadline, ..
                } => {
                    assert!(self.registered, "a message before the registration");
                    assert!(deadline <= now + PATIENCE, "a deadline");
                    self.open.insert(message.id.as_str().to_owned(), deadline);
                }
                ClientEvent::Overdue { id } => {
                    let deadline = self.open.remove(id.as_str());
                    assert!(deadline.is_some_and(|at| at <= now), "it is not overdue");
                }
                ClientEvent::Unknown { .. } => assert!(self.registered, "a frame before"),
                ClientEvent::Warning(_) => {}
                ClientEvent::Closed(_) => {
                    self.closed = true;
                    self.open.clear();
                }
            }
        }
    }
}
