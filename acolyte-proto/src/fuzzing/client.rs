//! Body of the fuzz target of the client machine.

use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Disconnect, Incoming, Machine, Outgoing, Refused};

use super::{FEW, SLACK, inert, small};
use crate::client::{CallId, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome};
use crate::frame::{ChatRequest, ClientFrame, Request};
use crate::id::{RpcId, TaskId};
use crate::limits;

/// What may follow `{"id":"...","type":` in a frame.
const ANSWERS: [&str; 24] = [
    r#""chat.accepted","taskId":"task_a"}"#,
    r#""chat.queued","position":1}"#,
    r#""chat.queued","position":0}"#,
    r#""chat.started"}"#,
    r#""chat.event","event":{"type":"text-delta","text":"Hello"}}"#,
    r#""chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"t"}}"#,
    r#""chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"t","content":"x"}}"#,
    r#""chat.event","event":{"type":"tool-result","toolCallId":"d","toolName":"t"}}"#,
    r#""chat.event","event":{"type":"error","errorMessage":"x"}}"#,
    r#""chat.event","event":{"type":"later"}}"#,
    r#""chat.event","event":"x"}"#,
    r#""chat.done","reply":{"output":"x","model":""}}"#,
    r#""chat.done","reply":{"output":"","model":"m","error":"x"}}"#,
    r#""chat.done","payload":{}}"#,
    r#""chat.error","errorMessage":"x","errorId":null}"#,
    r#""chat.error","errorMessage":"x","errorCode":"E_ABORTED"}"#,
    r#""error","error":"refused"}"#,
    r#""error","error":{"message":"x"}}"#,
    r#""status.result","status":{"ok":true,"protocol_version":"1"}}"#,
    r#""status.result"}"#,
    r#""task.status.result","task":null}"#,
    r#""chat.abort.result","requestId":"rpc_a","aborted":true}"#,
    r#""chat.abort.result","requestId":"rpc_a","aborted":false}"#,
    r#""later","x":[1]}"#,
];

/// A request or a chat, from its command to its end.
struct Asked {
    id: CallId,
    what: What,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Chat,
    Abort,
    Status,
    Task,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    /// Cancelled; events from before may still be there to be polled.
    Cancelled,
    Over,
}

/// What the application saw of a client.
#[derive(Default)]
struct Seen {
    asked: Vec<Asked>,
    /// Ids on the wire.
    sent: Vec<RpcId>,
    ready: bool,
    closed: bool,
    /// Commands since events were last taken: each may end with an event.
    commands: usize,
}

/// Runs a client through operations: every request and every chat ends exactly once, whatever the
/// server sends, and nothing comes after an end.
pub fn client_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let config = configured(script.byte_or_zero());
    let mut seen = Seen::default();
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
    let refused = conn.status(now);
    assert_eq!(refused, Err(Refused::Closed), "a command after the end");
}

