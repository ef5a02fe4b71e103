//! Body of the fuzz target of the server machine.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, fire};
use rpc_core::keepalive::KeepAlive;
use rpc_core::{Disconnect, Incoming, Json, Machine, Outgoing, Refused};

use super::{FEW, OrderChecker, SLACK, inert, small};
use crate::error::ChatError;
use crate::event::{
    Checklist, ChecklistTag, Event, Part, RunState, ToolCall, ToolOutput, ToolResult, Usage,
};
use crate::frame::{ClientFrame, Reply, ServerFrame, Status};
use crate::id::{RpcId, TaskId};
use crate::limits;
use crate::server::{ServerConfig, ServerConn, ServerEvent};
use crate::task::TaskState;

/// Most chats that wait.
const QUEUED: usize = 3;
/// Room for what one abort sends, so that a line is not given up at once.
const FRAMES: usize = 12;

/// The chat that the application works on.
struct Work {
    id: RpcId,
    aborted: bool,
    /// It has called its tool.
    called: bool,
}

#[derive(Default)]
struct Seen {
    order: OrderChecker,
    work: Option<Work>,
    tasks: HashMap<TaskId, TaskState>,
    /// Questions that are owed an answer.
    status: Vec<RpcId>,
    task_status: Vec<RpcId>,
    /// How many chats and how many other requests were made; their ids are made of it.
    chats: u64,
    asked: u64,
    /// The client has seen a Close.
    close_sent: bool,
    closed: bool,
    /// A command found no room since frames were last taken.
    blocked: bool,
}

/// Runs a server's connection through operations: one chat runs at a time, everything that was
/// accepted comes to its end, and all of it in order.
pub fn server_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let mut seen = Seen::default();
    let mut conn = ServerConn::new(configured(script.byte_or_zero()), 0x5eed, now);
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            seen.transmits(&mut conn);
        }
        if op & 0xc0 == 0 {
            seen.events(&mut conn);
        }
        operate(op & 0x3f, &mut script, &mut conn, &mut seen, &mut now);
        assert!(conn.waiting() <= QUEUED, "chats that wait are bounded");
    }
    settle(&mut conn, &mut seen, now);
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    assert!(
        conn.poll_transmit().is_none(),
        "nothing leaves over a line that is gone"
    );
    seen.events(&mut conn);
    assert!(seen.closed, "the end is told");
    let over = seen.tasks.values().all(|state| state.is_terminal());
    assert!(over, "every task has an end");
    inert(&mut conn, now);
    let refused = conn.done(&RpcId::random(0), &Reply::default());
    assert_eq!(refused, Err(Refused::Closed), "a command after the end");
}

