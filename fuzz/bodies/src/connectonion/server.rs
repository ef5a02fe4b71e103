//! The server's machine.

use std::collections::VecDeque;
use std::time::Duration;

use connectonion_proto::auth::AuthError;
use connectonion_proto::error::{refusal, unknown_type};
use connectonion_proto::frame::{
    ClientFrame, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck,
    SessionState, Signed,
};
use connectonion_proto::limits;
use connectonion_proto::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED};
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use rpc_core::{CloseFrame, Disconnect, Incoming, Json, Limits, Machine as _, Refused, Text};
use serde::Serialize;

use crate::frames::written;
use crate::machine::{Model, Run, drive, frequent_pings};
use crate::script::Script;

/// Small enough for short scripts to reach.
const FEW: usize = 6;

const PING: &str = r#"{"type":"PING"}"#;

/// What a client may send.
const FRAMES: [&str; 20] = [
    r#"{"type":"CONNECT","session_id":"s"}"#,
    r#"{"type":"CONNECT","payload":{"timestamp":1},"from":"0x","signature":"0"}"#,
    r#"{"type":"CONNECT","payload":{"signed_commands":1},"from":"0x","signature":"0"}"#,
    r#"{"type":"INPUT","payload":{"type":"INPUT","prompt":"hi","to":"0x","nonce":"n"},"signature":"0"}"#,
    r#"{"type":"INPUT","payload":{"type":"INTERRUPT","to":"0x","nonce":"n"},"signature":"0"}"#,
    r#"{"type":"INTERRUPT","payload":{"type":"INTERRUPT","to":"0x","nonce":"n"},"signature":"0"}"#,
    r#"{"type":"INPUT","prompt":"hi"}"#,
    r#"{"type":"INPUT","prompt":""}"#,
    r#"{"type":"INPUT","payload":{"prompt":"signed"}}"#,
    r#"{"type":"PONG"}"#,
    r#"{"type":"ONBOARD_SUBMIT","payload":{"invite_code":"c"}}"#,
    r#"{"type":"APPROVAL_RESPONSE","approved":true}"#,
    r#"{"type":"mode_change","mode":"plan"}"#,
    r#"{"type":"prompt_update","prompt":"p"}"#,
    r#"{"type":"INTERRUPT"}"#,
    r#"{"type":"SESSION_STATUS","session":{"session_id":"s"}}"#,
    r#"{"type":"ADMIN_BLOCK","payload":{"client_id":"0x"}}"#,
    r#"{"type":"SEAL"}"#,
    r#"{"type":"INPUT","prompt":7}"#,
    "junk",
];

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
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

