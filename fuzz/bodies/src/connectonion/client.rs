//! The client's machine.

use std::collections::VecDeque;
use std::time::Duration;

use connectonion_proto::client::{CallValue, ClientConfig, ClientConn, ClientEvent, ClientState};
use connectonion_proto::frame::{
    AdminAction, AdminRequest, Answer, ClientFrame, Connect, Input, Mode, ModeChange,
    OnboardSubmit, Response, ServerFrame, SessionQuery, Signed,
};
use rpc_core::{CallError, CallId, Delivery, Machine as _, Refused};
use serde::Serialize;

use crate::calls::{Calls, State};
use crate::frames::written;
use crate::machine::{Expected, FEW, Model, Run, drive, small};
use crate::script::Script;

/// What a host may send.
const FRAMES: &str = include_str!("../../frames/connectonion_server.txt");

/// What is known of the client from outside.
#[derive(Default)]
struct Client {
    expected: Expected<()>,
    /// PINGs whose PONG has not left. It may be dropped when there is no room.
    pings: usize,
    calls: Calls<CallId, Kind>,
    /// Answers to the agent's questions, by place in `frames` history: what must leave or come back.
    answers: VecDeque<String>,
    responses: usize,
    /// Queries that may leave behind answers.
    receipts: usize,
    connected: bool,
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
    let (settings, script) = Script::with_settings(data);
    let connect = Connect::new(Signed::none());
    let mut model = Client::default();
    model.expected.leaves(&connect);
    let (_, mut run) = drive(model, script, |now| {
        ClientConn::new(configured(settings), &connect, 7, now)
    });
    let refused = run.conn.input(&Input::new("p"), run.now);
    assert_eq!(refused, Err(Refused::Closed), "after the end");
}

fn configured(settings: u8) -> ClientConfig {
    let mut config = ClientConfig::default();
    if settings & 2 == 2 {
        config.silence_timeout = Some(Duration::from_secs(7));
    }
    if settings & 4 == 4 {
        config.answer_timeout = Some(Duration::from_secs(3));
    }
    config.handshake_timeout = config.handshake_timeout.filter(|_| settings & 1 == 0);
    config.session_sync = settings & 8 == 0;
    config.limits = small();
    config
}

