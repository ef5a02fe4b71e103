//! The server's machine.

use std::collections::HashMap;
use std::time::Duration;

use acolyte_proto::error::AppError;
use acolyte_proto::event::{
    Checklist, ChecklistTag, Event, Part, RunKind, RunState, ToolCall, ToolOutput, ToolResult,
    Usage,
};
use acolyte_proto::frame::{ClientFrame, Reply, ServerFrame, Status};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::limits;
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use acolyte_proto::task::TaskState;
use rpc_core::{Json, Machine as _, Refused};

use super::OrderChecker;
use crate::machine::{FEW, Model, Room, Run, SLACK, drive, frequent_pings, readable, small};
use crate::script::Script;

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
struct Server {
    order: OrderChecker,
    work: Option<Work>,
    tasks: HashMap<TaskId, TaskState>,
    /// Questions that are owed an answer, and whether they are about a task.
    questions: Vec<(RpcId, bool)>,
    /// How many chats and how many other requests were made; their ids are made of it.
    chats: u64,
    asked: u64,
    room: Room,
}

/// Runs a server's connection through operations: one chat runs at a time, everything that was
/// accepted ends, and all of it in order.
pub fn server_conn(data: &[u8]) {
    let (settings, script) = Script::with_settings(data);
    let (seen, mut run) = drive(Server::default(), script, |now| {
        ServerConn::new(configured(settings), 0x5eed, now)
    });
    let over = seen.tasks.values().all(|state| state.is_terminal());
    assert!(over, "every task has an end");
    let refused = run.conn.done(&RpcId::random(0), &Reply::default());
    assert_eq!(refused, Err(Refused::Closed), "a command after the end");
}

fn configured(settings: u8) -> ServerConfig {
    let mut config = ServerConfig {
        max_queued: QUEUED,
        silent_aborts: settings & 1 == 1,
        max_unanswered: FEW,
        limits: small(),
        ..ServerConfig::default()
    };
    config.limits.max_outbox_frames = FRAMES;
    if settings & 2 == 2 {
        config.abort_grace = Duration::ZERO;
    }
    if settings & 4 == 4 {
        config.checklist = ChecklistTag::Tasklist;
    }
    if settings & 8 == 8 {
        config.keep_alive = frequent_pings();
    }
    config
}

