//! Body of the fuzz target of the client machine.

use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{CallError, CallId, Disconnect, Incoming, Limits, Machine, Outgoing, Refused};

use super::{FEW, SLACK, TOKEN, inert, small};
use crate::client::{ChatSummary, ClientConfig, ClientConn, ClientEvent, ClientState};
use crate::frame::{
    BudgetOf, Call, ChatHistory, ChatSend, ClientFrame, PluginUnload, SessionRef, StreamEvent,
};

/// What may follow `{"id":"...",` in a frame.
const ANSWERS: [&str; 14] = [
    r#""result":"pong"}"#,
    r#""result":null}"#,
    r#""result":{"version":"0.1.0","plugins":1,"sessions":2},"error":null}"#,
    r#""error":"unknown method: x"}"#,
    r#""error":"token budget exceeded (daily: 65/60)"}"#,
    r#""event":"text","data":"Hello"}"#,
    r#""event":"text","data":""}"#,
    r#""event":"tool_use","data":{"id":"c","name":"echo","input":{"a":[1]}}}"#,
    r#""event":"tool_result","data":{"tool_use_id":"c","content":"x","is_error":true}}"#,
    r#""event":"usage","data":{"input_tokens":150,"output_tokens":42}}"#,
    r#""event":"later","data":[1]}"#,
    r#""event":"done"}"#,
    r#""event":"error","data":"provider error: x"}"#,
    r#""event":"text","data":7}"#,
];

/// A request or a chat, from its command to its end.
struct Asked {
    id: CallId,
    is_chat: bool,
    /// What its steps came to.
    seen: ChatSummary,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Open,
    /// Cancelled; steps from before may still be there to be polled.
    Cancelled,
    Over,
}

/// What the application saw of a client.
#[derive(Default)]
struct Seen {
    asked: Vec<Asked>,
    /// Ids on the wire.
    sent: Vec<String>,
    with_token: bool,
    frames: usize,
    ready: bool,
    closed: bool,
    /// Commands since events were last taken: each may end with an event.
    commands: usize,
}

/// Runs a client through operations: every request and every chat ends exactly once, and nothing
/// comes before the hello or after an end.
pub fn client_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let config = configured(script.byte_or_zero());
    let mut seen = Seen {
        with_token: config.token.is_some(),
        ..Seen::default()
    };
    let mut conn = ClientConn::new(config, 0x5eed, now);
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
        assert!(conn.in_flight() <= FEW, "requests in flight are bounded");
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    assert!(
        conn.poll_transmit().is_none(),
        "nothing leaves over a line that is gone"
    );
    seen.events(&mut conn);
    assert!(seen.closed, "the end is told");
    inert(&mut conn, now);
    assert_eq!(
        conn.ping(now),
        Err(Refused::Closed),
        "a command after the end"
    );
}

fn configured(settings: u8) -> ClientConfig {
    let mut config = ClientConfig::new()
        .with_limits(small())
        .with_call_timeout(Duration::from_secs(30));
    if settings & 1 == 1 {
        config = config.with_token(TOKEN);
    }
    if settings & 2 == 2 {
        config = config.with_chat_idle_timeout(None);
    }
    if settings & 4 == 4 {
        config = config.with_chat_total_timeout(Some(Duration::from_secs(100)));
    }
    if settings & 8 == 8 {
        let often = KeepAlive::default().with_interval(Some(Duration::from_secs(7)));
        config = config.with_keep_alive(often.with_pong_timeout(Duration::from_secs(3)));
    }
    config
}

