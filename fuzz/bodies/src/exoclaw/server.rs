//! The server's machine.

use exoclaw_proto::auth::Auth;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    Call, Method, Request, ServerFrame, StreamEvent, Token, ToolResult, ToolUse, Usage,
};
use exoclaw_proto::id::{UNREADABLE_ID, WireId};
use exoclaw_proto::limits::AUTH_FAILED_CODE;
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent, ServerState};
use rpc_core::{Json, Limits, Machine as _, Outgoing, Refused};

use super::TOKEN;
use crate::machine::{FEW, Model, Room, Run, SLACK, drive, frequent_pings, readable, small};
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
struct Server {
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
    /// A request has no answer: it was forgotten, or its id was not read.
    forgot: bool,
    room: Room,
}

/// Runs a server's connection through operations: no one gets in without the token, every request
/// is answered at most once and nothing follows the end of its stream.
pub fn server_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let with_token = settings & 1 == 1;
    let model = Server {
        may_enter: !with_token,
        in_order: settings & 2 == 2,
        extensions: settings & 4 == 4,
        ..Server::default()
    };
    let (seen, mut run) = drive(model, script, |now| {
        let auth = match Auth::token(TOKEN) {
            Ok(auth) if with_token => auth,
            _ => Auth::open(),
        };
        let conn = ServerConn::new(configured(settings), auth, now);
        let is_awaited = conn.state() == ServerState::AwaitToken;
        assert_eq!(is_awaited, with_token, "a token is awaited");
        conn
    });
    for open in &seen.open {
        let refused = run.conn.done(open.id);
        assert_eq!(refused, Err(Refused::Closed), "an answer after the end");
    }
}

fn configured(settings: u8) -> ServerConfig {
    let extensions = Method::EXTENSIONS.into_iter();
    let mut config = ServerConfig {
        in_order: settings & 2 == 2,
        extensions: extensions.filter(|_| settings & 4 == 4).collect(),
        echo_numbers: settings & 8 == 8,
        limits: small(),
        max_requests: REQUESTS,
        ..ServerConfig::default()
    };
    config.handshake_timeout = config.handshake_timeout.filter(|_| settings & 32 == 0);
    if settings & 16 == 16 {
        config.keep_alive = frequent_pings();
    }
    config
}

