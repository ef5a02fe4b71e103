//! Body of the fuzz target of the server machine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, assert_inert, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{CloseFrame, Disconnect, Incoming, Limits, Machine, Outgoing, Refused, Text};

use crate::auth::AuthError;
use crate::error::{refusal, unknown_type};
use crate::frame::{
    ClientFrame, Connected, ErrorFrame, OnboardRequired, OnboardSuccess, RuntimeInputAck,
    SessionState, Signed,
};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED};
use crate::server::{ServerConfig, ServerConn, ServerEvent, ServerState, Warning};
use crate::{codec, limits};

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

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Outside,
    Gated,
    Inside,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Connect,
    Onboard,
    Onboarded,
    Input,
}

/// What has to happen: frames are dealt with in order, none before what came before it is answered.
struct Model {
    inbox: VecDeque<String>,
    stage: Stage,
    asked: Option<Asked>,
    is_newcomer: bool,
    /// The client signs its commands; or would, by its last CONNECT and by the one at the gate.
    signs: bool,
    wish: bool,
    stash: bool,
    events: VecDeque<&'static str>,
    frames: VecDeque<String>,
}

impl Model {
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
                self.ask(Asked::Connect, "Connect");
            }
            ClientFrame::SessionQuery(_) => self.events.push_back("SessionQuery"),
            ClientFrame::Unknown { tag, .. } => self.object(&unknown_type(&tag), "UnknownType"),
            ClientFrame::OnboardSubmit(_) => match self.stage {
                Stage::Gated => self.ask(Asked::Onboard, "Onboard"),
                Stage::Outside => self.object(&outside, "NotConnected"),
                Stage::Inside => {
                    self.object(&ErrorFrame::new("onboarding is not required"), "NotGated");
                }
            },
            command if self.signs && is_inside => self.take_signed(text, &command),
            ClientFrame::Admin(_) => self.events.push_back("Admin"),
            ClientFrame::Input(input) => {
                let signed = input.signed.text("prompt").unwrap_or_default();
                let has_prompt =
                    input.prompt.is_some_and(|it| !it.is_empty()) || !signed.is_empty();
                match (has_prompt, is_newcomer, is_inside) {
                    (false, true, _) => self.events.push_back("EmptyInput"),
                    (_, _, false) => self.object(&outside, "NotConnected"),
                    (false, ..) => self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt"),
                    (true, ..) => self.ask(Asked::Input, "Input"),
                }
            }
            _ if !is_inside => self.object(&outside, "NotConnected"),
            ClientFrame::Response(_) => self.events.push_back("Response"),
            ClientFrame::ModeChange(_) => self.events.push_back("ModeChange"),
            ClientFrame::PromptUpdate(_) => self.events.push_back("PromptUpdate"),
            ClientFrame::Interrupt => self.events.push_back("Interrupt"),
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
            () if matches!(frame, ClientFrame::Admin(_)) => return self.events.push_back("Admin"),
            () => {
                let payload = signed.payload.as_ref().map_or("", |payload| payload.get());
                return match ClientFrame::decode(payload, &small()) {
                    Err(error) => self.object(&refusal(payload, &error), "Decode"),
                    Ok(_) if is_input && word("prompt").is_empty() => {
                        self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt");
                    }
                    Ok(_) if is_input => self.ask(Asked::Input, "Signed"),
                    Ok(_) => self.events.push_back("Signed"),
                };
            }
        };
        let error = ErrorFrame::new(wrong.to_string());
        let error = if is_input {
            error.with_code(INPUT_REFUSED)
        } else {
            error
        };
        self.object(&error, "Unsigned");
    }

    fn ask(&mut self, asked: Asked, event: &'static str) {
        self.asked = Some(asked);
        self.events.push_back(event);
    }

    fn object(&mut self, error: &ErrorFrame, event: &'static str) {
        self.events.push_back(event);
        self.frames.push_back(written(error));
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

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).map_or_else(|_| String::new(), |text| text.as_str().to_owned())
}

