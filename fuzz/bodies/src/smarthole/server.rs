//! The server's machine.

use std::collections::VecDeque;
use std::time::Duration;

use rpc_core::{Incoming, Machine as _, Refused, Text};
use smarthole_proto::error::RegistrationError;
use smarthole_proto::frame::{ClientFrame, RegistrationResponse, ServerFrame};
use smarthole_proto::id::client_id;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use smarthole_proto::validate;

use crate::machine::{Expected, Model, Run, drive, frequent_pings, small};
use crate::script::Script;

/// What a client may send.
const FRAMES: &str = include_str!("../../frames/smarthole_client.txt");

/// What has to happen: frames are handled in order, none before a registration is decided.
#[derive(Default)]
struct Server {
    inbox: VecDeque<String>,
    /// The name that waits to be decided.
    undecided: Option<String>,
    registered: bool,
    expected: Expected<ServerEvent>,
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
        let reported = match ClientFrame::decode(text, &small()) {
            Ok(ClientFrame::Registration(_)) if self.registered => {
                return self.refused(RegistrationError::already_registered());
            }
            Ok(ClientFrame::Registration(payload)) => match validate::payload(payload.get()) {
                Ok(registration) => {
                    self.undecided = Some(registration.name.to_string());
                    ServerEvent::Registration { registration }
                }
                Err(error) => return self.refused(error),
            },
            Ok(ClientFrame::Response(response)) if self.registered => {
                ServerEvent::Response { response }
            }
            Ok(ClientFrame::Response(_)) => ServerEvent::Warning(Warning::NotRegistered),
            Ok(ClientFrame::Unknown { tag, .. }) => {
                ServerEvent::Warning(Warning::UnknownType { tag })
            }
            Ok(other) => panic!("no rule for {other:?}"),
            Err(error) => ServerEvent::Warning(Warning::BadFrame(error)),
        };
        self.expected.events.push_back(reported);
    }

    fn refused(&mut self, error: RegistrationError) {
        self.answers(RegistrationResponse::refused(error));
    }

    fn answers(&mut self, answer: RegistrationResponse) {
        let frame = ServerFrame::RegistrationResponse(answer);
        self.expected.leaves(&frame);
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
        handshake_timeout: (settings & 1 == 1).then_some(Duration::from_secs(20)),
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

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op % 16 {
            0 => {
                let text = run.script.text();
                self.hear(run, text);
            }
            1..=5 => {
                let text = run.script.pick_line(FRAMES);
                self.hear(run, text);
            }
            // Read although the machine wants no input.
            6 => {
                let text = run.script.pick_line(FRAMES);
                self.force(run, Incoming::Text(text));
            }
            7 if run.conn.wants_input() => {
                let text = run.script.pick_line(FRAMES);
                self.force(run, Incoming::Binary(text.as_bytes()));
            }
            7 => {}
            8 | 9 => self.accept(run),
            10 => self.refuse(run),
            11 => self.send(run),
            12 => run.wait(),
            13 => run.pong(),
            14 => run.timeout(),
            _ => match run.script.byte_or_zero() {
                // The model has to see them.
                3 => {}
                other => run.happen(other),
            },
        }
    }

    fn sent(&mut self, text: &str, _: &ServerConn) {
        assert!(self.expected.is_next(text), "what leaves: {text}");
    }

    fn all_sent(&mut self, conn: &ServerConn) {
        self.expected.all_sent(conn);
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        if !matches!(event, ServerEvent::Closed(_)) {
            self.expected.reported(&event);
        }
    }

    fn all_told(&mut self, _: usize, run: &mut Run<'_, ServerConn>) {
        if !run.closed {
            assert!(self.expected.events.is_empty(), "an event is missing");
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
        match message {
            Incoming::Text(text) => run.force(text),
            message => run.conn.handle_message(message, run.now),
        }
    }

    fn accept(&mut self, run: &mut Run<'_, ServerConn>) {
        let id = client_id(run.script.byte_or_zero().into());
        let result = run.conn.accept(&id);
        if run.took(&result, self.undecided.is_some())
            && let Some(name) = self.undecided.take()
        {
            self.answers(RegistrationResponse::accepted(id.as_str(), &name));
            self.registered = true;
            self.go_on();
        }
    }

    fn refuse(&mut self, run: &mut Run<'_, ServerConn>) {
        let name = self.undecided.as_deref().unwrap_or_default();
        let error = RegistrationError::duplicate_name(name);
        let result = run.conn.refuse(error.clone());
        if run.took(&result, self.undecided.is_some()) {
            self.undecided = None;
            self.refused(error);
            self.go_on();
        }
    }

    fn send(&mut self, run: &mut Run<'_, ServerConn>) {
        let text = run.script.text();
        let result = run.conn.send(Text::from(text.to_owned()));
        if run.took(&result, self.registered) {
            self.expected.frames.push_back(text.to_owned());
        }
    }
}
