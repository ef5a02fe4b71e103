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
use rpc_core::{Instant, Json, Machine as _, Refused};

use super::OrderChecker;
use crate::machine::{FEW, Model, Room, Run, SLACK, Settings, readable, small};

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

/// What the application saw of a server: one chat runs at a time, everything that was accepted ends,
/// and all of it in order.
#[derive(Default)]
pub(super) struct Server {
    order: OrderChecker,
    work: Option<Work>,
    tasks: HashMap<TaskId, TaskState>,
    /// Questions that are owed an answer, and whether they are about a task.
    questions: Vec<(RpcId, bool)>,
    /// The ids of chats.
    chats: Vec<String>,
    /// How many ids were made.
    made: u64,
    room: Room,
}

impl Model for Server {
    type Conn = ServerConn;
    const OWN: u8 = 6;
    const FRAMES: usize = FRAMES;
    /// One runs, some wait, and a few more questions than may be unanswered.
    const IN_FLIGHT: usize = 1 + QUEUED + FEW + SLACK;
    const LINES: &'static str = include_str!("../../frames/acolyte_client.txt");

    fn new(settings: Settings, now: Instant) -> (Self, ServerConn) {
        let mut config = ServerConfig {
            max_queued: QUEUED,
            silent_aborts: settings.has(1),
            max_unanswered: FEW,
            limits: small(),
            ..ServerConfig::default()
        };
        config.limits.max_outbox_frames = FRAMES;
        if settings.has(2) {
            config.abort_grace = Duration::ZERO;
        }
        if settings.has(4) {
            config.checklist = ChecklistTag::Tasklist;
        }
        settings.pings(8, &mut config.keep_alive);
        (Self::default(), ServerConn::new(config, 0x5eed, now))
    }

    /// `$NEW` is a new id, `$ID` one that a chat has had.
    fn line(&mut self, run: &mut Run<'_, ServerConn>) -> String {
        let line = run.script.line(Self::LINES, &self.chats);
        if !line.contains("$NEW") {
            // Who looks at no events cannot tell two chats with the same id apart.
            run.take_frames(self);
            run.take_events(self);
            return line;
        }
        let id = RpcId::random(self.made).to_string();
        self.made += 1;
        let line = line.replace("$NEW", &id);
        self.chats.extend(line.contains("chat.start").then_some(id));
        line
    }

    /// What can be read is a line, whose id is known.
    fn allows(&self, text: &str) -> bool {
        ClientFrame::decode(text, &limits::defaults()).is_err()
    }

    fn receive(&mut self, text: &str, run: &mut Run<'_, ServerConn>) {
        if !run.conn.wants_input() || run.conn.is_closed() {
            return;
        }
        if let Ok(frame) = ClientFrame::decode(text, &limits::defaults()) {
            self.order.sent(&frame);
        }
        run.receive(text);
    }

    fn operate(&mut self, op: u8, run: &mut Run<'_, ServerConn>) {
        let (conn, script) = (&mut run.conn, &mut run.script);
        match op {
            0 => self.step(run),
            1 | 2 => {
                if let Some(id) = self.worked_on() {
                    let result = match script.byte_or_zero() % 2 {
                        0 => conn.done(&id, &Reply::new(script.text(), "m")),
                        _ => conn.fail(&id, &AppError::failed(script.text())),
                    };
                    self.ended(&id, &result);
                }
            }
            3 | 4 => {
                let mut questions = self.questions.iter();
                if let Some(at) = questions.position(|(_, is_task)| *is_task == (op == 4)) {
                    self.reply(at, conn);
                }
            }
            _ => conn.stop_taking(),
        }
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
            ServerEvent::Abort { id } => {
                // It may have ended meanwhile.
                if let Some(work) = self.work.as_mut().filter(|work| work.id == id) {
                    assert!(!work.aborted, "an abort is reported once");
                    work.aborted = true;
                }
            }
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

    fn all_taken(&mut self, events: usize, run: &mut Run<'_, ServerConn>) {
        // What is in flight ends with events of its own.
        let most = 4 * (FEW + QUEUED) + SLACK;
        assert!(events <= most, "events that wait are bounded: {events}");
        assert!(run.conn.waiting() <= QUEUED, "chats that wait are bounded");
        self.room.check(run.closed);
    }

    /// Answers everything. Whatever was accepted has an end then, unless the line is closed.
    fn settle(&mut self, run: &mut Run<'_, ServerConn>) {
        for _ in 0..FEW * FEW {
            run.take_frames(self);
            run.take_events(self);
            if let Some(id) = self.worked_on() {
                let result = run.conn.done(&id, &Reply::new("x", "m"));
                self.ended(&id, &result);
            }
            while !self.questions.is_empty() && !run.conn.is_closed() {
                self.reply(0, &mut run.conn);
                run.take_frames(self);
            }
            run.conn.handle_timeout(run.now);
        }
        run.take_frames(self);
        run.take_events(self);
        if !run.left && !run.conn.is_closed() {
            let finished = self.order.finished();
            assert!(finished.is_ok(), "all was answered: {finished:?}");
        }
    }

    fn late(&mut self, conn: &mut ServerConn, _: Instant) -> Option<Refused> {
        let over = self.tasks.values().all(|state| state.is_terminal());
        assert!(over, "every task has an end");
        conn.done(&RpcId::random(0), &Reply::default()).err()
    }
}

impl Server {
    fn worked_on(&self) -> Option<RpcId> {
        self.work.as_ref().map(|work| work.id.clone())
    }

    fn step(&mut self, run: &mut Run<'_, ServerConn>) {
        let Some(work) = &mut self.work else {
            return;
        };
        let event = match run.script.byte_or_zero() % 8 {
            0 => Event::Status(RunState::new(RunKind::Running)),
            1 => Event::Usage(Usage::new(1, 2)),
            2 => Event::Checklist(Checklist::new("g", "t")),
            3 => Event::ToolCall(ToolCall::new("c", "t", Json::string("x"))),
            4 => Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput)),
            5 => Event::ToolResult(ToolResult::ok("c", "t")),
            6 => Event::Error(AppError::failed("x")),
            _ => Event::text(run.script.text()),
        };
        let result = run.conn.event(&work.id, &event);
        let is_stray = match event {
            Event::Error(_) => true,
            Event::ToolOutput(_) | Event::ToolResult(_) => !work.called,
            _ => false,
        };
        assert!(!is_stray || result.is_err(), "a result without its call");
        assert!(!work.aborted || result.is_err(), "a step after an abort");
        work.called |= result.is_ok() && matches!(event, Event::ToolCall(_));
        self.room.note(&result);
    }

    fn ended(&mut self, id: &RpcId, result: &Result<(), Refused>) {
        self.room.note(result);
        if result.is_ok() {
            self.work.take_if(|work| work.id == *id);
        }
    }

    fn reply(&mut self, at: usize, conn: &mut ServerConn) {
        let (id, is_task) = &self.questions[at];
        let result = match is_task {
            true => conn.task_status(id, None),
            false => conn.status(id, &Status::new("m", "s")),
        };
        assert!(result != Err(Refused::UnknownId), "an answer is owed");
        self.room.note(&result);
        if result != Err(Refused::QueueFull) {
            self.questions.remove(at);
        }
    }

    fn task(&mut self, id: TaskId, state: TaskState) {
        let is_first = state == TaskState::Accepted;
        let before = self.tasks.insert(id, state);
        let may_change = before.is_none_or(|before| !before.is_terminal());
        assert!(may_change && before.is_none() == is_first, "a way back");
    }
}
