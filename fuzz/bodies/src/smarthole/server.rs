//! The server's machine.

use std::collections::VecDeque;
use std::time::Duration;

use rpc_core::{CloseFrame, Disconnect, Incoming, Machine as _, Refused, Text};
use smarthole_proto::error::RegistrationError;
use smarthole_proto::frame::{ClientFrame, RegistrationResponse, ServerFrame};
use smarthole_proto::id::client_id;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use smarthole_proto::validate;

use super::TEXTS;
use crate::frames::written;
use crate::machine::{FEW, Model, Run, drive, frequent_pings, small};
use crate::script::Script;

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
enum Seen {
    Registration(String),
    Response(String, String),
    NotRegistered,
    UnknownType(String),
    Bad,
}

/// What has to happen: frames are handled in order, none before a registration is decided.
#[derive(Default)]
struct Server {
    inbox: VecDeque<String>,
    /// The name that waits to be decided.
    undecided: Option<String>,
    registered: bool,
    events: VecDeque<Seen>,
    frames: VecDeque<String>,
}

impl Server {
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
                    Seen::Registration(name)
                }
                Err(error) => return self.refused(error),
            },
            Ok(ClientFrame::Response(response)) if self.registered => {
                let answer = response.answer.tag().to_owned();
                Seen::Response(response.message_id.to_string(), answer)
            }
            Ok(ClientFrame::Response(_)) => Seen::NotRegistered,
            Ok(ClientFrame::Unknown { tag, .. }) => Seen::UnknownType(tag.into()),
            Ok(other) => panic!("no rule for {other:?}"),
            Err(_) => Seen::Bad,
        };
        self.events.push_back(told);
    }

    fn refused(&mut self, error: RegistrationError) {
        self.answers(RegistrationResponse::refused(error));
    }

    fn answers(&mut self, answer: RegistrationResponse) {
        let frame = ServerFrame::RegistrationResponse(answer);
        self.frames.push_back(written(&frame).as_str().to_owned());
    }
}

/// Runs a server's connection through operations: every frame is handled once and in order, every
/// registration has one answer, and nothing but refusals leaves before one is accepted.
pub fn server_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let (_, mut run) = drive(Server::default(), script, |now| {
        ServerConn::new(configured(settings), now)
    });
    let refused = run.conn.accept(&client_id(1));
    assert_eq!(refused, Err(Refused::Closed), "after the end");
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig {
        limits: small(),
        registration_timeout: (settings & 1 == 1).then_some(Duration::from_secs(20)),
        ..ServerConfig::default()
    };
    if settings & 2 == 2 {
        config.keep_alive = frequent_pings();
    }
    if settings & 4 == 4 {
        config.limits.max_message_rate = None;
    }
    config
}

