//! Body of the fuzz target of the client machine.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, assert_inert, fire};
use rpc_core::{
    CallError, CallId, Delivery, Disconnect, Incoming, Limits, Machine, Outgoing, Refused,
};
use serde::Serialize;

use crate::client::{ClientConfig, ClientConn, ClientEvent, ClientState, Reply};
use crate::codec;
use crate::frame::{
    AdminAction, AdminRequest, Answer, ClientFrame, Connect, Input, Mode, ModeChange,
    OnboardSubmit, Response, ServerFrame, SessionQuery, Signed,
};

/// Small enough for short scripts to reach.
const FEW: usize = 4;

/// What a host may send.
const FRAMES: [&str; 24] = [
    r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
    r#"{"type":"CONNECTED","session_id":"s","status":"running"}"#,
    r#"{"type":"PING"}"#,
    r#"{"type":"user_input","content":"p","turn":1,"id":"u","ts":1.5,"session_id":"s"}"#,
    r#"{"type":"user_input","content":"p","runtime_input":true,"id":"r","ts":1.5}"#,
    r#"{"type":"thinking","content":"t","id":"t","ts":1.5,"session_id":"s"}"#,
    r#"{"type":"session_sync","session":{},"id":"y","ts":1.5}"#,
    r#"{"type":"mode_changed","mode":"plan","id":"m","ts":1.5}"#,
    r#"{"type":"ask_user","question":"?","id":"q","ts":1.5}"#,
    r#"{"type":"OUTPUT","result":"r","session_id":"s","duration_ms":1}"#,
    r#"{"type":"RUNTIME_INPUT_ACK","session_id":"s","id":"r"}"#,
    r#"{"type":"ONBOARD_REQUIRED","identity":"0x","methods":["invite_code"]}"#,
    r#"{"type":"ONBOARD_SUCCESS","identity":"0x","level":"contact"}"#,
    r#"{"type":"SESSION_STATUS","session_id":"s","status":"running"}"#,
    r#"{"type":"ADMIN_RESULT","action":"promote","success":true}"#,
    r#"{"type":"ERROR","message":"boom"}"#,
    r#"{"type":"ERROR","message":"prompt required"}"#,
    r#"{"type":"ERROR","message":"forbidden: admin only"}"#,
    r#"{"type":"ERROR","message":"unknown message type: 'mode_change'"}"#,
    r#"{"type":"ERROR","code":"RUNTIME_INPUT_REJECTED","message":"m","retryable":true}"#,
    r#"{"type":"ERROR","code":"STALE_ANSWER","message":"m","request_id":"q"}"#,
    r#"{"type":"LATER","x":[1]}"#,
    r#"{"type":"OUTPUT"}"#,
    "junk",
];

/// What is known of the client from outside.
#[derive(Default)]
struct Seen {
    /// What has to leave, in order.
    frames: VecDeque<String>,
    /// PINGs whose PONG has not left. It may be dropped when there is no room.
    pings: usize,
    /// What was asked and has no answer.
    asked: HashMap<CallId, Kind>,
    /// Answers to the agent's questions, by place in `frames` history: what must leave or come back.
    answers: VecDeque<String>,
    /// Queries that may leave behind answers.
    receipts: usize,
    connected: bool,
    left: bool,
    closed: bool,
    /// Something that was asked was given up.
    gave_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Input,
    Onboarding,
    Status,
    Admin,
}

/// Runs a client through operations: CONNECT comes first, what was taken leaves in order, everything
/// that was asked is answered once and by its kind, and every answer of the user leaves or comes back.
pub fn client_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let connect = Connect::new(Signed::none());
    let config = configured(script.byte_or_zero());
    let mut conn = ClientConn::new(config, &connect, 7, now);
    let mut seen = Seen::default();
    seen.sends(&connect);
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
        assert!(conn.in_flight() <= FEW + 1, "what is under way is bounded");
        let running = conn.state() == ClientState::Running;
        // A run that begins with a prompt that was given up is nobody's.
        let mine = !seen.gave_up;
        assert!(
            !running || !mine || conn.in_flight() > 0,
            "nothing is under way"
        );
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    seen.transmits(&mut conn);
    seen.events(&mut conn);
    assert!(seen.closed, "the end is told");
    assert!(seen.asked.is_empty(), "everything has ended");
    let refused = conn.input(&Input::new("p"), now);
    assert_eq!(refused, Err(Refused::Closed), "after the end");
    assert_inert(&mut conn, now, &FRAMES);
}

