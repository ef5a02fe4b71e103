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
use rpc_core::{Json, Limits, Machine as _, Refused, Text};

use crate::machine::{Expected, Model, Run, drive, frequent_pings, name_of};
use crate::script::Script;

/// Small enough for short scripts to reach.
const FEW: usize = 6;

const PING: &str = r#"{"type":"PING"}"#;

/// What a client may send.
const FRAMES: &str = include_str!("../../frames/connectonion_client.txt");

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
        let is_inside = self.stage == Stage::Inside;
        match frame {
            ClientFrame::Pong => self.tell("Pong"),
            ClientFrame::Connect(connect) => {
                self.wish = connect.signs_commands();
                self.ask(Command::Connect, "Connect");
            }
            ClientFrame::SessionQuery(_) => self.tell("SessionQuery"),
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
                    (false, true, _) => self.tell("EmptyInput"),
                    (_, _, false) => self.object(&outside, "NotConnected"),
                    (false, ..) => self.object(&ErrorFrame::new(PROMPT_REQUIRED), "NoPrompt"),
                    (true, ..) => self.ask(Command::Input, "Input"),
                }
            }
            _ if !is_inside => self.object(&outside, "NotConnected"),
            ClientFrame::Response(_) => self.tell("Response"),
            ClientFrame::ModeChange(_) => self.tell("ModeChange"),
            ClientFrame::PromptUpdate(_) => self.tell("PromptUpdate"),
            ClientFrame::Interrupt => self.tell("Interrupt"),
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
        self.tell(event);
    }

    fn tell(&mut self, event: &str) {
        self.expected.events.push_back(event.to_owned());
    }

    fn object(&mut self, error: &ErrorFrame, event: &'static str) {
        self.tell(event);
        self.expected.leaves(error);
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
        config.handshake_timeout = Some(Duration::from_secs(20));
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
    const FRAMES: usize = FEW;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op % 17 {
            0 => {
                let text = run.script.text();
                self.hear(run, text);
            }
            1..=5 => {
                let text = run.script.pick_line(FRAMES);
                self.hear(run, text);
            }
            6 => self.accept(run),
            7 => self.gate(run),
            8 => self.welcome(run),
            9 => {
                let result = run.conn.begun();
                if run.took(&result, self.asked == Some(Command::Input)) {
                    self.answered();
                }
            }
            10 => {
                let ack = RuntimeInputAck::new("s", "r");
                let result = run.conn.acknowledge(&ack);
                if run.took(&result, self.asked == Some(Command::Input)) {
                    self.expected.leaves(&ack);
                    self.answered();
                }
            }
            11 => {
                let error = ErrorFrame::new("no");
                let result = run.conn.refuse(&error);
                if run.took(&result, self.asked.is_some()) {
                    self.expected.leaves(&error);
                    self.answered();
                }
            }
            12 => {
                let text = run.script.text();
                let result = run.conn.send(Text::from(text.to_owned()));
                if run.took(&result, self.stage == Stage::Inside) {
                    self.expected.frames.push_back(text.to_owned());
                }
            }
            13 => run.wait(),
            14 => run.pong(),
            15 => {
                let result = run.conn.resume();
                if run.took(&result, self.asked == Some(Command::Other)) {
                    self.answered();
                }
            }
            _ => match run.script.byte_or_zero() {
                3 => drop(run.conn.has_room()),
                4 => run.timeout(),
                other => run.happen(other),
            },
        }
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
            name => self.expected.reported(&name.to_owned()),
        }
    }

    fn all_told(&mut self, _: usize, run: &mut Run<'_, ServerConn>) {
        if !run.closed {
            assert!(self.expected.events.is_empty(), "an event is missing");
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
        run.force(text);
    }

    fn answered(&mut self) {
        self.asked = None;
        self.go_on();
    }

    fn accept(&mut self, run: &mut Run<'_, ServerConn>) {
        let connected = Connected::new("s", SessionState::New);
        let fits = matches!(self.asked, Some(Command::Connect | Command::Onboarded));
        let result = run.conn.accept(&connected);
        if run.took(&result, fits) {
            self.expected.leaves(&connected);
            self.stage = Stage::Inside;
            self.signs |= self.wish;
            self.answered();
        }
    }

    fn gate(&mut self, run: &mut Run<'_, ServerConn>) {
        let required = OnboardRequired::new("0x", &[]).expect("it encodes");
        let fits = self.asked == Some(Command::Connect) && self.stage != Stage::Inside;
        let result = run.conn.gate(Address::from_bytes([7; 32]), &required);
        if run.took(&result, fits) {
            self.expected.leaves(&required);
            self.stage = Stage::Gated;
            self.stash = self.wish;
            self.answered();
        }
    }

    fn welcome(&mut self, run: &mut Run<'_, ServerConn>) {
        let success = OnboardSuccess::new("0x", "contact", "hello");
        let result = run.conn.welcome(&success);
        if run.took(&result, self.asked == Some(Command::Onboard)) {
            self.expected.leaves(&success);
            self.stage = Stage::Outside;
            self.is_newcomer = true;
            self.wish = self.stash;
            self.ask(Command::Onboarded, "Onboarded");
        }
    }
}
