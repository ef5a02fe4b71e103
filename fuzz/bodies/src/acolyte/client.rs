//! The client's machine.

use std::time::Duration;

use acolyte_proto::client::{
    CallId, CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome,
};
use acolyte_proto::frame::{ChatRequest, ClientFrame, Request};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::limits;
use rpc_core::Refused;

use crate::calls::{Call, Calls, State};
use crate::machine::{FEW, Model, Run, SLACK, drive, frequent_pings, readable, small};
use crate::script::Script;

/// What may follow `{"id":"...","type":` in a frame.
const ANSWERS: &str = include_str!("../../frames/acolyte_answers.txt");

/// What the application saw of a client.
#[derive(Default)]
struct Client {
    calls: Calls<CallId, Kind>,
    /// Ids on the wire.
    sent: Vec<RpcId>,
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Chat,
    Abort,
    Status,
    Task,
}

/// Runs a client through operations: every request and every chat ends exactly once, whatever the
/// server sends, and nothing comes after an end.
pub fn client_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let (_, mut run) = drive(Client::default(), script, |now| {
        ClientConn::new(configured(settings), 0x5eed, now)
    });
    let refused = run.conn.status(run.now);
    assert_eq!(refused, Err(Refused::Closed), "a command after the end");
}

fn configured(settings: u8) -> ClientConfig {
    let mut config = ClientConfig {
        limits: small(),
        call_timeout: Duration::from_secs(10),
        ..ClientConfig::default()
    };
    config.chat_idle_timeout = config.chat_idle_timeout.filter(|_| settings & 1 == 0);
    if settings & 2 == 2 {
        config.keep_alive = frequent_pings();
    }
    config
}

impl Model for Client {
    type Conn = ClientConn;
    /// Aborts of chats that no one waits for follow as soon as there is room.
    const FRAMES: usize = usize::MAX;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let now = run.now;
        match op % 18 {
            0 => run.hear_text(),
            1..=4 => {
                let id = run.script.pick(&self.sent).map_or("rpc_a", RpcId::as_str);
                let rest = run.script.pick_line(ANSWERS);
                run.hear(&format!(r#"{{"id":"{id}","type":{rest}"#));
            }
            5 => run.hear_one_of(&[
                r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#,
                r#"{"id":"rpc_unknown","type":"chat.started"}"#,
                r#"{"type":"chat.started"}"#,
                r#"{"id":"x","type":"error","error":"x"}"#,
            ]),
            6 => self.calls.made(run.conn.status(now).ok(), Kind::Status),
            7 => self.calls.made(
                run.conn.task_status(&TaskId::random(1), now).ok(),
                Kind::Task,
            ),
            8 | 9 => {
                let request = ChatRequest::new(run.script.text(), "m");
                self.calls
                    .made(run.conn.chat(&request, now).ok(), Kind::Chat);
            }
            10 => {
                if let Some(call) = self.calls.pick(&mut run.script) {
                    let is_open = call.state == State::Open && call.kind == Kind::Chat;
                    let abort = run.conn.abort(call.id, now);
                    assert!(is_open || abort.is_err(), "what is no chat was aborted");
                    self.calls.made(abort.ok(), Kind::Abort);
                }
            }
            11 => self
                .calls
                .cancel(&mut run.script, |id| run.conn.cancel(id, now)),
            12 => run.wait(),
            13 => run.timeout(),
            14 => {
                let can = |kind: &Kind| *kind == Kind::Chat;
                let extend = |id, idle| run.conn.set_idle_timeout(id, idle, now);
                self.calls.extend(&mut run.script, can, extend);
            }
            15 => run.pong(),
            16 => run.hear_binary(b"{\xff"),
            _ => run.line(),
        }
    }

    /// Requests leave, with new ids.
    fn sent(&mut self, text: &str, _: &ClientConn) {
        let frame = readable(ClientFrame::decode(text, &limits::defaults()));
        assert!(!self.sent.contains(&frame.id), "an id is new");
        assert!(!frame.id.is_unreadable(), "an id is one of its own");
        if let Request::ChatAbort(id) = &frame.request {
            let is_chat =
                |call: &Call<_, _>| call.kind == Kind::Chat && RpcId::from(call.id) == *id;
            assert!(self.calls.any(is_chat), "an abort is of a chat");
        }
        self.sent.push(frame.id);
    }

    fn event(&mut self, event: ClientEvent, _: &Run<'_, ClientConn>) {
        let is_ready = matches!(event, ClientEvent::Ready);
        assert!(is_ready != self.ready, "ready comes first, and once");
        match event {
            ClientEvent::Ready => self.ready = true,
            ClientEvent::Reply { id, result } => {
                let kind = result.ok().map(|value| match value {
                    CallValue::Status(_) => Kind::Status,
                    CallValue::Task(_) => Kind::Task,
                    _ => Kind::Abort,
                });
                self.calls.end(id, kind.as_ref());
            }
            ClientEvent::Chat { id, update } => match update {
                ChatUpdate::Ended(outcome) => {
                    let is_wire = !matches!(outcome, Outcome::NotSent(_));
                    assert!(is_wire, "what was asked was sent");
                    // What was cancelled may end all the same: its end may lie there already.
                    self.calls.end(id, Some(&Kind::Chat));
                }
                _ => self.calls.goes_on(id, &Kind::Chat),
            },
            ClientEvent::Closed(_) => self.calls.assert_none_open(),
            ClientEvent::ServerError(_) | ClientEvent::Unknown { .. } | ClientEvent::Warning(_) => {
            }
            other => panic!("no rule for {other:?}"),
        }
    }

    fn all_told(&mut self, events: usize, _: &mut Run<'_, ClientConn>) {
        // What is in flight, and a few events of the last operation.
        let most = 2 * FEW + SLACK + self.calls.recent;
        assert!(events <= most, "events that wait are bounded");
        self.calls.events_taken();
    }
}
