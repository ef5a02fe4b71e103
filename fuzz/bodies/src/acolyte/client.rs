//! The client's machine.

use std::time::Duration;

use acolyte_proto::client::{
    CallId, CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome,
};
use acolyte_proto::frame::{ChatRequest, ClientFrame, Request};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::limits;
use rpc_core::{Instant, Refused};

use crate::calls::{Call, Calls, State};
use crate::machine::{Model, Run, Settings, readable, small};

/// What the application saw of a client: every request and every chat ends exactly once, whatever the
/// server sends, and nothing comes after an end.
#[derive(Default)]
pub(super) struct Client {
    calls: Calls<CallId, Kind>,
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Chat,
    Abort,
    Status,
    Task,
}

impl Model for Client {
    type Conn = ClientConn;
    const OWN: u8 = 7;
    /// Aborts of chats that no one waits for follow as soon as there is room.
    const FRAMES: usize = usize::MAX;
    const LINES: &'static str = include_str!("../../frames/acolyte_server.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ClientConn) {
        let mut config = ClientConfig {
            limits: small(),
            call_timeout: Duration::from_secs(10),
            ..ClientConfig::default()
        };
        settings.removes(1, &mut config.chat_idle_timeout);
        settings.pings(2, &mut config.keep_alive);
        (Self::default(), ClientConn::new(config, 0x5eed, now))
    }

    fn ids(&self) -> &[String] {
        &self.calls.ids
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ClientConn>) {
        let (conn, script, now) = (&mut run.conn, &mut run.script, run.now);
        match op {
            0 => self.calls.made(&conn.status(now), Kind::Status),
            1 => {
                let status = conn.task_status(&TaskId::random(1), now);
                self.calls.made(&status, Kind::Task);
            }
            2 | 3 => {
                let request = ChatRequest::new(script.text(), "m");
                self.calls.made(&conn.chat(&request, now), Kind::Chat);
            }
            4 => {
                if let Some(call) = self.calls.pick(script) {
                    let is_open = call.state == State::Open && call.kind == Kind::Chat;
                    let abort = conn.abort(call.id, now);
                    assert!(is_open || abort.is_err(), "what is no chat was aborted");
                    self.calls.made(&abort, Kind::Abort);
                }
            }
            5 => self.calls.cancel(script, |id| conn.cancel(id, now)),
            _ => {
                let extend = |id, idle| conn.set_idle_timeout(id, idle, now);
                let can = |kind: &Kind| *kind == Kind::Chat;
                self.calls.extend(script, can, extend);
            }
        }
    }

    /// Requests leave, with new ids.
    fn sent(&mut self, text: &str, _: &ClientConn) {
        let frame = readable(ClientFrame::decode(text, &limits::defaults()));
        assert!(!frame.id.is_unreadable(), "an id is one of its own");
        if let Request::ChatAbort(id) = &frame.request {
            let is_chat =
                |call: &Call<_, _>| call.kind == Kind::Chat && RpcId::from(call.id) == *id;
            assert!(self.calls.any(is_chat), "an abort is of a chat");
        }
        self.calls.sent(frame.id.as_str());
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

    fn all_taken(&mut self, events: usize, _: &mut Run<'_, ClientConn>) {
        self.calls.events_taken(events);
    }

    fn late(&mut self, conn: &mut ClientConn, now: Instant) -> Option<Refused> {
        conn.status(now).err()
    }
}