fn configured(settings: u8) -> ClientConfig {
    let mut config = ClientConfig::new()
        .with_limits(small())
        .with_call_timeout(Duration::from_secs(10));
    if settings & 1 == 1 {
        config = config.with_chat_idle_timeout(None);
    }
    if settings & 2 == 2 {
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
        1..=4 => {
            let id = script.pick(&seen.sent).map_or("rpc_a", RpcId::as_str);
            let rest = script.pick(&ANSWERS).copied().unwrap_or_default();
            hear(conn, &format!(r#"{{"id":"{id}","type":{rest}"#), at);
        }
        5 => {
            let frames = [
                r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
                r#"{"id":"rpc_unknown","type":"chat.started"}"#,
                r#"{"type":"chat.started"}"#,
                r#"{"id":"x","type":"error","error":"x"}"#,
            ];
            hear(conn, script.pick(&frames).copied().unwrap_or_default(), at);
        }
        6 => seen.ask(conn.status(at).ok(), What::Status),
        7 => seen.ask(conn.task_status(&TaskId::random(1), at).ok(), What::Task),
        8 | 9 => {
            let request = ChatRequest::new(script.text(), "m");
            seen.ask(conn.start_chat(&request, at).ok(), What::Chat);
        }
        10 => {
            if let Some(asked) = seen.pick(script) {
                let was_open = asked.state == State::Open && asked.what == What::Chat;
                let abort = conn.abort(asked.id, at).ok();
                assert!(was_open || abort.is_none(), "what is no chat was aborted");
                seen.ask(abort, What::Abort);
            }
        }
        11 => {
            if let Some(asked) = seen.pick(script) {
                let was_open = asked.state == State::Open;
                let cancelled = conn.cancel(asked.id, at);
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
            let idle = script.byte_or_zero();
            let idle = (idle != 0).then(|| Duration::from_secs(u64::from(idle)));
            if let Some(asked) = seen.pick(script) {
                let changed = conn.set_idle_timeout(asked.id, idle, at);
                let can = asked.state == State::Open && asked.what == What::Chat;
                assert!(can || !changed, "what is over still waits");
            }
        }
        15 => conn.handle_message(Incoming::Pong(b""), at),
        16 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"{\xff"), at),
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
    fn ask(&mut self, id: Option<CallId>, what: What) {
        let Some(id) = id else {
            return;
        };
        let is_new = self.asked.iter().all(|asked| asked.id != id);
        assert!(is_new, "an id was given twice");
        self.commands += 1;
        self.asked.push(Asked {
            id,
            what,
            state: State::Open,
        });
    }

    fn pick(&mut self, script: &mut Script<'_>) -> Option<&mut Asked> {
        let at = usize::from(script.byte_or_zero());
        let at = at.checked_rem(self.asked.len())?;
        self.asked.get_mut(at)
    }

    /// Takes frames: requests with new ids, nothing after a Close.
    fn transmits(&mut self, conn: &mut ClientConn) {
        let mut taken = 0;
        let mut closed = false;
        while let Some(frame) = conn.poll_transmit() {
            assert!(!closed, "a frame after a Close");
            match frame {
                Outgoing::Text(text) => {
                    taken += 1;
                    self.sent(text.as_str());
                }
                // There is one for each interval.
                Outgoing::Ping(_) => {}
                Outgoing::Close(_) => closed = true,
                _ => panic!("a client must send texts"),
            }
        }
        // Aborts of chats that nobody waits for follow as soon as there is room.
        assert!(
            taken <= FEW + self.asked.len(),
            "frames that wait are bounded"
        );
    }

    fn sent(&mut self, text: &str) {
        let frame = match ClientFrame::decode(text, &limits::defaults()) {
            Ok(frame) => frame,
            Err(error) => panic!("a client must send requests only: {error}"),
        };
        assert!(!self.sent.contains(&frame.id), "an id is new");
        assert!(!frame.id.is_unreadable(), "an id is one of its own");
        if let Request::ChatAbort(request_id) = &frame.request {
            let is_chat =
                |asked: &Asked| asked.what == What::Chat && RpcId::from(asked.id) == *request_id;
            assert!(self.asked.iter().any(is_chat), "an abort is of a chat");
        }
        self.sent.push(frame.id);
    }

    fn events(&mut self, conn: &mut ClientConn) {
        let mut taken = 0;
        while let Some(event) = conn.poll_event() {
            taken += 1;
            self.event(&event);
        }
        // What is in flight, and a few events of the last operation.
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

    fn event(&mut self, event: &ClientEvent) {
        assert!(!self.closed, "an event after the last one");
        let is_ready = matches!(event, ClientEvent::Ready);
        assert!(is_ready != self.ready, "ready comes first, and once");
        match event {
            ClientEvent::Ready => self.ready = true,
            ClientEvent::Status { id, .. } => self.end(*id, What::Status),
            ClientEvent::TaskStatus { id, .. } => self.end(*id, What::Task),
            ClientEvent::AbortResult { id, .. } => self.end(*id, What::Abort),
            ClientEvent::Chat { id, update } => match update {
                ChatUpdate::Ended(outcome) => {
                    let is_wire = !matches!(outcome, Outcome::NotSent(_));
                    assert!(is_wire, "what was asked was sent");
                    self.end(*id, What::Chat);
                }
                _ => self.goes_on(*id),
            },
            ClientEvent::ServerError(_) | ClientEvent::Unknown { .. } | ClientEvent::Warning(_) => {
            }
            ClientEvent::Closed(_) => {
                self.closed = true;
                let open = self.asked.iter().any(|asked| asked.state == State::Open);
                assert!(!open, "the end leaves something open");
            }
        }
    }

    fn find(&mut self, id: CallId, what: What) -> &mut Asked {
        match self.asked.iter_mut().find(|asked| asked.id == id) {
            Some(asked) => {
                assert_eq!(asked.what, what, "what it is about");
                asked
            }
            None => panic!("an event about what nobody asked"),
        }
    }

    fn goes_on(&mut self, id: CallId) {
        let asked = self.find(id, What::Chat);
        assert!(asked.state != State::Over, "an update after the end");
    }

    fn end(&mut self, id: CallId, what: What) {
        let asked = self.find(id, what);
        assert!(asked.state != State::Over, "it ended twice");
        asked.state = State::Over;
    }
}