impl Model for Server {
    type Conn = ServerConn;
    const FRAMES: usize = FRAMES;
    /// One runs, some wait, and a few more questions than may be unanswered.
    const IN_FLIGHT: usize = 1 + QUEUED + FEW + SLACK;

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        match op % 18 {
            0 => {
                let text = run.script.text();
                // What can be read has operations of its own, which know its id.
                if ClientFrame::decode(text, &limits::defaults()).is_err() {
                    self.hear(run, text);
                }
            }
            1..=3 => {
                let id = RpcId::random(self.chats);
                self.chats += 1;
                self.start(run, &id);
            }
            4 => {
                // Who looks at no events cannot tell two chats with the same id apart.
                run.take_frames(self);
                run.take_events(self);
                let id = self.chat_id(run);
                self.start(run, &id);
            }
            5 => {
                let id = self.new_id();
                self.hear(run, &format!(r#"{{"id":"{id}","type":"status.get"}}"#));
            }
            6 => {
                let id = self.new_id();
                let payload = r#"{"taskId":"task_a"}"#;
                let text = format!(r#"{{"id":"{id}","type":"task.status","payload":{payload}}}"#);
                self.hear(run, &text);
            }
            7 | 8 => {
                let chat = self.chat_id(run);
                let id = self.new_id();
                let payload = format!(r#"{{"requestId":"{chat}"}}"#);
                let text = format!(r#"{{"id":"{id}","type":"chat.abort","payload":{payload}}}"#);
                self.hear(run, &text);
            }
            9 => self.step(run),
            10 | 11 => {
                if let Some(id) = self.worked_on() {
                    let result = match run.script.byte_or_zero() % 2 {
                        0 => run.conn.done(&id, &Reply::new(run.script.text(), "m")),
                        _ => run.conn.fail(&id, &AppError::failed(run.script.text())),
                    };
                    self.ended(&id, &result);
                }
            }
            about @ 12..=13 => {
                let mut questions = self.questions.iter();
                let at = questions.position(|(_, is_task)| *is_task == (about == 13));
                if let Some(at) = at {
                    self.reply(at, run);
                }
            }
            14 => run.wait(),
            15 => run.timeout(),
            16 => run.pong(),
            _ => match run.script.byte_or_zero() {
                2 => run.conn.stop_taking(),
                other => run.happen(other),
            },
        }
        assert!(run.conn.waiting() <= QUEUED, "chats that wait are bounded");
    }

    /// Answers leave, in order.
    fn sent(&mut self, text: &str, _: &ServerConn) {
        let frame = readable(ServerFrame::decode(text, &limits::defaults()));
        if let Err(rule) = self.order.received(&frame) {
            panic!("the order is broken: {rule}");
        }
    }

    fn event(&mut self, event: ServerEvent, _: &Run<'_, ServerConn>) {
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
                // It has ended meanwhile.
                _ => {}
            },
            ServerEvent::GivenUp { id } => {
                let given_up = self.work.take_if(|work| work.id == id && work.aborted);
                assert!(given_up.is_some(), "what is given up was aborted");
            }
            ServerEvent::StatusGet { id } => self.questions.push((id, false)),
            ServerEvent::TaskStatus { id, .. } => self.questions.push((id, true)),
            ServerEvent::Writable => self.room.is_back(),
            ServerEvent::Warning(_) => {}
            ServerEvent::Closed(_) => {
                self.work = None;
                self.questions.clear();
            }
            other => panic!("no rule for {other:?}"),
        }
    }

    fn all_told(&mut self, events: usize, run: &mut Run<'_, ServerConn>) {
        // What is in flight ends with events of its own.
        let most = 4 * (FEW + QUEUED) + SLACK;
        assert!(events <= most, "events that wait are bounded: {events}");
        self.room.check(run.closed);
    }

    /// Answers everything. Whatever was accepted has then been told its end, unless the line is closed.
    fn settle(&mut self, run: &mut Run<'_, ServerConn>) {
        for _ in 0..FEW * FEW {
            run.take_frames(self);
            run.take_events(self);
            if let Some(id) = self.worked_on() {
                let result = run.conn.done(&id, &Reply::new("x", "m"));
                self.ended(&id, &result);
            }
            while !self.questions.is_empty() && !run.conn.is_closed() {
                self.reply(0, run);
                run.take_frames(self);
            }
            run.timeout();
        }
        run.take_frames(self);
        run.take_events(self);
        if !run.left && !run.conn.is_closed() {
            let finished = self.order.finished();
            assert!(finished.is_ok(), "all was answered: {finished:?}");
        }
    }
}

impl Server {
    fn new_id(&mut self) -> RpcId {
        self.asked += 1;
        RpcId::random(1_000 + self.asked)
    }

    /// An id that a chat has had, or one that none will have.
    fn chat_id(&self, run: &mut Run<'_, ServerConn>) -> RpcId {
        let number = u64::from(run.script.byte_or_zero()).checked_rem(self.chats);
        RpcId::random(number.unwrap_or(u64::MAX))
    }

    /// A line is read only while the machine wants input.
    fn hear(&mut self, run: &mut Run<'_, ServerConn>, text: &str) {
        if !run.conn.wants_input() || run.conn.is_closed() {
            return;
        }
        if let Ok(frame) = ClientFrame::decode(text, &limits::defaults()) {
            self.order.sent(&frame);
        }
        run.hear(text);
    }

    fn start(&mut self, run: &mut Run<'_, ServerConn>, id: &RpcId) {
        let payload = r#"{"request":{"message":"x","history":[],"model":"m"}}"#;
        let text = format!(r#"{{"id":"{id}","type":"chat.start","payload":{payload}}}"#);
        self.hear(run, &text);
    }

    fn worked_on(&self) -> Option<RpcId> {
        self.work.as_ref().map(|work| work.id.clone())
    }

    fn step(&mut self, run: &mut Run<'_, ServerConn>) {
        let Some(work) = &mut self.work else {
            return;
        };
        let args = Json::string("x");
        let event = match run.script.byte_or_zero() % 8 {
            0 => Event::Status(RunState::new(RunKind::Running)),
            1 => Event::Usage(Usage::new(1, 2)),
            2 => Event::Checklist(Checklist::new("g", "t")),
            3 => Event::ToolCall(ToolCall::new("c", "t", args)),
            4 => Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput)),
            5 => Event::ToolResult(ToolResult::ok("c", "t")),
            6 => Event::Error(AppError::failed("x")),
            _ => Event::text(run.script.text()),
        };
        let result = run.conn.event(&work.id, &event);
        let is_error = matches!(event, Event::Error(_));
        assert!(!is_error || result.is_err(), "`error` is not a step");
        assert!(!work.aborted || result.is_err(), "a step after an abort");
        let is_stray = !work.called && matches!(event, Event::ToolOutput(_) | Event::ToolResult(_));
        assert!(!is_stray || result.is_err(), "a result without its call");
        work.called |= result.is_ok() && matches!(event, Event::ToolCall(_));
        self.room.note(&result);
    }

    fn ended(&mut self, id: &RpcId, result: &Result<(), Refused>) {
        self.room.note(result);
        if result.is_ok() && self.worked_on().as_ref() == Some(id) {
            self.work = None;
        }
    }

    fn reply(&mut self, at: usize, run: &mut Run<'_, ServerConn>) {
        let (id, is_task) = &self.questions[at];
        let result = match is_task {
            true => run.conn.task_status(id, None),
            false => run.conn.status(id, &Status::new("m", "s")),
        };
        assert!(result != Err(Refused::UnknownId), "an answer is owed");
        self.room.note(&result);
        if result != Err(Refused::QueueFull) {
            self.questions.remove(at);
        }
    }

    fn task(&mut self, id: TaskId, state: TaskState) {
        let Some(before) = self.tasks.get_mut(&id) else {
            assert_eq!(state, TaskState::Accepted, "how a task begins");
            self.tasks.insert(id, state);
            return;
        };
        assert!(
            !before.is_terminal() && state != TaskState::Accepted,
            "a way back"
        );
        *before = state;
    }
}