fn step(script: &mut Script<'_>, conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    match script.byte_or_zero() % 6 {
        0 | 1 => conn.text(id, script.text()),
        2 => conn.event(id, &StreamEvent::Usage(Usage::new(150, 42))),
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

impl Model for Server {
    type Conn = ServerConn;
    const IN_FLIGHT: usize = REQUESTS;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op % 18 {
            0 => {
                let text = run.script.text();
                if !has_own_id(text) {
                    self.hear(run, text);
                }
            }
            1 => drop(self.hear(run, r#"{"token":"s3cret-token"}"#)),
            2 => drop(self.hear(run, r#"{"token":"s3cret-toke"}"#)),
            3..=5 => {
                let method = run.script.pick(&Method::ALL).map_or("nope", |it| it.name());
                let params = r#"{"channel":"c","account":"a","content":"hi"}"#;
                self.request(run, method, params);
            }
            6 => {
                let params = run.script.text();
                self.request(run, "chat.send", params);
            }
            7 => self.request(run, "status", "null"),
            8..=13 => self.work(op % 18, run),
            14 => run.wait(),
            15 => run.timeout(),
            16 => run.pong(),
            _ => run.line(),
        }
    }

    /// The hello or a refusal comes first.
    fn sent(&mut self, text: &str, _: &ServerConn) {
        assert!(!self.refused, "a frame after a refusal");
        let frame = readable(ServerFrame::decode(text, &Limits::default()));
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
            ServerFrame::Result { .. } | ServerFrame::Error { .. } => Answered::Over,
            ServerFrame::Stream { event, .. } => match event {
                StreamEvent::Done => Answered::Over,
                StreamEvent::Error(_) => Answered::Failed,
                _ => Answered::Begun,
            },
            _ => return,
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
            while let Some(open) = self.open.pop() {
                let _ = match open.is_chat {
                    true => run.conn.done(open.id),
                    false => run.conn.reply(open.id, &"value"),
                };
                run.take_frames(self);
            }
        }
        let over = self.asked.iter().all(|it| *it == Answered::Over);
        assert!(
            over || self.forgot || run.left || run.conn.is_closed(),
            "all is answered"
        );
    }

    fn all_told(&mut self, events: usize, run: &mut Run<'_, ServerConn>) {
        // And one each for the token, room and the end.
        assert!(events <= FEW + SLACK + 3, "events that wait are bounded");
        self.room.check(run.closed);
    }
}

impl Server {
    /// A line is read only while the machine wants input.
    fn hear(&mut self, run: &mut Run<'_, ServerConn>, text: &str) -> bool {
        let wants = run.conn.wants_input();
        if wants {
            if run.conn.state() == ServerState::AwaitToken {
                let token = Token::decode(text, &Limits::default());
                self.may_enter = token.is_ok_and(|token| token.expose() == TOKEN);
            }
            run.hear(text);
        }
        wants
    }

    /// A request with an id of its own.
    fn request(&mut self, run: &mut Run<'_, ServerConn>, method: &str, params: &str) {
        let number = self.asked.len();
        let text = format!(r#"{{"id":"q{number}","method":"{method}","params":{params}}}"#);
        if self.hear(run, &text) {
            self.asked.push(Answered::No);
            // It may be answered under another id.
            self.forgot |= Request::decode(&text, &Limits::default()).is_err();
        }
    }

    /// The application works on one of the open requests.
    fn work(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let Some(at) = usize::from(run.script.byte_or_zero()).checked_rem(self.open.len()) else {
            return;
        };
        let Open { id, begun, .. } = self.open[at];
        let (conn, script) = (&mut run.conn, &mut run.script);
        let result = match op {
            8 => conn.reply(id, &"value"),
            9 => {
                let result = conn.fail(id, &RpcError::provider(script.text()));
                assert!(!begun || result.is_err(), "an answer within a stream");
                result
            }
            10 | 11 => {
                let result = step(script, conn, id);
                return self.stepped(at, &result);
            }
            12 if script.byte_or_zero() % 2 == 0 => conn.done(id),
            12 => conn.error(id, "provider error: x"),
            _ => {
                self.open.swap_remove(at);
                self.forgot = true;
                // Whoever waits has its turn then, and may find no room: that ends the connection.
                let was_open = !conn.is_closed();
                assert_eq!(conn.forget(id), was_open, "an open request is known");
                return;
            }
        };
        self.ended(at, &result, run);
    }

    fn stepped(&mut self, at: usize, result: &Result<(), Refused>) {
        let open = &mut self.open[at];
        self.room.note(result);
        assert_ne!(*result, Err(Refused::UnknownId), "an open request is known");
        assert!(result.is_err() || open.is_chat, "a step of what is no chat");
        open.begun |= result.is_ok();
    }

    fn ended(&mut self, at: usize, result: &Result<(), Refused>, run: &mut Run<'_, ServerConn>) {
        self.room.note(result);
        assert_ne!(*result, Err(Refused::UnknownId), "an open request is known");
        if result.is_ok() {
            let id = self.open.swap_remove(at).id;
            let conn = &mut run.conn;
            let again = [conn.reply(id, &1), conn.done(id), conn.text(id, "x")];
            assert!(again.iter().all(Result::is_err), "answered twice");
            assert!(!conn.forget(id), "it is over");
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

    fn asked(&mut self, id: RequestId, call: &Call) {
        assert!(self.authenticated, "a request before the token");
        assert!(!self.ids.contains(&id), "an id was given twice");
        self.ids.push(id);
        let Some(method) = call.method() else {
            panic!("an unknown method")
        };
        assert!(method != Method::Ping, "a ping is answered already");
        assert!(
            !method.is_future() || (self.extensions && Method::EXTENSIONS.contains(&method)),
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
