//! The server's machine.

use std::collections::VecDeque;
use std::time::Duration;

use rpc_core::{Incoming, Instant, Machine as _, Refused, Text};
use smarthole_proto::error::RegistrationError;
use smarthole_proto::frame::{ClientFrame, RegistrationResponse, ServerFrame};
use smarthole_proto::id::client_id;
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use smarthole_proto::validate;

use crate::machine::{Expected, Model, Run, Settings, small};

/// What has to happen: every frame is handled once and in order, none before a registration is
/// decided, every registration has one answer, and nothing but refusals leaves before one is accepted.
#[derive(Default)]
pub(super) struct Server {
    inbox: VecDeque<Vec<u8>>,
    /// The name that waits to be decided.
    undecided: Option<String>,
    registered: bool,
    expected: Expected<ServerEvent>,
}

impl Server {
    fn go_on(&mut self) {
        while self.undecided.is_none()
            && let Some(bytes) = self.inbox.pop_front()
        {
            let text = Incoming::Binary(&bytes).text();
            match text.unwrap_or_else(|| panic!("no frame")) {
                Ok(text) => self.take(text),
                Err(error) => self.warn(Warning::BadFrame(error)),
            }
        }
    }

    fn take(&mut self, text: &str) {
        match ClientFrame::decode(text, &small()) {
            Ok(ClientFrame::Registration(_)) if self.registered => {
                self.refused(RegistrationError::already_registered());
            }
            Ok(ClientFrame::Registration(payload)) => match validate::payload(payload.get()) {
                Ok(registration) => {
                    self.undecided = Some(registration.name.to_string());
                    self.expect(ServerEvent::Registration { registration });
                }
                Err(error) => self.refused(error),
            },
            Ok(ClientFrame::Response(response)) if self.registered => {
                self.expect(ServerEvent::Response { response });
            }
            Ok(ClientFrame::Response(_)) => self.warn(Warning::NotRegistered),
            Ok(ClientFrame::Unknown { tag, .. }) => self.warn(Warning::UnknownType { tag }),
            Ok(other) => panic!("no rule for {other:?}"),
            Err(error) => self.warn(Warning::BadFrame(error)),
        }
    }

    fn expect(&mut self, event: ServerEvent) {
        self.expected.events.push_back(event);
    }

    fn warn(&mut self, warning: Warning) {
        self.expect(ServerEvent::Warning(warning));
    }

    fn refused(&mut self, error: RegistrationError) {
        self.answers(RegistrationResponse::refused(error));
    }

    fn answers(&mut self, answer: RegistrationResponse) {
        let frame = ServerFrame::RegistrationResponse(answer);
        self.expected.leaves(&frame);
    }

    fn arrives(&mut self, bytes: &[u8], conn: &ServerConn) {
        if !conn.is_closed() {
            self.inbox.push_back(bytes.to_vec());
            self.go_on();
        }
    }
}

impl Model for Server {
    type Conn = ServerConn;
    const OWN: u8 = 6;
    const LINES: &'static str = include_str!("../../frames/smarthole_client.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ServerConn) {
        let mut config = ServerConfig {
            limits: small(),
            handshake_timeout: settings.has(1).then_some(Duration::from_secs(20)),
            ..ServerConfig::default()
        };
        settings.pings(2, &mut config.keep_alive);
        settings.removes(4, &mut config.limits.max_message_rate);
        (Self::default(), ServerConn::new(config, now))
    }

    fn receive(&mut self, text: &str, run: &mut Run<'_, ServerConn>) {
        if run.conn.wants_input() {
            self.arrives(text.as_bytes(), &run.conn);
            run.force(text);
        }
    }

    fn receive_binary(&mut self, bytes: &[u8], run: &mut Run<'_, ServerConn>) {
        if run.conn.wants_input() {
            self.arrives(bytes, &run.conn);
            run.receive_binary(bytes);
        }
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op {
            // Read although the machine wants no input.
            0 => {
                let text = self.line(run);
                self.arrives(text.as_bytes(), &run.conn);
                run.force(&text);
            }
            1 if run.conn.wants_input() => {
                let text = self.line(run);
                self.receive_binary(text.as_bytes(), run);
            }
            1 => {}
            2 | 3 => {
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
            4 => {
                let name = self.undecided.as_deref().unwrap_or_default();
                let error = RegistrationError::duplicate_name(name);
                let result = run.conn.refuse(error.clone());
                if run.took(&result, self.undecided.is_some()) {
                    self.undecided = None;
                    self.refused(error);
                    self.go_on();
                }
            }
            _ => {
                let text = run.script.text();
                let result = run.conn.send(Text::from(text.to_owned()));
                if run.took(&result, self.registered) {
                    self.expected.frames.push_back(text.to_owned());
                }
            }
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
            self.expected.event(&event);
        }
    }

    fn all_taken(&mut self, _: usize, run: &mut Run<'_, ServerConn>) {
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

    fn late(&mut self, conn: &mut ServerConn, _: Instant) -> Option<Refused> {
        conn.accept(&client_id(1)).err()
    }
}
