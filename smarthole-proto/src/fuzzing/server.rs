//! Body of the fuzz target of the server machine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{CloseFrame, Disconnect, Incoming, Machine, Outgoing, Refused, Text};

use super::{FEW, inert, small};
use crate::error::RegistrationError;
use crate::frame::{ClientFrame, RegistrationResponse, ServerFrame};
use crate::id::client_id;
use crate::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use crate::{codec, validate};

/// What a client may send.
const FRAMES: [&str; 12] = [
    r#"{"type":"registration","payload":{"name":"notes","description":"Keeps notes."}}"#,
    r#"{"payload":{"description":"d","name":"n"},"type":"registration"}"#,
    r#"{"type":"registration","payload":{"name":"1","description":"d"}}"#,
    r#"{"type":"registration","payload":{"name":"a","description":""}}"#,
    r#"{"type":"registration","payload":null}"#,
    r#"{"type":"response","payload":{"messageId":"m1","type":"ack","payload":{}}}"#,
    r#"{"type":"response","payload":{"messageId":"m1","type":"reject","payload":{"reason":"no"}}}"#,
    r#"{"type":"response","payload":{"messageId":"m2","type":"notification","payload":{}}}"#,
    r#"{"type":"response","payload":{"messageId":"m2","type":"later"}}"#,
    r#"{"type":"message","payload":{"id":"m1"}}"#,
    r#"{"type":"response","payload":null}"#,
    "junk",
];

/// What an event says, without its details.
#[derive(Debug, PartialEq)]
enum Told {
    Registration(String),
    Response(String, String),
    NotRegistered,
    UnknownType(String),
    Bad,
}

/// What has to happen: frames are dealt with in order, none before a registration is decided.
#[derive(Default)]
struct Model {
    inbox: VecDeque<String>,
    /// The name that waits to be decided.
    undecided: Option<String>,
    registered: bool,
    events: VecDeque<Told>,
    frames: VecDeque<String>,
}

impl Model {
    fn hear(&mut self, text: &str) {
        self.inbox.push_back(text.to_owned());
        self.go_on();
    }

    fn go_on(&mut self) {
        while self.undecided.is_none()
            && let Some(text) = self.inbox.pop_front()
        {
            self.take(&text);
        }
    }

    fn take(&mut self, text: &str) {
        let told = match ClientFrame::decode(text, &small()) {
            Ok(ClientFrame::Registration(_)) if self.registered => {
                return self.refused(RegistrationError::already_registered());
            }
            Ok(ClientFrame::Registration(payload)) => match validate::payload(payload.get()) {
                Ok(registration) => {
                    let name = String::from(registration.name);
                    self.undecided = Some(name.clone());
                    Told::Registration(name)
                }
                Err(error) => return self.refused(error),
            },
            Ok(ClientFrame::Response(response)) if self.registered => {
                let answer = response.answer.tag().to_owned();
                Told::Response(response.message_id.to_string(), answer)
            }
            Ok(ClientFrame::Response(_)) => Told::NotRegistered,
            Ok(ClientFrame::Unknown { tag, .. }) => Told::UnknownType(tag.into()),
            Err(_) => Told::Bad,
        };
        self.events.push_back(told);
    }

    fn refused(&mut self, error: RegistrationError) {
        self.frames
            .push_back(written(RegistrationResponse::refused(error)));
    }
}

fn written(answer: RegistrationResponse) -> String {
    codec::encode(&ServerFrame::RegistrationResponse(answer))
        .map_or_else(|_| String::new(), |text| text.as_str().to_owned())
}

#[derive(Default)]
struct Seen {
    model: Model,
    left: bool,
    closed: bool,
}

/// Runs a server's connection through operations: every frame is dealt with once and in order, every
/// registration has one answer, and nothing but refusals leaves before one is accepted.
pub fn server_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let mut conn = ServerConn::new(configured(script.byte_or_zero()), now);
    let mut seen = Seen::default();
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    seen.events(&mut conn);
    assert!(seen.closed, "the end is told");
    let id = client_id(1);
    assert_eq!(conn.accept(&id), Err(Refused::Closed), "after the end");
    inert(&mut conn, now);
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig::default().with_limits(small());
    if settings & 1 == 1 {
        config = config.with_registration_timeout(Some(Duration::from_secs(20)));
    }
    if settings & 2 == 2 {
        let often = KeepAlive::default().with_interval(Some(Duration::from_secs(7)));
        config = config.with_keep_alive(often.with_pong_timeout(Duration::from_secs(3)));
    }
    if settings & 4 == 4 {
        config = config.with_limits(small().with_max_message_rate(None));
    }
    config
}