fn operate(
    op: u8,
    script: &mut Script<'_>,
    conn: &mut ClientConn,
    seen: &mut Seen,
    now: &mut Instant,
) {
    let at = *now;
    match op % 18 {
        0 => hear(conn, script.text(), at),
        1 | 2 => hear(conn, r#"{"ok":true,"version":"0.1.0"}"#, at),
        3..=5 => {
            let id = script.pick(&seen.sent).cloned().unwrap_or_default();
            let rest = script.pick(&ANSWERS).copied().unwrap_or_default();
            hear(conn, &format!(r#"{{"id":"{id}",{rest}"#), at);
        }
        6 => {
            let frame = [
                r#"{"error":"auth_failed","code":4001}"#,
                r#"{"id":"0","error":"parse error: missing field `id`"}"#,
                r#"{"id":"0","error":"x"}"#,
                r#"{"error":"no route"}"#,
            ];
            hear(conn, script.pick(&frame).copied().unwrap_or_default(), at);
        }
        7 => {
            if let Ok(id) = conn.ping(at) {
                seen.ask(id, false);
            }
        }
        8 => {
            let session = SessionRef::new("c", "a");
            let call = [
                Call::Status,
                Call::ChatHistory(ChatHistory {
                    session,
                    limit: Some(3),
                }),
                Call::BudgetStatus(BudgetOf::default()),
                Call::PluginUnload(PluginUnload {
                    name: "echo".into(),
                }),
                Call::ChatSend(ChatSend::new("c", "a", "hi")),
            ];
            if let Some(call) = script.pick(&call)
                && let Ok(id) = conn.request(call, at)
            {
                seen.ask(id, matches!(call, Call::ChatSend(_)));
            }
        }
        9 | 10 => {
            let chat = ChatSend::new("websocket", "ann", script.text());
            if let Ok(id) = conn.chat_send(&chat, at) {
                seen.ask(id, true);
            }
        }
        11 => {
            if let Some(asked) = seen.pick(script) {
                let was_open = asked.state == State::Open;
                let cancelled = conn.cancel(asked.id);
                assert!(was_open || !cancelled, "what is over was cancelled");
                if cancelled {
                    asked.state = State::Cancelled;
                }
            }
        }
        12 => {
            let wait = script.seconds();
            fire(conn, now, wait);
        }
        13 => conn.handle_timeout(at),
        14 => {
            let wait = script.byte_or_zero();
            let wait = (wait != 0).then(|| Duration::from_secs(u64::from(wait)));
            if let Some(asked) = seen.pick(script) {
                let changed = conn.set_timeout(asked.id, wait, at);
                assert!(
                    asked.state == State::Open || !changed,
                    "what is over still waits"
                );
            }
        }
        15 => conn.handle_message(Incoming::Pong(b""), at),
        16 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"x"), at),
        16 => {}
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.handle_disconnect(Disconnect::Eof, at),
            2 => conn.handle_disconnect(Disconnect::PeerClosed(None), at),
            _ => conn.handle_message(Incoming::Ping(b"x"), at),
        },
    }
}

/// A line is read only while the machine wants input.
fn hear(conn: &mut ClientConn, text: &str, now: Instant) {
    if conn.wants_input() {
        conn.handle_message(Incoming::Text(text), now);
    }
}

impl Seen {
    fn ask(&mut self, id: CallId, is_chat: bool) {
        assert!(
            self.asked.iter().all(|asked| asked.id != id),
            "an id was given twice"
        );
        self.commands += 1;
        self.asked.push(Asked {
            id,
            is_chat,
            seen: ChatSummary::default(),
            state: State::Open,
        });
    }

    fn pick(&mut self, script: &mut Script<'_>) -> Option<&mut Asked> {
        let at = usize::from(script.byte_or_zero());
        let at = at.checked_rem(self.asked.len())?;
        self.asked.get_mut(at)
    }

    fn find(&mut self, id: CallId) -> &mut Asked {
        match self.asked.iter_mut().find(|asked| asked.id == id) {
            Some(asked) => asked,
            None => panic!("an event about what nobody asked"),
        }
    }