fn configured(settings: u8) -> ClientConfig {
    let limits = Limits::default()
        .with_max_message_bytes(2048)
        .with_max_pending(FEW)
        .with_max_outbox_frames(FEW)
        .with_max_events(FEW);
    let mut config = ClientConfig::new().with_limits(limits);
    if settings & 1 == 1 {
        config = config.with_connect_timeout(None);
    }
    if settings & 2 == 2 {
        config = config.with_silence_timeout(Some(Duration::from_secs(7)));
    }
    if settings & 4 == 4 {
        config = config.with_answer_timeout(Some(Duration::from_secs(3)));
    }
    config.with_session_sync(settings & 8 == 0)
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
        0 => hear(conn, seen, script.text(), at),
        1..=5 => {
            let text = script.pick(&FRAMES).copied().unwrap_or_default();
            hear(conn, seen, text, at);
        }
        6 | 7 => {
            let input = Input::new(script.text());
            let asked = conn.input(&input, at);
            seen.asks(Kind::Input, &input, &asked, conn);
        }
        8 => {
            let response = Response::new("q", Answer::PlanReview(script.text().into()));
            if conn.respond(&response, at).is_ok() {
                seen.sends(&response);
                seen.receipts += 1;
                let text = codec::encode(&response);
                seen.answers
                    .extend(text.map(|text| text.as_str().to_owned()));
            }
        }
        9 => {
            let offer = OnboardSubmit::new(Signed::none());
            let asked = conn.onboard(&offer, at);
            seen.asks(Kind::Onboarding, &offer, &asked, conn);
        }
        10 => {
            let connect = Connect::new(Signed::none()).with_session_id("s");
            if conn.connect(&connect, at).is_ok() {
                assert!(!seen.connected, "another CONNECT");
                seen.sends(&connect);
            }
        }
        11 | 12 => fire(conn, now, script.seconds()),
        13 => conn.handle_timeout(at),
        14 => order(script.byte_or_zero(), conn, seen, at),
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.handle_disconnect(Disconnect::Eof, at),
            2 => conn.handle_message(Incoming::Ping(b"x"), at),
            3 => hear(conn, seen, &"x".repeat(3000), at),
            4 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"x"), at),
            5 => {
                if let Some(id) = seen.asked.keys().next().copied() {
                    // Its reply may lie in the queue already.
                    if conn.cancel(id) {
                        seen.gave_up = true;
                        seen.asked.remove(&id);
                    }
                }
            }
            _ => conn.handle_message(Incoming::Pong(b"x"), at),
        },
    }
}

/// The rest of what an application may want.
fn order(which: u8, conn: &mut ClientConn, seen: &mut Seen, at: Instant) {
    match which % 4 {
        0 => {
            let change = ModeChange::new(Mode::Plan);
            if conn.set_mode(&change, at).is_ok() {
                seen.sends(&change);
            }
        }
        1 => {
            if conn.interrupt(at).is_ok() {
                seen.sends(&ClientFrame::Interrupt);
            }
        }
        2 => {
            let asked = conn.query("s", at);
            seen.asks(Kind::Status, &SessionQuery::new("s"), &asked, conn);
        }
        _ => {
            let request = AdminRequest::new(AdminAction::Promote, Signed::none());
            let asked = conn.admin(&request, at);
            seen.asks(Kind::Admin, &request, &asked, conn);
        }
    }
}

