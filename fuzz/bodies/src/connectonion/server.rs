//! The server's machine.

use std::collections::VecDeque;
use std::time::Duration;

use connectonion_proto::auth::{Address, AuthError};
use connectonion_proto::error::{refusal, unknown_type};
use connectonion_proto::frame::{
    ClientFrame, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck,
    SessionState, Signed,
};
use connectonion_proto::limits;
use connectonion_proto::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED};
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState};
use rpc_core::{Instant, Json, Limits, Machine as _, Refused, Text};
use serde::Serialize;

use crate::frames::written;
use crate::machine::{Expected, Model, Run, Settings};

/// Small enough for short scripts to reach.
const FEW: usize = 6;

const PING: &str = r#"{"type":"PING"}"#;

#[derive(Clone, Copy, Default, PartialEq)]
enum Phase {
    #[default]
    Outside,
    Gated,
    Inside,
}

#[derive(Clone, Copy, PartialEq)]
enum Command {
    Connect,
    Onboard,
    Onboarded,
    Input,
    Other,
}

/// What has to happen: every frame is handled once and in order, what has to be answered is answered
/// before anything follows, nothing but answers leaves before a client is in, and nothing that a
/// client sends ends its connection but too much of it.
#[derive(Default)]
pub(super) struct Server {
    inbox: VecDeque<String>,
    phase: Phase,
    asked: Option<Command>,
    is_newcomer: bool,
    /// The client signs its commands; or would, by its last CONNECT and by the one at the gate.
    signs: bool,
    wish: bool,
    stash: bool,
    expected: Expected<String>,
}

impl Server {
    fn go_on(&mut self) {
        while self.asked.is_none()
            && let Some(text) = self.inbox.pop_front()
        {
            self.take(&text);
        }
    }

    fn take(&mut self, text: &str) {
        let frame = match ClientFrame::decode(text, &small()) {
            Ok(frame) => frame,
            Err(error) => return self.object(&refusal(text, &error), "BadFrame"),
        };
        let is_newcomer = match frame {
            ClientFrame::Pong => self.is_newcomer,
            _ => std::mem::take(&mut self.is_newcomer),
        };
        let outside = ErrorFrame::new(AUTHENTICATE_FIRST);
        let is_inside = self.phase == Phase::Inside;
        match frame {
            ClientFrame::Pong => self.expect("Pong"),
            ClientFrame::Connect(connect) => {
                self.wish = connect.signs_commands();
                self.ask(Command::Connect, "Connect");
            }
            ClientFrame::SessionQuery(_) => self.expect("SessionQuery"),
            ClientFrame::Unknown { tag, .. } => self.object(&unknown_type(&tag), "UnknownType"),
            ClientFrame::OnboardSubmit(_) => match self.phase {
                Phase::Gated => self.ask(Command::Onboard, "Onboard"),
                Phase::Outside => self.object(&outside, "NotConnected"),
                Phase::Inside => {
                    self.object(&ErrorFrame::new("onboarding is not required"), "NotGated");
                }
            },
            command if self.signs && is_inside => self.take_signed(text, &command),
            ClientFrame::Admin(_) => self.ask(Command::Other, "Admin"),
            ClientFrame::Input(input) => {
                let signed = input.signed.text("prompt").unwrap_or_default();
                let has_prompt =
                    input.prompt.is_some_and(|it| !it.is_empty()) || !signed.is_empty();
                match (has_prompt, is_newcomer, is_inside) {
                    (false, true, _) => self.expect("EmptyInput"),
                    (_, _, false) => self.object(&outside, "NotConnected"),
                    (false, ..) => self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt"),
                    (true, ..) => self.ask(Command::Input, "Input"),
                }
            }
            _ if !is_inside => self.object(&outside, "NotConnected"),
            ClientFrame::Response(_) => self.expect("Response"),
            ClientFrame::ModeChange(_) => self.expect("ModeChange"),
            ClientFrame::PromptUpdate(_) => self.expect("PromptUpdate"),
            ClientFrame::Interrupt => self.expect("Interrupt"),
            other => panic!("no rule for {other:?}"),
        }
    }

    /// A command, of a client that signs them.
    fn take_signed(&mut self, text: &str, frame: &ClientFrame) {
        let Ok(signed) = rpc_core::json::decode::<Signed>(text, &small()) else {
            return self.object(&ErrorFrame::new(""), "BadFrame");
        };
        let word = |name| signed.text(name).unwrap_or_default();
        let is_signed = signed.payload.is_some() && signed.signature.is_some();
        let is_input = matches!(frame, ClientFrame::Input(_));
        let wrong = match () {
            () if !is_signed => AuthError::SignedCommandRequired,
            () if word("to").is_empty() => AuthError::WrongRecipient,
            () if word("type") != frame.name() => AuthError::WrongCommand,
            () if word("nonce").is_empty() => AuthError::NonceRequired,
            () if matches!(frame, ClientFrame::Admin(_)) => {
                return self.ask(Command::Other, "Admin");
            }
            () => {
                let payload = signed.payload.as_ref().map_or("", |payload| payload.get());
                return match ClientFrame::decode(payload, &small()) {
                    Err(error) => self.object(&refusal(payload, &error), "BadFrame"),
                    Ok(_) if is_input && word("prompt").is_empty() => {
                        self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt");
                    }
                    Ok(_) if is_input => self.ask(Command::Input, "Signed"),
                    Ok(_) => self.ask(Command::Other, "Signed"),
                };
            }
        };
        let mut error = ErrorFrame::new(wrong.to_string());
        error.code = is_input.then(|| Json::string(INPUT_REFUSED));
        self.object(&error, "Unsigned");
    }