/// What has to happen: frames are handled in order, none before what came before it is answered.
#[derive(Default)]
struct Server {
    inbox: VecDeque<String>,
    stage: Stage,
    asked: Option<Command>,
    is_newcomer: bool,
    /// The client signs its commands; or would, by its last CONNECT and by the one at the gate.
    signs: bool,
    wish: bool,
    stash: bool,
    events: VecDeque<&'static str>,
    frames: VecDeque<String>,
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
            Err(error) => return self.object(&refusal(text, &error), "Decode"),
        };
        let is_newcomer = match frame {
            ClientFrame::Pong => self.is_newcomer,
            _ => std::mem::take(&mut self.is_newcomer),
        };
        let outside = ErrorFrame::new(AUTHENTICATE_FIRST);
        let is_inside = self.stage == Stage::Inside;
        match frame {
            ClientFrame::Pong => self.events.push_back("Pong"),
            ClientFrame::Connect(connect) => {
                self.wish = connect.signs_commands();
                self.ask(Command::Connect, "Connect");
            }
            ClientFrame::SessionQuery(_) => self.events.push_back("SessionQuery"),
            ClientFrame::Unknown { tag, .. } => self.object(&unknown_type(&tag), "UnknownType"),
            ClientFrame::OnboardSubmit(_) => match self.stage {
                Stage::Gated => self.ask(Command::Onboard, "Onboard"),
                Stage::Outside => self.object(&outside, "NotConnected"),
                Stage::Inside => {
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
                    (false, true, _) => self.events.push_back("EmptyInput"),
                    (_, _, false) => self.object(&outside, "NotConnected"),
                    (false, ..) => self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt"),
                    (true, ..) => self.ask(Command::Input, "Input"),
                }
            }
            _ if !is_inside => self.object(&outside, "NotConnected"),
            ClientFrame::Response(_) => self.events.push_back("Response"),
            ClientFrame::ModeChange(_) => self.events.push_back("ModeChange"),
            ClientFrame::PromptUpdate(_) => self.events.push_back("PromptUpdate"),
            ClientFrame::Interrupt => self.events.push_back("Interrupt"),
            other => panic!("no rule for {other:?}"),
        }
    }

    /// A command, of a client that signs them.
    fn take_signed(&mut self, text: &str, frame: &ClientFrame) {
        let Ok(signed) = rpc_core::json::decode::<Signed>(text, &small()) else {
            return self.object(&ErrorFrame::new(""), "Decode");
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
                    Err(error) => self.object(&refusal(payload, &error), "Decode"),
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
        self.events.push_back(event);
    }

    fn leaves(&mut self, frame: &impl Serialize) {
        self.frames.push_back(written(frame).as_str().to_owned());
    }

    fn object(&mut self, error: &ErrorFrame, event: &'static str) {
        self.events.push_back(event);
        self.leaves(error);
    }

    const fn state(&self) -> ServerState {
        match (self.asked, self.stage) {
            (Some(_), _) => ServerState::AwaitVerdict,
            (None, Stage::Outside) => ServerState::AwaitConnect,
            (None, Stage::Gated) => ServerState::Gated,
            (None, Stage::Inside) => ServerState::Ready,
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

/// Runs a server's connection through operations: every frame is handled once and in order, what
/// has to be answered is answered before anything follows, nothing but answers leaves before a client
/// is in, and nothing that a client sends ends its connection but too much of it.
pub fn server_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let (_, mut run) = drive(Server::default(), script, |now| {
        ServerConn::new(configured(settings), now)
    });
    assert_eq!(run.conn.begun(), Err(Refused::Closed), "after the end");
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig::default();
    if settings & 1 == 1 {
        config.connect_timeout = Some(Duration::from_secs(20));
    }
    if settings & 2 == 2 {
        config.keep_alive = frequent_pings();
    }
    config.ping_interval = config.ping_interval.filter(|_| settings & 4 == 0);
    config.limits = small();
    config
}

impl Model for Server {
    type Conn = ServerConn;
    const TEXTS: &'static [&'static str] = &FRAMES;
    const MAY_ABORT: bool = true;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let now = run.now;
        let conn = &mut run.conn;
        match op % 17 {
            0 => {
                let text = run.script.text();
                self.hear(run, text);
            }
            1..=5 => {
                let text = run.script.pick_text(&FRAMES);
                self.hear(run, text);
            }
            6 => self.accept(conn),
            7 => self.gate(conn),
            8 => self.welcome(conn),
            9 => {
                let fits = self.asked == Some(Command::Input);
                let told = conn.begun();
                if self.verdict(conn, &told, fits) {
                    self.answered();
                }
            }
            10 => {
                let ack = RuntimeInputAck::new("s", "r");
                let fits = self.asked == Some(Command::Input);
                let told = conn.acknowledge(&ack);
                if self.verdict(conn, &told, fits) {
                    self.leaves(&ack);
                    self.answered();
                }
            }
            11 => {
                let error = ErrorFrame::new("no");
                let told = conn.refuse(&error);
                if self.verdict(conn, &told, self.asked.is_some()) {
                    self.leaves(&error);
                    self.answered();
                }
            }
            12 => self.send(conn, run.script.text()),
            13 => run.wait(),
            14 => run.pong(),
            15 => {
                let fits = self.asked == Some(Command::Other);
                let told = conn.resume();
                if self.verdict(conn, &told, fits) {
                    self.answered();
                }
            }
            _ => match run.script.byte_or_zero() {
                0 => run.conn.close(now),
                1 => {
                    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "bye");
                    run.conn.close_with(frame, now);
                }
                2 => run.disconnect(Disconnect::Eof),
                3 => drop(run.conn.has_room()),
                _ => run.timeout(),
            },
        }
    }

    fn sent(&mut self, text: &str, _: &ServerConn) {
        if self.frames.front().is_some_and(|next| next == text) {
            self.frames.pop_front();
        } else {
            assert_eq!(text, PING, "what leaves");
        }
    }

    fn all_sent(&mut self, texts: usize, conn: &ServerConn) {
        assert!(texts <= FEW, "frames that wait are bounded");
        let none = self.frames.is_empty();
        assert!(none || conn.is_closed(), "a frame is missing");
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        let told = match event {
            ServerEvent::Connect(..) => "Connect",
            ServerEvent::Onboard { identity, .. } => {
                assert_eq!(
                    identity,
                    connectonion_proto::auth::Address::from_bytes([7; 32]),
                    "who is at the gate"
                );
                "Onboard"
            }
            ServerEvent::Onboarded { .. } => "Onboarded",
            ServerEvent::Input(..) => "Input",
            ServerEvent::Response(..) => "Response",
            ServerEvent::ModeChange(..) => "ModeChange",
            ServerEvent::PromptUpdate(..) => "PromptUpdate",
            ServerEvent::Interrupt => "Interrupt",
            ServerEvent::SessionQuery(..) => "SessionQuery",
            ServerEvent::Admin(..) => "Admin",
            ServerEvent::Signed { .. } => "Signed",
            ServerEvent::Pong => "Pong",
            ServerEvent::Writable | ServerEvent::Closed(_) => return,
            ServerEvent::Warning(Warning::BadFrame(_) | Warning::Binary) => "Decode",
            ServerEvent::Warning(Warning::NotConnected { .. }) => "NotConnected",
            ServerEvent::Warning(Warning::NoPrompt) => "NoPrompt",
            ServerEvent::Warning(Warning::EmptyInput) => "EmptyInput",
            ServerEvent::Warning(Warning::NotGated) => "NotGated",
            ServerEvent::Warning(Warning::Unsigned { .. }) => "Unsigned",
            ServerEvent::Warning(Warning::UnknownType { .. }) => "UnknownType",
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
            assert_eq!(run.conn.state(), self.state(), "where it stands");
        }
    }
}

