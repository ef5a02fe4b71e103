//! The server's machine.

use exoclaw_proto::auth::Auth;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    Call, Method, Request, ServerFrame, StreamEvent, Token, ToolResult, ToolUse, Usage,
};
use exoclaw_proto::id::UNREADABLE_ID;
use exoclaw_proto::limits::AUTH_FAILED_CODE;
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent, ServerState};
use rpc_core::{Instant, Json, Limits, Machine as _, Outgoing, Refused};

use super::TOKEN;
use crate::machine::{FEW, Model, Room, Run, SLACK, Settings, readable, small};
use crate::script::Script;

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
#[derive(Clone, Copy, PartialEq)]
enum Answered {
    No,
    Begun,
    /// An `error` step, which `done` follows.
    Failed,
    Over,
}

/// What the application saw of a server: no one gets in without the token, every request is answered
/// at most once and nothing follows the end of its stream.
#[derive(Default)]
pub(super) struct Server {
    in_order: bool,
    extensions: bool,
    open: Vec<Open>,
    ids: Vec<RequestId>,
    /// One for each request that is a line, by the number in its id.
    asked: Vec<Answered>,
    /// The latest of them that was answered.
    latest: usize,
    frames: usize,
    /// No token is asked for, or the first message was the right one.
    may_enter: bool,
    refused: bool,
    authenticated: bool,
    /// A request has no answer: it was forgotten, or its id was not read.
    forgot: bool,
    room: Room,
}

fn step(script: &mut Script<'_>, conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    let event = match script.byte_or_zero() % 6 {
        0 | 1 => return conn.text(id, script.text()),
        2 => StreamEvent::Usage(Usage::new(150, 42)),
        3 => StreamEvent::ToolUse(ToolUse::new("c", "echo", Json::NULL)),
        4 => StreamEvent::ToolResult(ToolResult::new("c", "x", true)),
        _ => StreamEvent::Unknown {
            tag: "later".into(),
            content: None,
        },
    };
    conn.event(id, &event)
}

