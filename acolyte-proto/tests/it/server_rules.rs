//! The rules of `Machine` for the server, and the order of what it says over random scripts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, ClientFrame, Reply, Request, ServerFrame, Status};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use acolyte_proto::task::TaskState;
use acolyte_proto::{codec, limits};
use proptest::prelude::*;
use rpc_core::testing::conformance;
use rpc_core::{Incoming, Limits, Machine, Outgoing};

use crate::order::OrderChecker;

fn id(n: usize) -> RpcId {
    format!("rpc_{n}").parse::<RpcId>().unwrap()
}

fn start(n: usize) -> ClientFrame {
    let request = ChatRequest::new("hi", "m");
    ClientFrame::new(id(n), Request::ChatStart(Box::new(request)))
}

fn abort(n: usize, chat: usize) -> ClientFrame {
    let request_id = id(chat);
    ClientFrame::new(id(n), Request::ChatAbort(request_id))
}

fn take(conn: &mut ServerConn, frame: &ClientFrame, now: Instant) {
    let text = codec::encode(frame).unwrap();
    conn.handle_message(Incoming::Text(text.as_str()), now);
}

fn nasty() -> Vec<String> {
    let mut nasty = conformance::nasty_texts();
    for text in [
        r#"{"id":"rpc_a","type":"chat.start","payload":null}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":{"request":[]}}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[null],"model":""}}}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"","more":1}}}"#,
        r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":"rpc_a"}}"#,
        r#"{"id":"rpc_x","type":"chat.abort","payload":{"requestId":null}}"#,
        r#"{"id":"rpc_x","type":"task.status","payload":{"taskId":"rpc_a"}}"#,
        r#"{"id":"rpc_unknown","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"m"}}}"#,
        r#"{"id":7,"type":"status.get"}"#,
    ] {
        nasty.push(text.to_owned());
    }
    nasty
}

#[test]
fn the_server_keeps_the_rules() {
    let now = Instant::now();
    let nasty = nasty();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let fresh = || ServerConn::new(ServerConfig::default(), 7, now);
    let mut busy = fresh();
    for n in 0..5 {
        take(&mut busy, &start(n), now);
    }
    take(&mut busy, &abort(9, 0), now);
    for mut conn in [fresh(), busy] {
        conformance::early_timeout_is_a_no_op(&mut conn, now);
        conformance::any_text_is_survived(&mut conn, &texts, now);
        conformance::timeouts_make_progress(&mut conn, 10);
        conformance::closed_is_inert(&mut conn, &texts, now);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(usize),
    Abort(usize),
    Status,
    Garbage,
    Event,
    Done,
    Fail,
    Wait(u64),
    StopTaking,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..10usize).prop_map(Step::Start),
        4 => (0..10usize).prop_map(Step::Abort),
        1 => Just(Step::Status),
        1 => Just(Step::Garbage),
        2 => Just(Step::Event),
        3 => Just(Step::Done),
        2 => Just(Step::Fail),
        2 => (0..400u64).prop_map(Step::Wait),
    ];
    let last = prop_oneof![2 => Just(None), 1 => Just(Some(Step::StopTaking))];
    (prop::collection::vec(step, 0..80), last).prop_map(|(mut steps, last)| {
        let half = steps.len() / 2;
        if let Some(last) = last {
            steps.insert(half, last);
        }
        steps
    })
}

/// The machine, an application that does as it is told, and all that may be checked.
struct Script {
    conn: ServerConn,
    now: Instant,
    order: OrderChecker,
    states: HashMap<TaskId, TaskState>,
    /// The chat that the application works on.
    work: Option<RpcId>,
    aborts: usize,
}

impl Script {
    fn new(grace: u64, max_queued: usize) -> Self {
        let now = Instant::now();
        let config = ServerConfig {
            abort_grace: Duration::from_millis(grace),
            max_queued,
            ..ServerConfig::default()
        };
        Self {
            conn: ServerConn::new(config, 1, now),
            now,
            order: OrderChecker::default(),
            states: HashMap::new(),
            work: None,
            aborts: 0,
        }
    }