/// A line is read only while the machine wants input.
fn hear(conn: &mut ClientConn, seen: &mut Seen, text: &str, now: Instant) {
    if conn.wants_input() {
        let is_open = !conn.is_closed();
        let is_ping = matches!(
            ServerFrame::decode(text, &Limits::default().with_max_message_bytes(2048)),
            Ok(ServerFrame::Ping)
        );
        seen.pings += usize::from(is_open && is_ping);
        conn.handle_message(Incoming::Text(text), now);
    }
}

impl Seen {
    /// A frame was taken, so it has to leave.
    fn sends(&mut self, frame: &impl Serialize) {
        let text = codec::encode(frame);
        self.frames
            .extend(text.map(|text| text.as_str().to_owned()));
    }

    fn asks(
        &mut self,
        kind: Kind,
        frame: &impl Serialize,
        asked: &Result<CallId, Refused>,
        conn: &ClientConn,
    ) {
        match asked {
            Ok(id) => {
                self.sends(frame);
                let before = self.asked.insert(*id, kind);
                assert!(before.is_none(), "an id of two");
            }
            Err(Refused::Closed) => assert!(conn.is_closed(), "it is open"),
            Err(_) => {}
        }
    }

    /// Takes frames: each is what was taken next, or a PONG.
    fn transmits(&mut self, conn: &mut ClientConn) {
        while let Some(frame) = conn.poll_transmit() {
            assert!(!self.left, "a frame after the last one");
            match frame {
                Outgoing::Text(text) if text.as_str() == r#"{"type":"PONG"}"# => {
                    assert!(self.pings > 0, "a PONG to nothing");
                    self.pings -= 1;
                }
                Outgoing::Text(text)
                    if self.receipts > 0
                        && text.as_str().starts_with(r#"{"type":"SESSION_STATUS""#)
                        && self.frames.front().is_none_or(|next| next != text.as_str()) =>
                {
                    self.receipts -= 1;
                }
                Outgoing::Text(text) => {
                    let next = self.frames.pop_front();
                    assert_eq!(Some(text.as_str()), next.as_deref(), "what leaves");
                    if self.answers.front() == next.as_ref() {
                        self.answers.pop_front();
                    }
                }
                Outgoing::Close(_) => self.left = true,
                _ => panic!("a client sends texts"),
            }
        }
        if !conn.is_closed() {
            assert!(self.frames.is_empty(), "a frame is missing");
        }
    }

    fn events(&mut self, conn: &mut ClientConn) {
        while let Some(event) = conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            match event {
                ClientEvent::Connected(_) => {
                    assert!(!self.connected, "connected twice");
                    self.connected = true;
                }
                ClientEvent::Step(_) | ClientEvent::RunEnded(_) => {
                    assert!(self.connected, "a step before CONNECTED");
                }
                ClientEvent::Reply { id, result } => {
                    let kind = self.asked.remove(&id);
                    let Some(kind) = kind else {
                        panic!("a reply to nothing, or a second one");
                    };
                    if let Ok(reply) = &result {
                        assert_eq!(kind_of(reply), Some(kind), "the answer's kind");
                    }
                    if let Err(CallError::Closed { delivery, .. }) = result {
                        assert!(delivery != Delivery::Delivered, "nobody answered it");
                    }
                }
                ClientEvent::Unsent(response) => {
                    let text = codec::encode(&response);
                    let text = text.map(|text| text.as_str().to_owned()).ok();
                    let next = self.answers.pop_front();
                    assert_eq!(text, next, "an answer that did not leave");
                }
                ClientEvent::Closed(_) => self.closed = true,
                _ => {}
            }
        }
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
    }
}

const fn kind_of(reply: &Reply) -> Option<Kind> {
    Some(match reply {
        Reply::Input(_) => Kind::Input,
        Reply::Onboarded(_) => Kind::Onboarding,
        Reply::Status(_) => Kind::Status,
        Reply::Admin(_) => Kind::Admin,
    })
}