/// Answers everything. Whatever was accepted has then been told its end, unless the line is closed.
fn settle(conn: &mut ServerConn, seen: &mut Seen, now: Instant) {
    for _ in 0..FEW * FEW {
        seen.transmits(conn);
        seen.events(conn);
        if let Some(id) = seen.work.as_ref().map(|work| work.id.clone()) {
            let result = conn.done(&id, &Reply::new("x", "m"));
            seen.ended(&id, &result);
        }
        while let Some(id) = seen.status.pop() {
            let _ = conn.status(&id, &Status::new("m", "s"));
            seen.transmits(conn);
        }
        while let Some(id) = seen.task_status.pop() {
            let _ = conn.task_status(&id, None);
            seen.transmits(conn);
        }
        conn.handle_timeout(now);
    }
    seen.transmits(conn);
    seen.events(conn);
    if !seen.close_sent && !conn.is_closed() {
        let finished = seen.order.finished();
        assert!(finished.is_ok(), "all was answered: {finished:?}");
    }
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig::default()
        .with_max_queued(QUEUED)
        .with_silent_aborts(settings & 1 == 1)
        .with_max_unanswered(FEW)
        .with_limits(small().with_max_outbox_frames(FRAMES));
    if settings & 2 == 2 {
        config = config.with_abort_grace(Duration::ZERO);
    }
    if settings & 4 == 4 {
        config = config.with_checklist(ChecklistTag::Tasklist);
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
    conn: &mut ServerConn,
    seen: &mut Seen,
    now: &mut Instant,
) {
    let at = *now;
    match op % 18 {
        0 => {
            let text = script.text();
            // What can be read has operations of its own, which know its id.
            if ClientFrame::decode(text, &limits::defaults()).is_err() {
                seen.hear(conn, text, at);
            }
        }
        1..=3 => {
            let id = RpcId::random(seen.chats);
            seen.chats += 1;
            seen.start(conn, &id, at);
        }
        4 => {
            // Who looks at no events cannot tell two chats with the same id apart.
            seen.transmits(conn);
            seen.events(conn);
            let id = seen.chat_id(script);
            seen.start(conn, &id, at);
        }
        5 => {
            let id = seen.new_id();
            seen.hear(conn, &format!(r#"{{"id":"{id}","type":"status.get"}}"#), at);
        }
        6 => {
            let id = seen.new_id();
            let payload = r#"{"taskId":"task_a"}"#;
            let text = format!(r#"{{"id":"{id}","type":"task.status","payload":{payload}}}"#);
            seen.hear(conn, &text, at);
        }
        7 | 8 => {
            let chat = seen.chat_id(script);
            let id = seen.new_id();
            let payload = format!(r#"{{"requestId":"{chat}"}}"#);
            let text = format!(r#"{{"id":"{id}","type":"chat.abort","payload":{payload}}}"#);
            seen.hear(conn, &text, at);
        }
        9 => seen.step(script, conn),
        10 | 11 => {
            if let Some(id) = seen.worked_on() {
                let result = match script.byte_or_zero() % 2 {
                    0 => conn.done(&id, &Reply::new(script.text(), "m")),
                    _ => conn.fail(&id, &ChatError::new(script.text())),
                };
                seen.ended(&id, &result);
            }
        }
        12 => {
            if let Some(id) = seen.status.pop() {
                let result = conn.status(&id, &Status::new("m", "s"));
                seen.answered(id, &result, |seen| &mut seen.status);
            }
        }
        13 => {
            if let Some(id) = seen.task_status.pop() {
                let result = conn.task_status(&id, None);
                seen.answered(id, &result, |seen| &mut seen.task_status);
            }
        }
        14 => {
            let wait = script.seconds();
            fire(conn, now, wait);
        }
        15 => conn.handle_timeout(at),
        16 => conn.handle_message(Incoming::Pong(b""), at),
        _ => match script.byte_or_zero() {
            0 => conn.close(at),
            1 => conn.handle_disconnect(Disconnect::Eof, at),
            2 => conn.stop_taking(),
            3 if conn.wants_input() => conn.handle_message(Incoming::Binary(b"{\xff"), at),
            _ => conn.handle_message(Incoming::Ping(b"x"), at),
        },
    }
}

impl Seen {
    fn new_id(&mut self) -> RpcId {
        self.asked += 1;
        RpcId::random(1_000 + self.asked)
    }

    /// An id that a chat has had, or one that none will have.
    fn chat_id(&self, script: &mut Script<'_>) -> RpcId {
        let number = u64::from(script.byte_or_zero()).checked_rem(self.chats);
        RpcId::random(number.unwrap_or(u64::MAX))
    }

    /// A line is read only while the machine wants input.
    fn hear(&mut self, conn: &mut ServerConn, text: &str, now: Instant) {
        if !conn.wants_input() || conn.is_closed() {
            return;
        }
        if let Ok(frame) = ClientFrame::decode(text, &limits::defaults()) {
            self.order.sent(&frame);
        }
        conn.handle_message(Incoming::Text(text), now);
    }

    fn start(&mut self, conn: &mut ServerConn, id: &RpcId, now: Instant) {
        let payload = r#"{"request":{"message":"x","history":[],"model":"m"}}"#;
        let text = format!(r#"{{"id":"{id}","type":"chat.start","payload":{payload}}}"#);
        self.hear(conn, &text, now);
    }

    fn worked_on(&self) -> Option<RpcId> {
        self.work.as_ref().map(|work| work.id.clone())
    }

    fn step(&mut self, script: &mut Script<'_>, conn: &mut ServerConn) {
        let Some(work) = &mut self.work else {
            return;
        };
        let args = Json::string("x");
        let event = match script.byte_or_zero() % 8 {
            0 => Event::Status(RunState::RUNNING),
            1 => Event::Usage(Usage::new(1, 2)),
            2 => Event::Checklist(Checklist::new("g", "t")),
            3 => Event::ToolCall(ToolCall::new("c", "t", args)),
            4 if work.called => Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput)),
            5 if work.called => Event::ToolResult(ToolResult::ok("c", "t")),
            6 => Event::Error(ChatError::new("x")),
            _ => Event::text(script.text()),
        };
        let result = conn.event(&work.id, &event);
        let is_error = matches!(event, Event::Error(_));
        assert!(!is_error || result.is_err(), "`error` is no step");
        assert!(!work.aborted || result.is_err(), "a step after an abort");
        work.called |= result.is_ok() && matches!(event, Event::ToolCall(_));
        self.blocked |= result == Err(Refused::QueueFull);
    }

    fn ended(&mut self, id: &RpcId, result: &Result<(), Refused>) {
        self.blocked |= *result == Err(Refused::QueueFull);
        if result.is_ok() && self.worked_on().as_ref() == Some(id) {
            self.work = None;
        }
    }

    fn answered(
        &mut self,
        id: RpcId,
        result: &Result<(), Refused>,
        owed: impl Fn(&mut Self) -> &mut Vec<RpcId>,
    ) {
        assert!(*result != Err(Refused::UnknownId), "an answer is owed");
        if *result == Err(Refused::QueueFull) {
            self.blocked = true;
            owed(self).push(id);
        }
    }

    /// Takes frames: answers in order, nothing after a Close.
    fn transmits(&mut self, conn: &mut ServerConn) {
        let mut taken = 0;
        while let Some(frame) = conn.poll_transmit() {
            assert!(!self.close_sent, "a frame after a Close");
            match frame {
                Outgoing::Text(text) => {
                    taken += 1;
                    self.sent(text.as_str());
                }
                Outgoing::Close(_) => self.close_sent = true,
                // There is one for each interval.
                Outgoing::Ping(_) => {}
                _ => panic!("a server must send texts"),
            }
        }
        assert!(taken <= FRAMES, "frames that wait are bounded");
    }

    fn sent(&mut self, text: &str) {
        let frame = match ServerFrame::decode(text, &limits::defaults()) {
            Ok(frame) => frame,
            Err(error) => panic!("a server must send answers only: {error}"),
        };
        if let Err(rule) = self.order.received(&frame) {
            panic!("the order is broken: {rule}");
        }
    }

    fn events(&mut self, conn: &mut ServerConn) {
        let mut taken = 0;
        let mut writable = false;
        while let Some(event) = conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            taken += 1;
            writable |= event == ServerEvent::Writable;
            self.event(event);
        }
        // What is in flight ends with events of its own.
        assert!(
            taken <= 4 * (FEW + QUEUED) + SLACK,
            "events that wait are bounded: {taken}"
        );
        assert_eq!(self.closed, conn.is_closed(), "the end is told");
        // Frames were taken just before, all of them.
        assert!(
            !self.blocked || writable || self.closed,
            "room came back and nobody was told"
        );
        self.blocked = false;
    }

    fn event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Task { task_id, state } => self.task(task_id, state),
            ServerEvent::Start { id, .. } => {
                assert!(self.work.is_none(), "one chat runs at a time");
                self.work = Some(Work {
                    id,
                    aborted: false,
                    called: false,
                });
            }
            ServerEvent::Abort { id } => match &mut self.work {
                Some(work) if work.id == id => {
                    assert!(!work.aborted, "an abort is told once");
                    work.aborted = true;
                }
                // It has come to its end meanwhile.
                _ => {}
            },
            ServerEvent::GivenUp { id } => {
                let given_up = self.work.take_if(|work| work.id == id && work.aborted);
                assert!(given_up.is_some(), "what is given up was aborted");
            }
            ServerEvent::StatusGet { id } => self.status.insert(0, id),
            ServerEvent::TaskStatus { id, .. } => self.task_status.insert(0, id),
            ServerEvent::Warning(_) | ServerEvent::Writable => {}
            ServerEvent::Closed(_) => {
                self.closed = true;
                self.work = None;
                self.status.clear();
                self.task_status.clear();
            }
        }
    }

    fn task(&mut self, id: TaskId, state: TaskState) {
        let Some(before) = self.tasks.get_mut(&id) else {
            assert_eq!(state, TaskState::Accepted, "how a task begins");
            self.tasks.insert(id, state);
            return;
        };
        match before.transition(state) {
            Ok(after) => *before = after,
            Err(error) => panic!("{error}"),
        }
    }
}
