//! Body of the fuzz target of the server machine.

use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Disconnect, Incoming, Json, Limits, Machine, Outgoing, Refused};

use super::{FEW, SLACK, TOKEN, inert, small};
use crate::auth::Auth;
use crate::error::RpcError;
use crate::frame::{
    Call, Method, Request, ServerFrame, StreamEvent, Token, ToolResult, ToolUse, Usage,
};
use crate::id::{UNREADABLE_ID, WireId};
use crate::limits::AUTH_FAILED_CODE;
use crate::server::{RequestId, ServerConfig, ServerConn, ServerEvent, ServerState};

/// Most requests that are worked on.
const REQUESTS: usize = 3;

/// A request that the application works on.
struct Open {
    id: RequestId,
    is_chat: bool,
    /// A step was sent.
    begun: bool,
}

/// How far the answer to a request has come on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Answered {
    #[default]
    No,
    Begun,
    /// An `error` step, which `done` follows.
    Failed,
    Over,
}

#[derive(Default)]
struct Seen {
    in_order: bool,
    extensions: bool,
    open: Vec<Open>,
    ids: Vec<RequestId>,
    /// One for each request that this script made up itself, by the number in its id.
    asked: Vec<Answered>,
    /// The latest of them that was answered.
    latest: usize,
    frames: usize,
    /// No token is asked for, or the first message was the right one.
    may_enter: bool,
    refused: bool,
    authenticated: bool,
    closed: bool,
    /// A command found no room since frames were last taken.
    blocked: bool,
}

/// Runs a server's connection through operations: nobody gets in without the token, every request
/// is answered at most once and nothing follows the end of its stream.
pub fn server_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let settings = script.byte_or_zero();
    let with_token = settings & 1 == 1;
    let mut seen = Seen {
        may_enter: !with_token,
        in_order: settings & 2 == 2,
        extensions: settings & 4 == 4,
        ..Seen::default()
    };
    let mut conn = ServerConn::new(configured(settings), now);
    assert_eq!(
        conn.state() == ServerState::AwaitToken,
        with_token,
        "a token is awaited"
    );
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
        assert!(conn.in_flight() <= REQUESTS, "requests are bounded");
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    seen.events(&mut conn);
    assert!(seen.closed, "the end is told");
    for open in &seen.open {
        let refused = conn.done(open.id);
        assert_eq!(refused, Err(Refused::Closed), "an answer after the end");
    }
    inert(&mut conn, now);
}