impl Model for Server {
    type Conn = ServerConn;
    const TEXTS: &'static [&'static str] = TEXTS;
    const MAY_ABORT: bool = true;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let now = run.now;
        match op % 16 {
            0 => {
                let text = run.script.text();
                self.hear(run, text);
            }
            1..=5 => {
                let text = run.script.pick_text(&FRAMES);
                self.hear(run, text);
            }
            // Read although the machine wants no input.
            6 => {
                let text = run.script.pick_text(&FRAMES);
                self.force(run, Incoming::Text(text));
            }
            7 if run.conn.wants_input() => {
                let text = run.script.pick_text(&FRAMES);
                self.force(run, Incoming::Binary(text.as_bytes()));
            }
            7 => {}
            8 | 9 => self.accept(run),
            10 => self.refuse(&mut run.conn),
            11 => self.send(run),
            12 => run.wait(),
            13 => run.pong(),
            14 => run.timeout(),
            _ => match run.script.byte_or_zero() {
                0 => run.conn.close(now),
                1 => {
                    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "bye");
                    run.conn.close_with(frame, now);
                }
                2 => run.disconnect(Disconnect::Eof),
                _ => run.ping(),
            },
        }
    }

    fn sent(&mut self, text: &str, _: &ServerConn) {
        let expected = self.frames.pop_front();
        assert_eq!(Some(text), expected.as_deref(), "what leaves");
    }

    fn all_sent(&mut self, texts: usize, conn: &ServerConn) {
        assert!(texts <= FEW, "frames that wait are bounded");
        let none = self.frames.is_empty();
        assert!(none || conn.is_closed(), "a frame is missing");
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        let told = match event {
            ServerEvent::Registration { registration } => {
                Seen::Registration(registration.name.as_str().to_owned())
            }
            ServerEvent::Response { response } => Seen::Response(
                response.message_id.as_str().to_owned(),
                response.answer.tag().to_owned(),
            ),
            ServerEvent::Warning(Warning::NotRegistered) => Seen::NotRegistered,
            ServerEvent::Warning(Warning::UnknownType { tag }) => {
                Seen::UnknownType(tag.as_str().to_owned())
            }
            ServerEvent::Warning(Warning::BadFrame(_)) => Seen::Bad,
            ServerEvent::Closed(_) => return,
            other => panic!("no rule for {other:?}"),
        };
        assert_eq!(Some(told), self.events.pop_front(), "what is told");
    }

    fn is_end(event: &ServerEvent) -> bool {
        matches!(event, ServerEvent::Closed(_))
    }

    fn all_told(&mut self, _: usize, run: &mut Run<'_, ServerConn>) {
        if !run.closed {
            assert!(self.events.is_empty(), "an event is missing");
            let expected = match (&self.undecided, self.registered) {
                (Some(_), _) => ServerState::AwaitVerdict,
                (None, true) => ServerState::Ready,
                (None, false) => ServerState::AwaitRegistration,
            };
            assert_eq!(run.conn.state(), expected, "where it stands");
        }
    }
}

impl Server {
    fn hear(&mut self, run: &mut Run<'_, ServerConn>, text: &str) {
        if run.conn.wants_input() {
            self.force(run, Incoming::Text(text));
        }
    }

    fn force(&mut self, run: &mut Run<'_, ServerConn>, message: Incoming<'_>) {
        let text = match message {
            Incoming::Text(text) => Some(text),
            Incoming::Binary(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        if !run.conn.is_closed() {
            self.inbox.extend(text.map(str::to_owned));
            self.go_on();
        }
        run.conn.handle_message(message, run.now);
    }

    fn accept(&mut self, run: &mut Run<'_, ServerConn>) {
        let id = client_id(run.script.byte_or_zero().into());
        match (run.conn.accept(&id), self.undecided.take()) {
            (Ok(()), Some(name)) => {
                self.answers(RegistrationResponse::accepted(id.as_str(), &name));
                self.registered = true;
                self.go_on();
            }
            (result, name) => self.declined(&result, name, &run.conn),
        }
    }

    fn refuse(&mut self, conn: &mut ServerConn) {
        let name = self.undecided.take();
        let error = RegistrationError::duplicate_name(name.as_deref().unwrap_or_default());
        match (conn.refuse(error.clone()), name) {
            (Ok(()), Some(_)) => {
                self.refused(error);
                self.go_on();
            }
            (result, name) => self.declined(&result, name, conn),
        }
    }

    /// A decision was not taken: the name waits on, if there is one.
    fn declined(&mut self, result: &Result<(), Refused>, name: Option<String>, conn: &ServerConn) {
        match result {
            Ok(()) => panic!("nobody asked"),
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(Refused::UnknownId) => assert!(name.is_none(), "a registration waits"),
            Err(_) => assert!(name.is_some(), "there is nothing to refuse"),
        }
        self.undecided = name;
    }

    fn send(&mut self, run: &mut Run<'_, ServerConn>) {
        let text = run.script.text();
        let may = self.registered;
        match run.conn.send(Text::from(text.to_owned())) {
            Ok(()) => {
                assert!(may, "a message for nobody");
                self.frames.push_back(text.to_owned());
            }
            Err(Refused::NotReady) => assert!(!may, "the client is ready"),
            Err(Refused::Closed) => assert!(run.conn.is_closed(), "it is open"),
            Err(_) => {}
        }
    }
}