impl Server {
    fn hear(&mut self, run: &mut Run<'_, ServerConn>, text: &str) {
        if !run.conn.is_closed() {
            self.inbox.push_back(text.to_owned());
            self.go_on();
        }
        // It is read although the machine wants no input.
        run.conn.handle_message(Incoming::Text(text), run.now);
    }

    /// Whether a verdict was taken: one that fits what was asked has to be, and no other.
    fn verdict(&self, conn: &ServerConn, told: &Result<(), Refused>, fits: bool) -> bool {
        match told {
            Ok(()) => assert!(fits, "nobody asked"),
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(Refused::UnknownId) => {
                assert!(!fits || conn.is_closed(), "an answer is awaited");
            }
            Err(_) => {}
        }
        told.is_ok()
    }

    fn answered(&mut self) {
        self.asked = None;
        self.go_on();
    }

    fn accept(&mut self, conn: &mut ServerConn) {
        let connected = Connected::new("s", SessionState::New);
        let fits = matches!(self.asked, Some(Command::Connect | Command::Onboarded));
        let told = conn.accept(&connected);
        if self.verdict(conn, &told, fits) {
            self.leaves(&connected);
            self.stage = Stage::Inside;
            self.signs |= self.wish;
            self.answered();
        }
    }

    fn gate(&mut self, conn: &mut ServerConn) {
        let required = OnboardRequired::new("0x", &[]).expect("it encodes");
        let fits = self.asked == Some(Command::Connect) && self.stage != Stage::Inside;
        let told = conn.gate(
            connectonion_proto::auth::Address::from_bytes([7; 32]),
            &required,
        );
        if self.verdict(conn, &told, fits) {
            self.leaves(&required);
            self.stage = Stage::Gated;
            self.stash = self.wish;
            self.answered();
        }
    }

    fn welcome(&mut self, conn: &mut ServerConn) {
        let success = OnboardSuccess::new("0x", "contact", "hello");
        let fits = self.asked == Some(Command::Onboard);
        let told = conn.welcome(&success);
        if self.verdict(conn, &told, fits) {
            self.leaves(&success);
            self.stage = Stage::Outside;
            self.is_newcomer = true;
            self.wish = self.stash;
            self.ask(Command::Onboarded, "Onboarded");
        }
    }

    fn send(&mut self, conn: &mut ServerConn, text: &str) {
        let may = self.stage == Stage::Inside;
        match conn.send(Text::from(text.to_owned())) {
            Ok(()) => {
                assert!(may, "an event for nobody");
                self.frames.push_back(text.to_owned());
            }
            Err(Refused::NotReady) => assert!(!may, "the client is in"),
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(_) => {}
        }
    }
}