fn configured(settings: u8) -> ServerConfig {
    let auth = match Auth::token(TOKEN) {
        Ok(auth) if settings & 1 == 1 => auth,
        _ => Auth::open(),
    };
    let mut config = ServerConfig::new(auth)
        .with_in_order(settings & 2 == 2)
        .with_extensions(settings & 4 == 4)
        .with_echo_numbers(settings & 8 == 8)
        .with_limits(small())
        .with_max_requests(REQUESTS);
    if settings & 16 == 16 {
        let often = KeepAlive::default().with_interval(Some(Duration::from_secs(7)));
        config = config.with_keep_alive(often.with_pong_timeout(Duration::from_secs(3)));
    }
    if settings & 32 == 32 {
        config = config.with_auth_timeout(None);
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
    match op % 18 {
        0 => {
            let text = script.text();
            if !has_own_id(text) {
                seen.hear(conn, text, at);
            }
        }
        1 => drop(seen.hear(conn, r#"{"token":"s3cret-token"}"#, at)),
        2 => drop(seen.hear(conn, r#"{"token":"s3cret-toke"}"#, at)),
        3..=5 => {
            let method = script.pick(&Method::ALL).map_or("nope", |it| it.name());
            seen.request(
                conn,
                method,
                r#"{"channel":"c","account":"a","content":"hi"}"#,
                at,
            );
        }
        6 => seen.request(conn, "chat.send", script.text(), at),
        7 => seen.request(conn, "status", "null", at),
        8 => {
            if let Some(at) = seen.pick(script) {
                let result = conn.reply(seen.open[at].id, &"value");
                seen.ended(at, &result, conn);
            }
        }
        9 => {
            if let Some(at) = seen.pick(script) {
                let error = RpcError::provider(script.text());
                let result = conn.fail(seen.open[at].id, &error);
                let begun = seen.open[at].begun;
                assert!(!begun || result.is_err(), "an answer within a stream");
                seen.ended(at, &result, conn);
            }
        }
        10 | 11 => {
            if let Some(at) = seen.pick(script) {
                let result = step(script, conn, seen.open[at].id);
                seen.stepped(at, &result);
            }
        }
        12 => {
            if let Some(at) = seen.pick(script) {
                let id = seen.open[at].id;
                let result = match script.byte_or_zero() % 2 {
                    0 => conn.done(id),
                    _ => conn.error(id, "provider error: x"),
                };
                seen.ended(at, &result, conn);
            }
        }
        13 => {
            if let Some(at) = seen.pick(script) {
                let id = seen.open.swap_remove(at).id;
                // Whoever waits has its turn then, and may find no room: that ends the connection.
                let was_open = !conn.is_closed();
                let known = conn.forget(id);
                assert_eq!(known, was_open, "an open request is known");
            }
        }
        14 => {
            let wait = script.seconds();
            fire(conn, now, wait);
        }
        15 => conn.handle_timeout(at),
        16 => conn.handle_message(Incoming::Pong(b""), at),
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.handle_disconnect(Disconnect::Eof, at),
            2 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"{}"), at),
            _ => conn.handle_message(Incoming::Ping(b"x"), at),
        },
    }
}

fn step(script: &mut Script<'_>, conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    match script.byte_or_zero() % 6 {
        0 | 1 => conn.text(id, script.text()),
        2 => conn.usage(id, Usage::new(150, 42)),
        3 => {
            let tool = ToolUse::new("c", "echo", Json::NULL);
            conn.event(id, &StreamEvent::ToolUse(tool))
        }
        4 => {
            let result = ToolResult::new("c", "x", true);
            conn.event(id, &StreamEvent::ToolResult(result))
        }
        _ => {
            let event = StreamEvent::Unknown {
                tag: "later".into(),
                content: None,
            };
            conn.event(id, &event)
        }
    }
}

/// Whether a text that was written by hand has an id of those that are counted.
fn has_own_id(text: &str) -> bool {
    let limits = Limits::default();
    let own = |id: &WireId| id.text().starts_with('q');
    match Request::decode(text, &limits) {
        Ok(request) => own(&request.id),
        Err(_) => Request::id_of(text, &limits).is_some_and(|id| own(&id)),
    }
}

impl Seen {
    /// A line is read only while the machine wants input.
    fn hear(&mut self, conn: &mut ServerConn, text: &str, now: Instant) -> bool {
        let wants = conn.wants_input();
        if wants {
            if conn.state() == ServerState::AwaitToken {
                let token = Token::decode(text, &Limits::default());
                self.may_enter = token.is_ok_and(|token| token.expose() == TOKEN);
            }
            conn.handle_message(Incoming::Text(text), now);
        }
        wants
    }

    /// A request with an id of its own.
    fn request(&mut self, conn: &mut ServerConn, method: &str, params: &str, now: Instant) {
        let number = self.asked.len();
        let text = format!(r#"{{"id":"q{number}","method":"{method}","params":{params}}}"#);
        if self.hear(conn, &text, now) {
            self.asked.push(Answered::No);
        }
    }

    fn pick(&self, script: &mut Script<'_>) -> Option<usize> {
        usize::from(script.byte_or_zero()).checked_rem(self.open.len())
    }

    fn stepped(&mut self, at: usize, result: &Result<(), Refused>) {
        let open = &mut self.open[at];
        self.blocked |= *result == Err(Refused::QueueFull);
        match result {
            Ok(()) => {
                assert!(open.is_chat, "a step of what is no chat");
                open.begun = true;
            }
            Err(Refused::UnknownId) => panic!("an open request is known"),
            Err(_) => {}
        }
    }

    fn ended(&mut self, at: usize, result: &Result<(), Refused>, conn: &mut ServerConn) {
        self.blocked |= *result == Err(Refused::QueueFull);
        match result {
            Ok(()) => {
                let id = self.open.swap_remove(at).id;
                let again = [conn.reply(id, &1), conn.done(id), conn.text(id, "x")];
                assert!(again.iter().all(Result::is_err), "answered twice");
                assert!(!conn.forget(id), "it is over");
            }
            Err(Refused::UnknownId) => panic!("an open request is known"),
            Err(_) => {}
        }
    }

    /// Takes frames: the hello or a refusal first, nothing after a Close.
    fn transmits(&mut self, conn: &mut ServerConn) {
        let mut taken = 0;
        let mut close = None;
        while let Some(frame) = conn.poll_transmit() {
            assert!(close.is_none(), "a frame after a Close");
            match frame {
                Outgoing::Text(text) => {
                    taken += 1;
                    self.sent(text.as_str());
                }
                Outgoing::Close(frame) => close = Some(frame.code),
                // There is one for each interval.
                Outgoing::Ping(_) => {}
                _ => panic!("a server must send texts"),
            }
        }
        assert_eq!(
            self.refused && close.is_some(),
            close == Some(AUTH_FAILED_CODE),
            "a refusal closes with its code"
        );
        assert!(taken <= FEW, "frames that wait are bounded");
    }

    fn sent(&mut self, text: &str) {
        assert!(!self.refused, "a frame after a refusal");
        let frame = match ServerFrame::decode(text, &Limits::default()) {
            Ok(frame) => frame,
            Err(error) => panic!("a server must send frames only: {error}"),
        };
        match &frame {
            ServerFrame::Hello(_) => {
                assert_eq!(self.frames, 0, "the hello comes first");
                assert!(self.may_enter, "a hello without the token");
            }
            ServerFrame::AuthFailed { .. } => {
                assert_eq!(self.frames, 0, "a refusal comes first");
                self.refused = true;
            }
            _ => assert!(self.frames > 0, "an answer before the hello"),
        }
        self.frames += 1;
        let next = match &frame {
            ServerFrame::Hello(_) | ServerFrame::AuthFailed { .. } => return,
            ServerFrame::Result { .. } | ServerFrame::Error { .. } => Answered::Over,
            ServerFrame::Stream { event, .. } => match event {
                StreamEvent::Done => Answered::Over,
                StreamEvent::Error(_) => Answered::Failed,
                _ => Answered::Begun,
            },
        };
        let Some(id) = frame.id() else {
            panic!("an answer without an id")
        };
        let is_step = matches!(frame, ServerFrame::Stream { .. });
        let number = id.strip_prefix('q').and_then(|id| id.parse::<usize>().ok());
        match number.filter(|number| *number < self.asked.len()) {
            Some(number) => self.answered(number, next, is_step),
            // What the script wrote by hand.
            None => assert!(!is_step || id != UNREADABLE_ID, "a stream for nobody"),
        }
    }

    fn answered(&mut self, number: usize, next: Answered, is_step: bool) {
        let before = std::mem::replace(&mut self.asked[number], next);
        match before {
            Answered::No => {}
            Answered::Begun => assert!(is_step, "an answer within a stream"),
            Answered::Failed => assert!(is_step && next == Answered::Over, "only `done` follows"),
            Answered::Over => panic!("an answer after the end"),
        }
        assert!(
            !self.in_order || number >= self.latest,
            "answers out of order"
        );
        self.latest = number;
    }

    fn events(&mut self, conn: &mut ServerConn) {
        let mut taken = 0;
        let mut writable = false;
        while let Some(event) = conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            match event {
                ServerEvent::Authenticated => {
                    assert!(!self.authenticated, "authenticated twice");
                    self.authenticated = true;
                }
                ServerEvent::Request { id, call } => {
                    taken += 1;
                    self.asked(id, &call);
                }
                ServerEvent::Writable => writable = true,
                ServerEvent::Closed(_) => self.closed = true,
                ServerEvent::Warning(_) => taken += 1,
            }
        }
        assert!(taken <= FEW + SLACK, "events that wait are bounded");
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
        // Frames were taken just before, all of them.
        assert!(
            !self.blocked || writable || self.closed,
            "room came back and nobody was told"
        );
        self.blocked = false;
    }

    fn asked(&mut self, id: RequestId, call: &Call) {
        assert!(self.authenticated, "a request before the token");
        assert!(!self.ids.contains(&id), "an id was given twice");
        self.ids.push(id);
        let Some(method) = call.method() else {
            panic!("an unknown method")
        };
        assert!(method != Method::Ping, "a ping is answered already");
        assert!(
            !method.is_future() || (self.extensions && method.is_extension()),
            "a method that is not offered"
        );
        assert!(
            !self.in_order || self.open.is_empty(),
            "requests have to take turns"
        );
        self.open.push(Open {
            id,
            is_chat: method == Method::ChatSend,
            begun: false,
        });
    }
}