    fn say(&mut self, frame: &ClientFrame) -> Result<(), String> {
        self.order.sent(frame);
        take(&mut self.conn, frame, self.now);
        self.settle()
    }

    fn settle(&mut self) -> Result<(), String> {
        loop {
            while let Some(frame) = self.conn.poll_transmit() {
                let Outgoing::Text(text) = frame else {
                    continue;
                };
                let frame = ServerFrame::decode(text.as_str(), &Limits::default());
                self.order
                    .received(&frame.map_err(|error| error.to_string())?)?;
            }
            let Some(event) = self.conn.poll_event() else {
                return Ok(());
            };
            self.on_event(event)?;
        }
    }

    fn on_event(&mut self, event: ServerEvent) -> Result<(), String> {
        match event {
            ServerEvent::Start { id, .. } => {
                if let Some(before) = self.work.replace(id) {
                    return Err(format!("{before} had not come to its end"));
                }
            }
            ServerEvent::Abort { id } if self.work.as_ref() == Some(&id) => {}
            ServerEvent::GivenUp { id } if self.work.as_ref() == Some(&id) => self.work = None,
            ServerEvent::Task { task_id, state } => match self.states.insert(task_id, state) {
                None if state != TaskState::Accepted => return Err(format!("first {state:?}")),
                Some(before) if before.is_terminal() || state == TaskState::Accepted => {
                    return Err(format!("{state:?} after {before:?}"));
                }
                _ => {}
            },
            ServerEvent::StatusGet { id } => {
                let status = Status::new("m", "");
                self.conn.status(&id, &status).map_err(|e| e.to_string())?;
            }
            ServerEvent::Warning(_) | ServerEvent::Writable => {}
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Start(n) => return self.say(&start(*n)),
            Step::Abort(n) => {
                self.aborts += 1;
                return self.say(&abort(100 + self.aborts, *n));
            }
            Step::Status => {
                self.aborts += 1;
                return self.say(&ClientFrame::new(id(100 + self.aborts), Request::StatusGet));
            }
            Step::Garbage => self.conn.handle_message(Incoming::Text("{"), self.now),
            Step::Event => {
                if let Some(id) = &self.work {
                    // Refused if it was aborted, which is fine.
                    let _ = self.conn.event(id, &Event::text("x"));
                }
            }
            Step::Done => {
                if let Some(id) = self.work.take() {
                    let reply = Reply::new("x", "m");
                    self.conn.done(&id, &reply).map_err(|e| e.to_string())?;
                }
            }
            Step::Fail => {
                if let Some(id) = self.work.take() {
                    let error = AppError::failed("x");
                    self.conn.fail(&id, &error).map_err(|e| e.to_string())?;
                }
            }
            Step::Wait(time) => {
                self.now += Duration::from_millis(*time);
                self.conn.handle_timeout(self.now);
            }
            Step::StopTaking => self.conn.stop_taking(),
        }
        self.settle()
    }

    /// Brings everything to its end.
    fn finish(&mut self) -> Result<(), String> {
        while self.conn.in_flight() > 0 {
            self.step(&Step::Done)?;
        }
        self.order.finished()?;
        match self.states.values().find(|state| !state.is_terminal()) {
            Some(state) => Err(format!("a task is {state:?} for ever")),
            None => Ok(()),
        }
    }
}

proptest! {
    #[test]
    fn whatever_both_sides_do_every_chat_ends_in_its_order(
        grace in prop_oneof![Just(0), Just(100)],
        max_queued in 0..6usize,
        steps in steps(),
    ) {
        let mut script = Script::new(grace, max_queued);
        for step in &steps {
            let done = script.step(step);
            prop_assert!(done.is_ok(), "{step:?}: {}", done.unwrap_err());
        }
        let finished = script.finish();
        prop_assert!(finished.is_ok(), "{}", finished.unwrap_err());
    }
}

#[test]
fn the_limits_of_the_protocol_are_the_defaults() {
    let config = ServerConfig::default();
    assert_eq!(config.max_queued, 25);
    assert_eq!(config.limits, limits::defaults());
}