    /// Takes frames: the token first, requests only after the hello, nothing after a Close.
    fn transmits(&mut self, conn: &mut ClientConn) {
        let mut taken = 0;
        let mut closed = false;
        while let Some(frame) = conn.poll_transmit() {
            assert!(!closed, "a frame after a Close");
            match frame {
                Outgoing::Text(text) => {
                    taken += 1;
                    self.sent(text.as_str(), conn);
                }
                // There is one for each interval.
                Outgoing::Ping(_) => {
                    assert!(
                        conn.state() != ClientState::AwaitHello,
                        "a ping before the hello"
                    );
                }
                Outgoing::Close(_) => closed = true,
                _ => panic!("a client must send texts"),
            }
            self.frames += 1;
        }
        assert!(taken <= FEW, "frames that wait are bounded");
    }

    fn sent(&mut self, text: &str, conn: &ClientConn) {
        let limits = Limits::default();
        match ClientFrame::decode(text, &limits) {
            Ok(ClientFrame::Token(token)) => {
                assert!(self.with_token && self.frames == 0, "a token comes first");
                assert_eq!(token.expose(), TOKEN, "the token");
            }
            Ok(ClientFrame::Request(request)) => {
                assert!(
                    conn.state() != ClientState::AwaitHello,
                    "a request before the hello"
                );
                assert!(
                    !self.with_token || self.frames > 0,
                    "a request before the token"
                );
                assert!(request.call.method().is_some(), "a request must be valid");
                let id = request.id.text().into_owned();
                assert!(!self.sent.contains(&id) && id != "0", "an id is new");
                self.sent.push(id);
            }
            Err(error) => panic!("a client must send frames only: {error}"),
        }
    }

    fn events(&mut self, conn: &mut ClientConn) {
        let mut taken = 0;
        while let Some(event) = conn.poll_event() {
            taken += 1;
            self.event(event);
        }
        assert!(
            taken <= 2 * FEW + SLACK + self.commands,
            "events that wait are bounded"
        );
        self.commands = 0;
        for asked in &mut self.asked {
            if asked.state == State::Cancelled {
                asked.state = State::Over;
            }
        }
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
    }

    fn event(&mut self, event: ClientEvent) {
        assert!(!self.closed, "an event after the last one");
        match event {
            ClientEvent::Ready(_) => {
                assert!(!self.ready, "ready twice");
                self.ready = true;
            }
            ClientEvent::Reply { id, .. } => {
                self.end(id, false);
            }
            ClientEvent::Chat { id, event } => {
                assert!(self.ready, "an answer before the hello");
                let asked = self.find(id);
                assert!(asked.is_chat, "a step of what is no chat");
                assert!(asked.state != State::Over, "a step after the end");
                asked.seen.frames += 1;
                match event {
                    StreamEvent::Text(text) => asked.seen.text_bytes += text.len() as u64,
                    StreamEvent::Usage(usage) => asked.seen.usage.add(usage),
                    _ => {}
                }
            }
            ClientEvent::ChatEnded { id, result } => {
                let asked = self.end(id, true);
                match result {
                    Ok(summary) => assert_eq!(summary, asked.seen, "a chat's summary"),
                    Err(CallError::TimedOut { delivery } | CallError::Closed { delivery, .. }) => {
                        let answered = asked.seen.frames > 0;
                        let delivered = delivery == rpc_core::Delivery::Delivered;
                        assert_eq!(answered, delivered, "whether a chat was delivered");
                    }
                    Err(_) => {}
                }
            }
            ClientEvent::GatewayError(_) | ClientEvent::Warning(_) => {}
            ClientEvent::Closed(_) => {
                self.closed = true;
                let open = self.asked.iter().any(|asked| asked.state == State::Open);
                assert!(!open, "the end leaves something open");
            }
        }
    }

    fn end(&mut self, id: CallId, is_chat: bool) -> &Asked {
        assert!(self.ready, "an answer before the hello");
        let asked = self.find(id);
        assert_eq!(asked.is_chat, is_chat, "the kind of an end");
        assert!(
            asked.state == State::Open,
            "it ended twice, or was cancelled"
        );
        asked.state = State::Over;
        asked
    }
}