    fn ask(&mut self, asked: Command, event: &'static str) {
        self.asked = Some(asked);
        self.expect(event);
    }

    fn expect(&mut self, event: &str) {
        self.expected.events.push_back(event.to_owned());
    }

    fn object(&mut self, error: &ErrorFrame, event: &'static str) {
        self.expect(event);
        self.expected.leaves(error);
    }

    const fn state(&self) -> ServerState {
        match (self.asked, self.phase) {
            (Some(_), _) => ServerState::AwaitVerdict,
            (None, Phase::Outside) => ServerState::AwaitConnect,
            (None, Phase::Gated) => ServerState::Gated,
            (None, Phase::Inside) => ServerState::Ready,
        }
    }
}

fn small() -> Limits {
    Limits {
        max_message_bytes: 400,
        max_outbox_frames: FEW,
        max_events: FEW,
        ..limits::defaults()
    }
}

impl Model for Server {
    type Conn = ServerConn;
    const OWN: u8 = 9;
    const FRAMES: usize = FEW;
    const LINES: &'static str = include_str!("../../frames/connectonion_client.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ServerConn) {
        let mut config = ServerConfig {
            limits: small(),
            ..ServerConfig::default()
        };
        if settings.has(1) {
            config.handshake_timeout = Some(Duration::from_secs(20));
        }
        settings.pings(2, &mut config.keep_alive);
        settings.removes(4, &mut config.ping_interval);
        (Self::default(), ServerConn::new(config, now))
    }

    fn receive(&mut self, text: &str, run: &mut Run<'_, ServerConn>) {
        if !run.conn.is_closed() {
            self.inbox.push_back(text.to_owned());
            self.go_on();
        }
        // It is read although the machine wants no input.
        run.force(text);
    }

    /// What is answered to bytes is not known here.
    fn receive_binary(&mut self, _: &[u8], _: &mut Run<'_, ServerConn>) {}

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let (conn, is_inside) = (&mut run.conn, self.phase == Phase::Inside);
        let waits = |command| self.asked == Some(command);
        let (result, fits, frame) = match op {
            0 => {
                let frame = Connected::new("s", SessionState::New);
                let fits = waits(Command::Connect) || waits(Command::Onboarded);
                (conn.accept(&frame), fits, text_of(&frame))
            }
            1 => {
                let frame = OnboardRequired::new("0x", &[]).expect("it encodes");
                let result = conn.gate(Address::from_bytes([7; 32]), &frame);
                let fits = waits(Command::Connect) && !is_inside;
                (result, fits, text_of(&frame))
            }
            2 => {
                let frame = OnboardSuccess::new("0x", "contact", "hello");
                let fits = waits(Command::Onboard);
                (conn.welcome(&frame), fits, text_of(&frame))
            }
            3 => (conn.begun(), waits(Command::Input), None),
            4 => {
                let frame = RuntimeInputAck::new("s", "r");
                let fits = waits(Command::Input);
                (conn.acknowledge(&frame), fits, text_of(&frame))
            }
            5 => {
                let frame = ErrorFrame::new("no");
                (conn.refuse(&frame), self.asked.is_some(), text_of(&frame))
            }
            6 => (conn.resume(), waits(Command::Other), None),
            7 => {
                let text = run.script.text().to_owned();
                let result = conn.send(Text::from(text.clone()));
                (result, is_inside, Some(text))
            }
            _ => {
                conn.has_room();
                return;
            }
        };
        if !run.took(&result, fits) {
            return;
        }
        self.expected.frames.extend(frame);
        if op < 7 {
            self.asked = None;
        }
        match op {
            0 => {
                self.phase = Phase::Inside;
                self.signs |= self.wish;
            }
            1 => {
                self.phase = Phase::Gated;
                self.stash = self.wish;
            }
            2 => {
                self.phase = Phase::Outside;
                self.is_newcomer = true;
                self.wish = self.stash;
                self.ask(Command::Onboarded, "Onboarded");
            }
            _ => {}
        }
        self.go_on();
    }

    fn sent(&mut self, text: &str, _: &ServerConn) {
        let is_known = self.expected.is_next(text) || text == PING;
        assert!(is_known, "what leaves: {text}");
    }

    fn all_sent(&mut self, conn: &ServerConn) {
        self.expected.all_sent(conn);
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        if let ServerEvent::Onboard { identity, .. } = &event {
            let is_it = *identity == Address::from_bytes([7; 32]);
            assert!(is_it, "who is at the gate");
        }
        match &*name_of(&event) {
            "Closed" | "Writable" => {}
            name => self.expected.event(&name.to_owned()),
        }
    }

    fn all_taken(&mut self, _: usize, run: &mut Run<'_, ServerConn>) {
        if !run.closed {
            assert!(self.expected.events.is_empty(), "an event is missing");
            assert_eq!(run.conn.state(), self.state(), "where it stands");
        }
    }

    fn late(&mut self, conn: &mut ServerConn, _: Instant) -> Option<Refused> {
        conn.begun().err()
    }
}

fn text_of(frame: &impl Serialize) -> Option<String> {
    Some(written(frame).as_str().to_owned())
}

/// The name of an event; of a warning, what it warns of.
fn name_of(event: &ServerEvent) -> String {
    let words = format!("{event:?}");
    let words = words.strip_prefix("Warning(").unwrap_or(&words);
    let mut words = words.split(|letter: char| !letter.is_alphanumeric());
    words.next().unwrap_or_default().to_owned()
}
