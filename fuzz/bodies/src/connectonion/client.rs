//! The client's machine.

use std::collections::VecDeque;
use std::time::Duration;

use connectonion_proto::client::{CallValue, ClientConfig, ClientConn, ClientEvent, ClientState};
use connectonion_proto::frame::{
    AdminAction, AdminRequest, Answer, ClientFrame, Connect, Input, Mode, ModeChange,
    OnboardSubmit, Response, ServerFrame, SessionQuery, Signed,
};
use rpc_core::{CallError, CallId, Delivery, Instant, Machine as _, Refused};
use serde::Serialize;

use crate::calls::{Calls, State};
use crate::frames::written;
use crate::machine::{Expected, FEW, Model, Run, Settings, small};

/// What the application saw of a client: CONNECT comes first, what was taken leaves in order,
/// everything that was asked is answered once and by its kind, and every answer of the user leaves or
/// comes back, unless its run has ended.
#[derive(Default)]
pub(super) struct Client {
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
    /// A run has ended, whose answers do not come back.
    run_ended: bool,
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

impl Model for Client {
    type Conn = ClientConn;
    const OWN: u8 = 9;
    const IN_FLIGHT: usize = FEW + 1;
    const LINES: &'static str = include_str!("../../frames/connectonion_server.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ClientConn) {
        let connect = Connect::new(Signed::none());
        let mut model = Self::default();
        model.expected.leaves(&connect);
        let mut config = ClientConfig {
            session_sync: !settings.has(8),
            limits: small(),
            ..ClientConfig::default()
        };
        settings.removes(1, &mut config.handshake_timeout);
        if settings.has(2) {
            config.silence_timeout = Some(Duration::from_secs(7));
        }
        if settings.has(4) {
            config.answer_timeout = Some(Duration::from_secs(3));
        }
        (model, ClientConn::new(config, &connect, 7, now))
    }

    fn receive(&mut self, text: &str, run: &mut Run<'_, ClientConn>) {
        let is_read = run.conn.wants_input() && !run.conn.is_closed();
        let is_ping = matches!(ServerFrame::decode(text, &small()), Ok(ServerFrame::Ping));
        self.pings += usize::from(is_read && is_ping);
        run.receive(text);
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let (conn, script, now) = (&mut run.conn, &mut run.script, run.now);
        match op {
            0 | 1 => {
                let input = Input::new(script.text());
                let asked = conn.input(&input, now);
                self.asked(Kind::Input, &input, &asked);
            }
            2 => {
                // Each is another one.
                self.responses += 1;
                let text = format!("{}{}", self.responses, script.text());
                let response = Response::new("q", Answer::PlanReview(text.into()));
                if self.took(&response, &conn.respond(&response, now)) {
                    self.receipts += 1;
                    let text = written(&response);
                    self.answers.push_back(text.as_str().to_owned());
                }
            }
            3 => {
                let offer = OnboardSubmit::from(Signed::none());
                let asked = conn.onboard(&offer, now);
                self.asked(Kind::Onboarding, &offer, &asked);
            }
            4 => {
                let mut connect = Connect::new(Signed::none());
                connect.session_id = Some("s".into());
                let taken = self.took(&connect, &conn.connect(&connect, now));
                assert!(!taken || !self.connected, "another CONNECT");
            }
            5 => {
                let change = ModeChange::new(Mode::Plan);
                self.took(&change, &conn.set_mode(&change, now));
            }
            6 => {
                self.took(&ClientFrame::Interrupt, &conn.interrupt(now));
            }
            7 => {
                let asked = conn.query("s", now);
                self.asked(Kind::Status, &SessionQuery::new("s"), &asked);
            }
            _ if script.byte_or_zero() % 2 == 0 => {
                let request = AdminRequest::new(AdminAction::Promote, Signed::none());
                let asked = conn.admin(&request, now);
                self.asked(Kind::Admin, &request, &asked);
            }
            // Its reply may lie in the queue already.
            _ => {
                if let Some(call) = self.calls.first_open() {
                    let cancelled = conn.cancel(call.id);
                    call.cancelled(cancelled);
                    self.gave_up |= cancelled;
                }
            }
        }
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
                self.run_ended |= matches!(event, ClientEvent::RunEnded(_));
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
                let text = written(&response);
                let at = self.answers.iter().position(|it| it == text.as_str());
                let is_due = at == Some(0) || at.is_some() && self.run_ended;
                assert!(is_due, "an answer that did not leave");
                self.answers.drain(..=at.unwrap_or_default());
            }
            ClientEvent::Closed(_) => self.calls.assert_none_open(),
            _ => {}
        }
    }

    fn all_taken(&mut self, _: usize, run: &mut Run<'_, ClientConn>) {
        // A run that begins with an abandoned prompt has no owner.
        let is_running = run.conn.state() == ClientState::Running && !self.gave_up;
        let is_owned = !is_running || run.conn.in_flight() > 0;
        assert!(is_owned, "nothing is under way");
    }

    fn late(&mut self, conn: &mut ClientConn, now: Instant) -> Option<Refused> {
        conn.input(&Input::new("p"), now).err()
    }
}

impl Client {
    /// Whether a command was taken; its frame has to leave then.
    fn took<T>(&mut self, frame: &impl Serialize, result: &Result<T, Refused>) -> bool {
        if result.is_ok() {
            self.expected.leaves(frame);
        }
        result.is_ok()
    }

    fn asked(&mut self, kind: Kind, frame: &impl Serialize, asked: &Result<CallId, Refused>) {
        self.took(frame, asked);
        self.calls.made(asked, kind);
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