fn operate(
    op: u8,
    script: &mut Script<'_>,
    conn: &mut ServerConn,
    seen: &mut Seen,
    now: &mut Instant,
) {
    let at = *now;
    match op % 16 {
        0 => seen.hear(conn, script.text(), at),
        1..=5 => {
            let text = script.pick(&FRAMES).copied().unwrap_or_default();
            seen.hear(conn, text, at);
        }
        // Read although the machine wants no input.
        6 => {
            let text = script.pick(&FRAMES).copied().unwrap_or_default();
            seen.force(conn, Incoming::Text(text), at);
        }
        7 if conn.wants_input() => {
            let text = script.pick(&FRAMES).copied().unwrap_or_default();
            seen.force(conn, Incoming::Binary(text.as_bytes()), at);
        }
        7 => {}
        8 | 9 => seen.accept(conn, script.byte_or_zero()),
        10 => seen.refuse(conn),
        11 => seen.send(conn, script.text()),
        12 => fire(conn, now, script.seconds()),
        13 => conn.handle_message(Incoming::Pong(b""), at),
        14 => conn.handle_timeout(at),
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.close_with(CloseFrame::new(CloseFrame::GOING_AWAY, "bye"), at),
            2 => conn.handle_disconnect(Disconnect::Eof, at),
            _ => conn.handle_message(Incoming::Ping(b"x"), at),
        },
    }
}

impl Seen {
    fn hear(&mut self, conn: &mut ServerConn, text: &str, now: Instant) {
        if conn.wants_input() {
            self.force(conn, Incoming::Text(text), now);
        }
    }

    fn force(&mut self, conn: &mut ServerConn, message: Incoming<'_>, now: Instant) {
        if conn.is_closed() {
            return conn.handle_message(message, now);
        }
        match message {
            Incoming::Text(text) => self.model.hear(text),
            Incoming::Binary(bytes) => {
                self.model
                    .hear(std::str::from_utf8(bytes).unwrap_or_default());
            }
            _ => {}
        }
        conn.handle_message(message, now);
    }

    fn accept(&mut self, conn: &mut ServerConn, number: u8) {
        let id = client_id(number.into());
        let name = self.model.undecided.clone();
        match (conn.accept(&id), name) {
            (Ok(()), Some(name)) => {
                let answer = RegistrationResponse::accepted(id.as_str(), &name);
                self.model.frames.push_back(written(answer));
                self.model.undecided = None;
                self.model.registered = true;
                self.model.go_on();
            }
            (Ok(()), None) => panic!("nobody asked"),
            (Err(refused), name) => declined(&refused, name.is_some(), conn),
        }
    }

    fn refuse(&mut self, conn: &mut ServerConn) {
        let name = self.model.undecided.clone();
        let error = RegistrationError::duplicate_name(name.as_deref().unwrap_or_default());
        match (conn.refuse(error.clone()), name) {
            (Ok(()), Some(_)) => {
                self.model.refused(error);
                self.model.undecided = None;
                self.model.go_on();
            }
            (Ok(()), None) => panic!("nobody asked"),
            (Err(refused), name) => declined(&refused, name.is_some(), conn),
        }
    }

    fn send(&mut self, conn: &mut ServerConn, text: &str) {
        let may = self.model.registered;
        match conn.send(Text::from(text.to_owned())) {
            Ok(()) => {
                assert!(may, "a message for nobody");
                self.model.frames.push_back(text.to_owned());
            }
            Err(Refused::NotReady) => assert!(!may, "the client is ready"),
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(_) => {}
        }
    }

    fn transmits(&mut self, conn: &mut ServerConn) {
        let mut texts = 0;
        while let Some(frame) = conn.poll_transmit() {
            assert!(!self.left, "a frame after the last one");
            match frame {
                Outgoing::Text(text) => {
                    texts += 1;
                    let expected = self.model.frames.pop_front();
                    assert_eq!(Some(text.as_str()), expected.as_deref(), "what leaves");
                }
                Outgoing::Ping(_) => {}
                Outgoing::Close(_) | Outgoing::Abort => self.left = true,
                _ => panic!("a server must send texts"),
            }
        }
        assert!(texts <= FEW, "frames that wait are bounded");
        if !conn.is_closed() {
            assert!(self.model.frames.is_empty(), "a frame is missing");
        }
    }

    fn events(&mut self, conn: &mut ServerConn) {
        while let Some(event) = conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            let told = match event {
                ServerEvent::Registration { registration } => {
                    Told::Registration(registration.name.as_str().to_owned())
                }
                ServerEvent::Response { response } => Told::Response(
                    response.message_id.as_str().to_owned(),
                    response.answer.tag().to_owned(),
                ),
                ServerEvent::Warning(Warning::NotRegistered) => Told::NotRegistered,
                ServerEvent::Warning(Warning::UnknownType { tag }) => {
                    Told::UnknownType(tag.as_str().to_owned())
                }
                ServerEvent::Warning(Warning::BadFrame(_)) => Told::Bad,
                ServerEvent::Closed(_) => {
                    self.closed = true;
                    continue;
                }
            };
            assert_eq!(Some(told), self.model.events.pop_front(), "what is told");
        }
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
        if !self.closed {
            assert!(self.model.events.is_empty(), "an event is missing");
            let expected = match (&self.model.undecided, self.model.registered) {
                (Some(_), _) => ServerState::AwaitVerdict,
                (None, true) => ServerState::Ready,
                (None, false) => ServerState::AwaitRegistration,
            };
            assert_eq!(conn.state(), expected, "where it stands");
        }
    }
}

/// Why a decision was not taken.
fn declined(refused: &Refused, was_asked: bool, conn: &ServerConn) {
    match refused {
        Refused::Closed => assert!(conn.is_closed(), "it is open"),
        Refused::UnknownId => assert!(!was_asked, "a registration waits"),
        _ => assert!(was_asked, "there is nothing to refuse"),
    }
}