impl Model for Client {
    type Conn = ClientConn;
    const IN_FLIGHT: usize = FEW + 1;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let now = run.now;
        match op % 16 {
            0 => {
                let text = run.script.text();
                self.hear(run, text);
            }
            1..=5 => {
                let text = run.script.pick_line(FRAMES);
                self.hear(run, text);
            }
            6 | 7 => {
                let input = Input::new(run.script.text());
                let asked = run.conn.input(&input, now);
                self.asked(Kind::Input, &input, &asked, run);
            }
            8 => {
                // Each is another one.
                self.responses += 1;
                let text = format!("{}{}", self.responses, run.script.text());
                let response = Response::new("q", Answer::PlanReview(text.into()));
                if run.conn.respond(&response, now).is_ok() {
                    self.expected.leaves(&response);
                    self.receipts += 1;
                    self.answers
                        .push_back(written(&response).as_str().to_owned());
                }
            }
            9 => {
                let offer = OnboardSubmit::from(Signed::none());
                let asked = run.conn.onboard(&offer, now);
                self.asked(Kind::Onboarding, &offer, &asked, run);
            }
            10 => {
                let mut connect = Connect::new(Signed::none());
                connect.session_id = Some("s".into());
                if run.conn.connect(&connect, now).is_ok() {
                    assert!(!self.connected, "another CONNECT");
                    self.expected.leaves(&connect);
                }
            }
            11 | 12 => run.wait(),
            13 => run.timeout(),
            14 => self.order(run),
            _ => match run.script.byte_or_zero() {
                3 => self.hear(run, &"x".repeat(3000)),
                5 => {
                    // Its reply may lie in the queue already.
                    if let Some(call) = self.calls.first_open() {
                        let cancelled = run.conn.cancel(call.id);
                        call.cancelled(cancelled);
                        self.gave_up |= cancelled;
                    }
                }
                6 => run.pong(),
                other => run.happen(other),
            },
        }
        let in_flight = run.conn.in_flight();
        // A run that begins with an abandoned prompt has no owner.
        let is_running = run.conn.state() == ClientState::Running && !self.gave_up;
        assert!(!is_running || in_flight > 0, "nothing is under way");
    }

    /// What leaves is what was taken next, or a PONG.
    fn sent(&mut self, text: &str, _: &ClientConn) {
        if text == r#"{"type":"PONG"}"# {
            assert!(self.pings > 0, "a PONG to nothing");
            self.pings -= 1;
        } else if self.expected.is_next(text) {
            if self.answers.front().is_some_and(|next| next == text) {
                self.answers.pop_front();
            }
        } else {
            let is_query = text.starts_with(r#"{"type":"SESSION_STATUS""#);
            assert!(self.receipts > 0 && is_query, "what leaves: {text}");
            self.receipts -= 1;
        }
    }

    fn all_sent(&mut self, conn: &ClientConn) {
        self.expected.all_sent(conn);
    }

    fn event(&mut self, event: ClientEvent, _: &Run<'_, ClientConn>) {
        match event {
            ClientEvent::Connected(_) => {
                assert!(!self.connected, "connected twice");
                self.connected = true;
            }
            ClientEvent::Step(_) | ClientEvent::RunEnded(_) => {
                assert!(self.connected, "a step before CONNECTED");
            }
            ClientEvent::Reply { id, result } => {
                let kind = result.as_ref().ok().map(kind_of);
                // Replies name nothing but their kind, so they come in order.
                let in_order = kind.filter(|kind| *kind != Kind::Input);
                let first = in_order.and_then(|kind| self.calls.first_open_of(&kind));
                assert!(first.is_none_or(|first| first == id), "another's reply");
                let before = self.calls.end(id, kind.as_ref());
                assert_eq!(before, State::Open, "a reply to what was given up");
                if let Err(CallError::Closed { delivery, .. }) = result {
                    assert!(delivery != Delivery::Delivered, "nobody answered it");
                }
            }
            ClientEvent::Unsent(response) => {
                let next = self.answers.pop_front();
                let text = written(&response);
                assert_eq!(
                    Some(text.as_str()),
                    next.as_deref(),
                    "an answer that did not leave"
                );
            }
            ClientEvent::Closed(_) => self.calls.assert_none_open(),
            _ => {}
        }
    }
}

impl Client {
    fn hear(&mut self, run: &mut Run<'_, ClientConn>, text: &str) {
        let is_heard = run.conn.wants_input() && !run.conn.is_closed();
        let is_ping = matches!(ServerFrame::decode(text, &small()), Ok(ServerFrame::Ping));
        self.pings += usize::from(is_heard && is_ping);
        run.hear(text);
    }

    fn asked(
        &mut self,
        kind: Kind,
        frame: &impl Serialize,
        asked: &Result<CallId, Refused>,
        run: &Run<'_, ClientConn>,
    ) {
        if run.took(asked, asked.is_ok()) {
            self.expected.leaves(frame);
            self.calls.made(asked.clone().ok(), kind);
        }
    }

    /// The rest of what an application may want.
    fn order(&mut self, run: &mut Run<'_, ClientConn>) {
        let now = run.now;
        match run.script.byte_or_zero() % 4 {
            0 => {
                let change = ModeChange::new(Mode::Plan);
                if run.conn.set_mode(&change, now).is_ok() {
                    self.expected.leaves(&change);
                }
            }
            1 => {
                if run.conn.interrupt(now).is_ok() {
                    self.expected.leaves(&ClientFrame::Interrupt);
                }
            }
            2 => {
                let asked = run.conn.query("s", now);
                self.asked(Kind::Status, &SessionQuery::new("s"), &asked, run);
            }
            _ => {
                let request = AdminRequest::new(AdminAction::Promote, Signed::none());
                let asked = run.conn.admin(&request, now);
                self.asked(Kind::Admin, &request, &asked, run);
            }
        }
    }
}

fn kind_of(reply: &CallValue) -> Kind {
    match reply {
        CallValue::Input(_) => Kind::Input,
        CallValue::Onboarded(_) => Kind::Onboarding,
        CallValue::Status(_) => Kind::Status,
        CallValue::Admin(_) => Kind::Admin,
        other => panic!("no rule for {other:?}"),
    }
}