fn small() -> Limits {
    limits::server_limits()
        .with_max_message_bytes(400)
        .with_max_outbox_frames(FEW)
        .with_max_events(FEW)
}

struct Seen {
    model: Model,
    /// The client was sent away or is gone.
    left: bool,
    closed: bool,
}

/// Runs a server's connection through operations: every frame is dealt with once and in order, what
/// has to be answered is answered before anything follows, nothing but answers leaves before a client
/// is in, and nothing that a client sends ends its connection but too much of it.
pub fn server_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let mut conn = ServerConn::new(configured(script.byte_or_zero()), now);
    let mut seen = Seen {
        model: Model {
            inbox: VecDeque::new(),
            stage: Stage::Outside,
            asked: None,
            is_newcomer: false,
            signs: false,
            wish: false,
            stash: false,
            events: VecDeque::new(),
            frames: VecDeque::new(),
        },
        left: false,
        closed: false,
    };
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
    assert_eq!(conn.begun(), Err(Refused::Closed), "after the end");
    assert_inert(&mut conn, now, &FRAMES);
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig::default().with_limits(small());
    if settings & 1 == 1 {
        config = config.with_connect_timeout(Some(Duration::from_secs(20)));
    }
    if settings & 2 == 2 {
        let often = KeepAlive::default().with_interval(Some(Duration::from_secs(7)));
        config = config.with_keep_alive(often.with_pong_timeout(Duration::from_secs(3)));
    }
    if settings & 4 == 4 {
        config = config.with_ping_interval(None);
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
        6 => seen.accept(conn),
        7 => seen.gate(conn),
        8 => seen.welcome(conn),
        9 => seen.begun(conn),
        10 => seen.acknowledge(conn),
        11 => seen.refuse(conn),
        12 => seen.send(conn, script.text()),
        13 => fire(conn, now, script.seconds()),
        14 => conn.handle_message(Incoming::Pong(b""), at),
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.close_with(CloseFrame::new(CloseFrame::GOING_AWAY, "bye"), at),
            2 => conn.handle_disconnect(Disconnect::Eof, at),
            3 => drop(conn.has_room()),
            _ => conn.handle_timeout(at),
        },
    }
}

impl Seen {
    fn hear(&mut self, conn: &mut ServerConn, text: &str, now: Instant) {
        if !conn.is_closed() {
            self.model.inbox.push_back(text.to_owned());
            self.model.go_on();
        }
        conn.handle_message(Incoming::Text(text), now);
    }

    /// A verdict that fits what was asked has to be taken, and no other.
    fn verdict(
        &mut self,
        conn: &ServerConn,
        told: &Result<(), Refused>,
        fits: bool,
        frame: Option<String>,
    ) -> bool {
        match told {
            Ok(()) => {
                assert!(fits, "nobody asked");
                self.model.frames.extend(frame);
                true
            }
            Err(Refused::Closed) => {
                assert!(conn.is_closed(), "it is open");
                false
            }
            Err(Refused::UnknownId) => {
                assert!(!fits || conn.is_closed(), "an answer is awaited");
                false
            }
            Err(_) => false,
        }
    }

    fn answered(&mut self) {
        self.model.asked = None;
        self.model.go_on();
    }

    fn accept(&mut self, conn: &mut ServerConn) {
        let connected = Connected::new("s", SessionState::New);
        let fits = matches!(self.model.asked, Some(Asked::Connect | Asked::Onboarded));
        let told = &conn.accept(&connected);
        if self.verdict(conn, told, fits, Some(written(&connected))) {
            self.model.stage = Stage::Inside;
            self.model.signs |= self.model.wish;
            self.answered();
        }
    }

    fn gate(&mut self, conn: &mut ServerConn) {
        let Ok(required) = OnboardRequired::new("0x", &[]) else {
            return;
        };
        let fits = self.model.asked == Some(Asked::Connect) && self.model.stage != Stage::Inside;
        let told = &conn.gate([7; 32].into(), &required);
        if self.verdict(conn, told, fits, Some(written(&required))) {
            self.model.stage = Stage::Gated;
            self.model.stash = self.model.wish;
            self.answered();
        }
    }

