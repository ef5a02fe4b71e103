//! The client's machine.

use std::collections::HashMap;
use std::time::Duration;

use exoclaw_proto::client::{ChatSummary, ClientConfig, ClientConn, ClientEvent, ClientState};
use exoclaw_proto::frame::{
    BudgetOf, Call, ChatHistory, ChatSend, ClientFrame, SessionRef, StreamEvent,
};
use rpc_core::{CallError, CallId, Delivery, Instant, Limits, Outgoing, Refused};

use super::TOKEN;
use crate::calls::{Calls, State};
use crate::machine::{Model, Run, Settings, small};

/// What the application saw of a client: every request and every chat ends exactly once, and nothing
/// comes before the hello or after an end.
#[derive(Default)]
pub(super) struct Client {
    calls: Calls<CallId, Kind>,
    /// What the steps of chats came to so far.
    steps: HashMap<CallId, ChatSummary>,
    with_token: bool,
    frames: usize,
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Request,
    Chat,
}

impl Model for Client {
    type Conn = ClientConn;
    const OWN: u8 = 6;
    const LINES: &'static str = include_str!("../../frames/exoclaw_server.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ClientConn) {
        let with_token = settings.has(1);
        let mut config = ClientConfig {
            limits: small(),
            call_timeout: Duration::from_secs(30),
            token: with_token.then(|| TOKEN.into()),
            chat_total_timeout: settings.has(4).then_some(Duration::from_secs(100)),
            ..ClientConfig::default()
        };
        settings.removes(2, &mut config.chat_idle_timeout);
        settings.pings(8, &mut config.keep_alive);
        let model = Self {
            with_token,
            ..Self::default()
        };
        (model, ClientConn::new(config, 0x5eed, now))
    }

    fn ids(&self) -> &[String] {
        &self.calls.ids
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let (conn, script, now) = (&mut run.conn, &mut run.script, run.now);
        match op {
            0 => self.calls.made(&conn.ping(now), Kind::Request),
            1 => {
                let session = SessionRef::new("c", "a");
                let limit = Some(3);
                let (call, kind) = match script.byte_or_zero() % 4 {
                    0 => (Call::Status, Kind::Request),
                    1 => {
                        let history = ChatHistory { session, limit };
                        (Call::ChatHistory(history), Kind::Request)
                    }
                    2 => (Call::BudgetStatus(BudgetOf::default()), Kind::Request),
                    _ => (Call::ChatSend(ChatSend::new("c", "a", "hi")), Kind::Chat),
                };
                self.calls.made(&conn.request(&call, now), kind);
            }
            2 | 3 => {
                let chat = ChatSend::new("websocket", "ann", script.text());
                self.calls.made(&conn.chat_send(&chat, now), Kind::Chat);
            }
            4 => self.calls.cancel(script, |id| conn.cancel(id)),
            _ => {
                let extend = |id, wait| conn.set_timeout(id, wait, now);
                self.calls.extend(script, |_| true, extend);
            }
        }
    }

    /// The token comes first, and requests only after the hello.
    fn sent(&mut self, text: &str, conn: &ClientConn) {
        let is_first = self.frames == 0;
        match ClientFrame::decode(text, &Limits::default()) {
            Ok(ClientFrame::Token(token)) => {
                assert!(self.with_token && is_first, "a token comes first");
                assert_eq!(token.expose(), TOKEN, "the token");
            }
            Ok(ClientFrame::Request(request)) => {
                let is_open = conn.state() != ClientState::AwaitHello;
                assert!(is_open, "a request before the hello");
                assert!(!self.with_token || !is_first, "a request before the token");
                assert!(request.call.method().is_some(), "a request must be valid");
                let id = request.id.text();
                assert!(id != "0", "an id is one of its own");
                self.calls.sent(id);
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
        use ClientEvent::{Chat, ChatEnded, Closed, GatewayError, Ready, Reply, Warning};
        let is_answer = matches!(event, Reply { .. } | Chat { .. } | ChatEnded { .. });
        assert!(self.ready || !is_answer, "an answer before the hello");
        match event {
            Ready(_) => {
                assert!(!self.ready, "ready twice");
                self.ready = true;
            }
            Reply { id, .. } => self.ended(id, Kind::Request),
            Chat { id, event } => {
                self.calls.goes_on(id, &Kind::Chat);
                let steps = self.steps.entry(id).or_default();
                steps.frames += 1;
                match event {
                    StreamEvent::Text(text) => steps.text_bytes += text.len() as u64,
                    StreamEvent::Usage(usage) => steps.usage.add(usage),
                    _ => {}
                }
            }
            ChatEnded { id, result } => {
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
            GatewayError(_) | Warning(_) => {}
            Closed(_) => self.calls.assert_none_open(),
            other => panic!("no rule for {other:?}"),
        }
    }

    fn all_taken(&mut self, events: usize, _: &mut Run<'_, ClientConn>) {
        self.calls.events_taken(events);
    }

    fn late(&mut self, conn: &mut ClientConn, now: Instant) -> Option<Refused> {
        conn.ping(now).err()
    }
}

impl Client {
    fn ended(&mut self, id: CallId, kind: Kind) {
        let before = self.calls.end(id, Some(&kind));
        assert_eq!(before, State::Open, "the end of what was cancelled");
    }
}
