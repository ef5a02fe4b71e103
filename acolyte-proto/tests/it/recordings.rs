//! [`ServerConn`] against recordings of the known server: the client's half is replayed, the
//! application's half is taken from what the server said, and the machine has to say the same.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use acolyte_proto::error::AppError;
use acolyte_proto::event::ChecklistTag;
use acolyte_proto::frame::{Answer, ServerFrame, Status};
use acolyte_proto::id::{RpcId, TaskId};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
use acolyte_proto::task::Task;
use rpc_core::{Incoming, Limits, Machine, Outgoing};
use serde_json::{Value, json};

fn lines(name: &str) -> Vec<Value> {
    let path = Path::new("tests/vectors")
        .join(name)
        .with_extension("jsonl");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// The server under test and the application behind it.
struct Replay {
    conn: ServerConn,
    tasks: HashMap<TaskId, Task>,
    now: Instant,
    /// What the machine has said, except for steps of chats.
    said: VecDeque<Value>,
    /// What the known server has said, except for steps of chats.
    expected: VecDeque<Value>,
    /// The last step that the machine has said. Steps are compared one by one: the known server
    /// sends them in one burst with answers that the machine gives at once.
    step: Option<Value>,
    /// Our ids of tasks by the recorded ones, and the other way round.
    ours: HashMap<String, String>,
    recorded: HashMap<String, String>,
    aborted: Vec<RpcId>,
}

impl Replay {
    fn new() -> Self {
        let now = Instant::now();
        // As the known server does it.
        let config = ServerConfig {
            silent_aborts: true,
            checklist: ChecklistTag::Tasklist,
            abort_grace: Duration::from_secs(3600),
            ..ServerConfig::default()
        };
        Self {
            conn: ServerConn::new(config, 1, now),
            tasks: HashMap::new(),
            now,
            said: VecDeque::new(),
            expected: VecDeque::new(),
            step: None,
            ours: HashMap::new(),
            recorded: HashMap::new(),
            aborted: Vec::new(),
        }
    }

    fn client_sends(&mut self, line: &Value) {
        let mut text = match &line["raw"] {
            Value::String(raw) => raw.clone(),
            _ => line["msg"].to_string(),
        };
        for (recorded, ours) in &self.ours {
            text = text.replace(recorded, ours);
        }
        self.conn.handle_message(Incoming::Text(&text), self.now);
        self.collect();
    }

    fn collect(&mut self) {
        self.collect_frames();
        while let Some(event) = self.conn.poll_event() {
            match event {
                ServerEvent::Task { task_id, state } => {
                    let task = Task::new(task_id.clone(), SystemTime::now());
                    self.tasks.entry(task_id).or_insert(task).state = state;
                }
                ServerEvent::Abort { id } => self.aborted.push(id),
                ServerEvent::StatusGet { id } => {
                    self.conn.status(&id, &Status::new("m", "")).unwrap();
                }
                ServerEvent::TaskStatus { id, task_id } => {
                    let task = self.tasks.get(&task_id);
                    self.conn.task_status(&id, task).unwrap();
                }
                ServerEvent::Start { .. } | ServerEvent::Warning(_) => {}
                other => panic!("{other:?}"),
            }
        }
        self.collect_frames();
    }

    fn collect_frames(&mut self) {
        while let Some(frame) = self.conn.poll_transmit() {
            let Outgoing::Text(text) = frame else {
                panic!("{frame:?}");
            };
            let frame: Value = serde_json::from_str(text.as_str()).unwrap();
            if frame["type"] == "chat.event" {
                assert_eq!(self.step.replace(frame), None);
            } else {
                self.said.push_back(frame);
            }
        }
    }

    /// What the known server says makes the application say it too.
    fn server_sends(&mut self, message: &Value) {
        let text = message.to_string();
        let frame = ServerFrame::decode(&text, &Limits::default()).unwrap();
        let id = frame.id.clone();
        match &frame.answer {
            Answer::Event(event) => self.conn.event(&id, event).unwrap(),
            Answer::Done(reply) => self.conn.done(&id, reply).unwrap(),
            Answer::Failed(error) => self.conn.fail(&id, error).unwrap(),
            Answer::Started if self.conn.running() != Some(&id) => {
                // The work on the aborted chat has stopped.
                let stopped = self.aborted.pop().unwrap();
                let error = AppError::failed("stopped");
                self.conn.fail(&stopped, &error).unwrap();
            }
            _ => {}
        }
        self.collect();
        if message["type"] == "chat.event" {
            assert_eq!(self.step.take().as_ref(), Some(message));
        } else {
            self.expected.push_back(message.clone());
            self.compare();
        }
    }

    /// Compares as far as both have said something.
    fn compare(&mut self) {
        while !self.said.is_empty() && !self.expected.is_empty() {
            let (Some(said), Some(expected)) = (self.said.pop_front(), self.expected.pop_front())
            else {
                return;
            };
            if let (Some(ours), Some(recorded)) =
                (said["taskId"].as_str(), expected["taskId"].as_str())
            {
                self.ours.insert(recorded.to_owned(), ours.to_owned());
                self.recorded.insert(ours.to_owned(), recorded.to_owned());
            }
            assert_eq!(self.normal(said), self.normal(expected));
        }
    }

    /// A frame without what may differ: times, ids of tasks, and what a status says.
    fn normal(&self, mut frame: Value) -> Value {
        for place in ["/taskId", "/task/id"] {
            if let Some(id) = frame.pointer_mut(place)
                && let Some(recorded) = id.as_str().and_then(|id| self.recorded.get(id))
            {
                *id = json!(recorded);
            }
        }
        if let Some(task) = frame["task"].as_object_mut() {
            for time in ["createdAt", "updatedAt"] {
                assert!(task[time].as_str().unwrap().ends_with('Z'));
                task.remove(time);
            }
        }
        if frame["status"].is_object() {
            // Questions are answered here at once, by an application without a status of its own.
            frame["status"] = json!("a status");
        }
        frame
    }
}

/// Replays a recording, in which the server's answers come in bursts.
fn replay(name: &str) {
    let mut replay = Replay::new();
    for line in lines(name) {
        match (line["dir"].as_str(), line["kind"].as_str()) {
            (Some("c2s"), Some("text")) => replay.client_sends(&line),
            (Some("s2c"), Some("text")) => replay.server_sends(&line["msg"]),
            _ => {}
        }
    }
    assert_eq!((replay.said.len(), replay.expected.len()), (0, 0), "{name}");
    assert_eq!(replay.conn.in_flight(), 0, "{name}");
}

#[test]
fn chats_match_recordings_of_the_known_server() {
    for name in ["noauth-chat-happy", "noauth-chat-tool-call"] {
        replay(name);
    }
}

#[test]
fn bad_requests_match_recordings_of_the_known_server() {
    for name in ["noauth-bad-json", "noauth-task-status", "noauth-status-get"] {
        replay(name);
    }
}

#[test]
fn aborting_a_queued_chat_matches_the_known_server() {
    replay("noauth-abort-queued");
}

#[test]
fn aborting_a_running_chat_can_match_the_known_server() {
    replay("noauth-abort-running");
}

#[test]
fn consecutive_chats_match_the_known_server() {
    replay("noauth-queue-two");
}
