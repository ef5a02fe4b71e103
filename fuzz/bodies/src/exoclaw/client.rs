//! The client's machine.

use std::collections::HashMap;
use std::time::Duration;

use exoclaw_proto::client::{ChatSummary, ClientConfig, ClientConn, ClientEvent, ClientState};
use exoclaw_proto::frame::{
    BudgetOf, Call, ChatHistory, ChatSend, ClientFrame, SessionRef, StreamEvent,
};
use rpc_core::{CallError, CallId, Delivery, Limits, Outgoing, Refused};

use super::TOKEN;
use crate::calls::{Calls, State};
use crate::machine::{FEW, Model, Run, SLACK, drive, frequent_pings, small};
use crate::script::Script;

/// What may follow `{"id":"...",` in a frame.
const ANSWERS: &str = include_str!("../../frames/exoclaw_answers.txt");

/// What the application saw of a client.
#[derive(Default)]
struct Client {
    calls: Calls<CallId, Kind>,
    /// What the steps of chats came to so far.
    steps: HashMap<CallId, ChatSummary>,
    /// Ids on the wire.
    sent: Vec<String>,
    with_token: bool,
    frames: usize,
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Request,
    Chat,
}

/// Runs a client through operations: every request and every chat ends exactly once, and nothing
/// comes before the hello or after an end.
pub fn client_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let config = configured(settings);
    let model = Client {
        with_token: config.token.is_some(),
        ..Client::default()
    };
    let conn = |now| ClientConn::new(config.clone(), 0x5eed, now);
    let (_, mut run) = drive(model, script, conn);
    let refused = run.conn.ping(run.now);
    assert_eq!(refused, Err(Refused::Closed), "a command after the end");
}

fn configured(settings: u8) -> ClientConfig {
    let mut config = ClientConfig {
        limits: small(),
        call_timeout: Duration::from_secs(30),
        token: (settings & 1 == 1).then(|| TOKEN.into()),
        chat_total_timeout: (settings & 4 == 4).then_some(Duration::from_secs(100)),
        ..ClientConfig::default()
    };
    config.chat_idle_timeout = config.chat_idle_timeout.filter(|_| settings & 2 == 0);
    if settings & 8 == 8 {
        config.keep_alive = frequent_pings();
    }
    config
}