    fn welcome(&mut self, conn: &mut ServerConn) {
        let success = OnboardSuccess::new("0x", "contact", "hello");
        let fits = self.model.asked == Some(Asked::Onboard);
        let told = &conn.welcome(&success);
        if self.verdict(conn, told, fits, Some(written(&success))) {
            self.model.stage = Stage::Outside;
            self.model.is_newcomer = true;
            self.model.wish = self.model.stash;
            self.model.ask(Asked::Onboarded, "Onboarded");
        }
    }

    fn begun(&mut self, conn: &mut ServerConn) {
        let fits = self.model.asked == Some(Asked::Input);
        let told = &conn.begun();
        if self.verdict(conn, told, fits, None) {
            self.answered();
        }
    }

    fn acknowledge(&mut self, conn: &mut ServerConn) {
        let ack = RuntimeInputAck::new("s", "r");
        let fits = self.model.asked == Some(Asked::Input);
        let told = &conn.acknowledge(&ack);
        if self.verdict(conn, told, fits, Some(written(&ack))) {
            self.answered();
        }
    }

    fn refuse(&mut self, conn: &mut ServerConn) {
        let error = ErrorFrame::new("no");
        let fits = self.model.asked.is_some();
        let told = &conn.refuse(&error);
        if self.verdict(conn, told, fits, Some(written(&error))) {
            self.answered();
        }
    }

    fn send(&mut self, conn: &mut ServerConn, text: &str) {
        let may = self.model.stage == Stage::Inside;
        match conn.send(Text::from(text.to_owned())) {
            Ok(()) => {
                assert!(may, "an event for nobody");
                self.model.frames.push_back(text.to_owned());
            }
            Err(Refused::NotReady) => assert!(!may, "the client is in"),
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
                    let is_next = self
                        .model
                        .frames
                        .front()
                        .is_some_and(|it| it == text.as_str());
                    if is_next {
                        self.model.frames.pop_front();
                    } else {
                        assert_eq!(text.as_str(), PING, "what leaves");
                    }
                }
                Outgoing::Close(_) | Outgoing::Abort => self.left = true,
                Outgoing::Binary(_) => panic!("a server sends texts"),
                _ => {}
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
                ServerEvent::Connect { .. } => "Connect",
                ServerEvent::Onboard { identity, .. } => {
                    assert_eq!(identity, [7; 32].into(), "who is at the gate");
                    "Onboard"
                }
                ServerEvent::Onboarded { .. } => "Onboarded",
                ServerEvent::Input { .. } => "Input",
                ServerEvent::Response { .. } => "Response",
                ServerEvent::ModeChange { .. } => "ModeChange",
                ServerEvent::PromptUpdate { .. } => "PromptUpdate",
                ServerEvent::Interrupt => "Interrupt",
                ServerEvent::SessionQuery { .. } => "SessionQuery",
                ServerEvent::Admin { .. } => "Admin",
                ServerEvent::Signed { .. } => "Signed",
                ServerEvent::Pong => "Pong",
                ServerEvent::Writable => continue,
                ServerEvent::Warning(Warning::BadFrame(_) | Warning::Binary) => "Decode",
                ServerEvent::Warning(Warning::NotConnected { .. }) => "NotConnected",
                ServerEvent::Warning(Warning::NoPrompt) => "NoPrompt",
                ServerEvent::Warning(Warning::EmptyInput) => "EmptyInput",
                ServerEvent::Warning(Warning::NotGated) => "NotGated",
                ServerEvent::Warning(Warning::Unsigned(_)) => "Unsigned",
                ServerEvent::Warning(Warning::UnknownType { .. }) => "UnknownType",
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
            assert_eq!(conn.state(), self.model.state(), "where it stands");
        }
    }
}