impl Model for Server {
    type Conn = ServerConn;
    const OWN: u8 = 6;
    const IN_FLIGHT: usize = REQUESTS;
    const LINES: &'static str = include_str!("../../frames/exoclaw_client.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ServerConn) {
        let with_token = settings.has(1);
        let model = Self {
            may_enter: !with_token,
            in_order: settings.has(2),
            extensions: settings.has(4),
            ..Self::default()
        };
        let extensions = Method::EXTENSIONS.into_iter();
        let mut config = ServerConfig {
            in_order: model.in_order,
            extensions: extensions.filter(|_| model.extensions).collect(),
            echo_numbers: settings.has(8),
            limits: small(),
            max_requests: REQUESTS,
            ..ServerConfig::default()
        };
        settings.pings(16, &mut config.keep_alive);
        settings.removes(32, &mut config.handshake_timeout);
        let auth = match Auth::token(TOKEN) {
            Ok(auth) if with_token => auth,
            _ => Auth::open(),
        };
        let conn = ServerConn::new(config, auth, now);
        let is_awaited = conn.state() == ServerState::AwaitToken;
        assert_eq!(is_awaited, with_token, "a token is awaited");
        (model, conn)
    }

    /// `$NEW` is the number of the request.
    fn line(&mut self, run: &mut Run<'_, ServerConn>) -> String {
        let line = run.script.line(Self::LINES, &[]);
        line.replace("$NEW", &format!("q{}", self.asked.len()))
    }

    /// Only lines have ids with a number.
    fn allows(&self, text: &str) -> bool {
        let limits = Limits::default();
        let id = match Request::decode(text, &limits) {
            Ok(request) => Some(request.id),
            Err(_) => Request::id_of(text, &limits),
        };
        id.is_none_or(|id| !id.text().starts_with('q'))
    }

    fn receive(&mut self, text: &str, run: &mut Run<'_, ServerConn>) {
        if !run.conn.wants_input() {
            return;
        }
        if run.conn.state() == ServerState::AwaitToken {
            let token = Token::decode(text, &Limits::default());
            self.may_enter = token.is_ok_and(|token| token.expose() == TOKEN);
        }
        run.receive(text);
        if text.starts_with(r#"{"id":"q"#) {
            self.asked.push(Answered::No);
            // It may be answered under another id.
            self.forgot |= Request::decode(text, &Limits::default()).is_err();
        }
    }

    /// The application works on one of the open requests.
    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let (conn, script) = (&mut run.conn, &mut run.script);
        let Some(at) = usize::from(script.byte_or_zero()).checked_rem(self.open.len()) else {
            return;
        };
        let Open { id, begun, is_chat } = self.open[at];
        let result = match op {
            0 => conn.reply(id, &"value"),
            1 => {
                let result = conn.fail(id, &RpcError::provider(script.text()));
                assert!(!begun || result.is_err(), "an answer within a stream");
                result
            }
            2 | 3 => step(script, conn, id),
            4 if script.byte_or_zero() % 2 == 0 => conn.done(id),
            4 => conn.error(id, "provider error: x"),
            _ => {
                self.open.swap_remove(at);
                self.forgot = true;
                // Whoever waits has its turn then, and may find no room: that ends the connection.
                let was_open = !conn.is_closed();
                assert_eq!(conn.forget(id), was_open, "an open request is known");
                return;
            }
        };
        self.room.note(&result);
        assert_ne!(result, Err(Refused::UnknownId), "an open request is known");
        match op {
            _ if result.is_err() => {}
            2 | 3 => {
                assert!(is_chat, "a step of what is no chat");
                self.open[at].begun = true;
            }
            _ => {
                self.open.swap_remove(at);
                let again = [conn.reply(id, &1), conn.done(id), conn.text(id, "x")];
                assert!(again.iter().all(Result::is_err), "answered twice");
                assert!(!conn.forget(id), "it is over");
            }
        }
    }

    /// The hello or a refusal comes first.
    fn sent(&mut self, text: &str, _: &ServerConn) {
        assert!(!self.refused, "a frame after a refusal");
        let frame = readable(ServerFrame::decode(text, &Limits::default()));
        let is_greeting = match &frame {
            ServerFrame::Hello(_) => {
                assert!(self.may_enter, "a hello without the token");
                true
            }
            ServerFrame::AuthFailed { .. } => {
                self.refused = true;
                true
            }
            _ => false,
        };
        assert_eq!(is_greeting, self.frames == 0, "a hello or a refusal first");
        self.frames += 1;
        let (next, is_step) = match &frame {
            ServerFrame::Result { .. } | ServerFrame::Error { .. } => (Answered::Over, false),
            ServerFrame::Stream { event, .. } => match event {
                StreamEvent::Done => (Answered::Over, true),
                StreamEvent::Error(_) => (Answered::Failed, true),
                _ => (Answered::Begun, true),
            },
            _ => return,
        };
        let id = frame.id().unwrap_or_else(|| panic!("no id: {text}"));
        let number = id.strip_prefix('q').and_then(|id| id.parse::<usize>().ok());
        match number.filter(|number| *number < self.asked.len()) {
            Some(number) => self.answered(number, next, is_step),
            // What the script wrote by hand.
            None => assert!(!is_step || id != UNREADABLE_ID, "a stream for nobody"),
        }
    }

    fn sent_control(&mut self, frame: &Outgoing, _: &ServerConn) {
        if let Outgoing::Close(close) = frame {
            let is_refusal = close.code == AUTH_FAILED_CODE;
            assert_eq!(self.refused, is_refusal, "a refusal closes with its code");
        }
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
        match event {
            ServerEvent::Authenticated => {
                assert!(!self.authenticated, "authenticated twice");
                self.authenticated = true;
            }
            ServerEvent::Request { id, call } => self.asked(id, &call),
            ServerEvent::Writable => self.room.is_back(),
            ServerEvent::Closed(_) | ServerEvent::Warning(_) => {}
            other => panic!("no rule for {other:?}"),
        }
    }

    /// Answers everything. Whatever was asked has then been answered, unless the line is closed.
    fn settle(&mut self, run: &mut Run<'_, ServerConn>) {
        for _ in 0..FEW * FEW {
            run.take_frames(self);
            run.take_events(self);
            while let Some(Open { id, is_chat, .. }) = self.open.pop() {
                let _ = match is_chat {
                    true => run.conn.done(id),
                    false => run.conn.reply(id, &"value"),
                };
                run.take_frames(self);
            }
        }
        let over = self.asked.iter().all(|it| *it == Answered::Over);
        let is_excused = self.forgot || run.left || run.conn.is_closed();
        assert!(over || is_excused, "all is answered");
    }

    fn all_taken(&mut self, events: usize, run: &mut Run<'_, ServerConn>) {
        // And one each for the token, room and the end.
        assert!(events <= FEW + SLACK + 3, "events that wait are bounded");
        self.room.check(run.closed);
    }

    fn late(&mut self, conn: &mut ServerConn, _: Instant) -> Option<Refused> {
        let done = |id: &RequestId| conn.done(*id).err();
        self.ids.last().map_or(Some(Refused::Closed), done)
    }
}

impl Server {
    fn answered(&mut self, number: usize, next: Answered, is_step: bool) {
        match std::mem::replace(&mut self.asked[number], next) {
            Answered::No => {}
            Answered::Begun => assert!(is_step, "an answer within a stream"),
            Answered::Failed => assert!(is_step && next == Answered::Over, "only `done` follows"),
            Answered::Over => panic!("an answer after the end"),
        }
        let is_next = !self.in_order || number >= self.latest;
        assert!(is_next, "answers out of order");
        self.latest = number;
    }

    fn asked(&mut self, id: RequestId, call: &Call) {
        assert!(self.authenticated, "a request before the token");
        assert!(!self.ids.contains(&id), "an id was given twice");
        self.ids.push(id);
        let method = call.method();
        let method = method.unwrap_or_else(|| panic!("an unknown method"));
        assert!(method != Method::Ping, "a ping is answered already");
        let is_offered = self.extensions && Method::EXTENSIONS.contains(&method);
        let may_come = !method.is_future() || is_offered;
        assert!(may_come, "a method that is not offered");
        let has_turn = !self.in_order || self.open.is_empty();
        assert!(has_turn, "requests have to take turns");
        self.open.push(Open {
            id,
            is_chat: method == Method::ChatSend,
            begun: false,
        });
    }
}