impl Model for Client {
    type Conn = ClientConn;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let now = run.now;
        match op % 18 {
            0 => run.hear_text(),
            1 | 2 => run.hear(r#"{"ok":true,"version":"0.1.0"}"#),
            3..=5 => {
                let id = run.script.pick(&self.sent).cloned().unwrap_or_default();
                let rest = run.script.pick_line(ANSWERS);
                run.hear(&format!(r#"{{"id":"{id}",{rest}"#));
            }
            6 => run.hear_one_of(&[
                r#"{"error":"auth_failed","code":4001}"#,
                r#"{"id":"0","error":"parse error: missing field `id`"}"#,
                r#"{"id":"0","error":"x"}"#,
                r#"{"error":"no route"}"#,
            ]),
            7 => self.calls.made(run.conn.ping(now).ok(), Kind::Request),
            8 => {
                let session = SessionRef::new("c", "a");
                let call = [
                    Call::Status,
                    Call::ChatHistory(ChatHistory {
                        session,
                        limit: Some(3),
                    }),
                    Call::BudgetStatus(BudgetOf::default()),
                    Call::ChatSend(ChatSend::new("c", "a", "hi")),
                ];
                if let Some(call) = run.script.pick(&call) {
                    let kind = match call {
                        Call::ChatSend(_) => Kind::Chat,
                        _ => Kind::Request,
                    };
                    self.calls.made(run.conn.request(call, now).ok(), kind);
                }
            }
            9 | 10 => {
                let chat = ChatSend::new("websocket", "ann", run.script.text());
                self.calls
                    .made(run.conn.chat_send(&chat, now).ok(), Kind::Chat);
            }
            11 => self.calls.cancel(&mut run.script, |id| run.conn.cancel(id)),
            12 => run.wait(),
            13 => run.timeout(),
            14 => {
                let extend = |id, wait| run.conn.set_timeout(id, wait, now);
                self.calls.extend(&mut run.script, |_| true, extend);
            }
            15 => run.pong(),
            16 => run.hear_binary(b"x"),
            _ => run.line(),
        }
    }

    /// The token comes first, and requests only after the hello.
    fn sent(&mut self, text: &str, conn: &ClientConn) {
        match ClientFrame::decode(text, &Limits::default()) {
            Ok(ClientFrame::Token(token)) => {
                assert!(self.with_token && self.frames == 0, "a token comes first");
                assert_eq!(token.expose(), TOKEN, "the token");
            }
            Ok(ClientFrame::Request(request)) => {
                let is_open = conn.state() != ClientState::AwaitHello;
                assert!(is_open, "a request before the hello");
                let is_second = !self.with_token || self.frames > 0;
                assert!(is_second, "a request before the token");
                assert!(request.call.method().is_some(), "a request must be valid");
                let id = request.id.text().into_owned();
                assert!(!self.sent.contains(&id) && id != "0", "an id is new");
                self.sent.push(id);
            }
            other => panic!("a client must send its frames only: {other:?}"),
        }
        self.frames += 1;
    }

    fn sent_control(&mut self, frame: &Outgoing, conn: &ClientConn) {
        let is_early = conn.state() == ClientState::AwaitHello;
        let is_ping = matches!(frame, Outgoing::Ping(_));
        assert!(!(is_early && is_ping), "a ping before the hello");
        self.frames += 1;
    }

    fn event(&mut self, event: ClientEvent, _: &Run<'_, ClientConn>) {
        let is_answer = matches!(
            event,
            ClientEvent::Reply { .. } | ClientEvent::Chat { .. } | ClientEvent::ChatEnded { .. }
        );
        assert!(self.ready || !is_answer, "an answer before the hello");
        match event {
            ClientEvent::Ready(_) => {
                assert!(!self.ready, "ready twice");
                self.ready = true;
            }
            ClientEvent::Reply { id, .. } => self.ended(id, Kind::Request),
            ClientEvent::Chat { id, event } => {
                self.calls.goes_on(id, &Kind::Chat);
                let steps = self.steps.entry(id).or_default();
                steps.frames += 1;
                match event {
                    StreamEvent::Text(text) => steps.text_bytes += text.len() as u64,
                    StreamEvent::Usage(usage) => steps.usage.add(usage),
                    _ => {}
                }
            }
            ClientEvent::ChatEnded { id, result } => {
                self.ended(id, Kind::Chat);
                let steps = self.steps.remove(&id).unwrap_or_default();
                match result {
                    Ok(summary) => assert_eq!(summary, steps, "a chat's summary"),
                    Err(CallError::TimedOut { delivery } | CallError::Closed { delivery, .. }) => {
                        let answered = steps.frames > 0;
                        let delivered = delivery == Delivery::Delivered;
                        assert_eq!(answered, delivered, "whether a chat was delivered");
                    }
                    Err(_) => {}
                }
            }
            ClientEvent::GatewayError(_) | ClientEvent::Warning(_) => {}
            ClientEvent::Closed(_) => self.calls.assert_none_open(),
            other => panic!("no rule for {other:?}"),
        }
    }

    fn all_told(&mut self, events: usize, _: &mut Run<'_, ClientConn>) {
        let most = 2 * FEW + SLACK + self.calls.recent;
        assert!(events <= most, "events that wait are bounded");
        self.calls.events_taken();
    }
}

impl Client {
    fn ended(&mut self, id: CallId, kind: Kind) {
        let before = self.calls.end(id, Some(&kind));
        assert_eq!(before, State::Open, "the end of what was cancelled");
    }
}
