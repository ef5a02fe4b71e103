//! The agent of the recordings: it does in each run what the recorded one did, one step at a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use connectonion_proto::frame::{EventKind, ServerFrame};
use connectonion_proto::limits::defaults;
use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Turn};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Line;

/// Frames of a host about one socket: no part of a run.
const ANSWERS: [&str; 11] = [
    "CONNECTED",
    "PING",
    "OUTPUT",
    "ERROR",
    "RUNTIME_INPUT_ACK",
    "SESSION_STATUS",
    "ONBOARD_REQUIRED",
    "ONBOARD_SUCCESS",
    "ADMIN_RESULT",
    "AGENT_PROFILE",
    "DASHBOARD_SNAPSHOT",
];

/// What the hosts say when their agent fails.
const FAILURES: [&str; 2] = ["scripted LLM failure", "Unable to run agent"];

/// What the recorded agent did in one run.
#[derive(Default)]
pub struct Run {
    prompt: String,
    events: Vec<Value>,
    /// What it added to the conversation.
    messages: Vec<Value>,
    result: String,
    failure: Option<String>,
}

/// The runs that have not begun.
pub type Runs = Arc<Mutex<VecDeque<Run>>>;

/// Does what the recorded agent did, one step for each permit. A prompt that the recorded host lost
/// is repeated.
pub struct Recorded {
    runs: Runs,
    permits: Arc<Semaphore>,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A step of an agent, or of the host in its name.
pub fn is_event(line: &Line) -> bool {
    let is_aside = ["session_sync", "user_message"].contains(&line.kind());
    line.is_from_host() && !ANSWERS.contains(&line.kind()) && !is_aside
}

/// What makes an event another one: shared ids are of a beginning and its end.
pub fn key(event: &Value) -> String {
    format!("{} {} {}", event["id"], event["type"], event["status"])
}

/// Whether hosts say this by themselves.
pub fn is_hosts(event: &Value) -> bool {
    let is_prompt = event["type"] == "user_input" && event["runtime_input"] != true;
    let is_users = event["type"] == "mode_changed" && event["triggered_by"] != "agent";
    is_prompt || is_users || event["type"] == "files_received"
}

/// Whether a run ends with this frame.
pub fn is_end(frame: &Value) -> bool {
    frame["type"] == "OUTPUT" || FAILURES.contains(&text(&frame["message"]))
}

/// The runs of a recording, in the order in which they began.
pub fn runs(lines: &[Line]) -> Runs {
    let mut runs: Vec<Run> = Vec::new();
    // The run of each session.
    let mut newest: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    let mut connections: HashMap<u64, String> = HashMap::new();
    for line in lines.iter().filter(|line| line.is_from_host()) {
        let frame = &line.frame;
        if line.kind() == "CONNECTED" {
            connections.insert(line.conn, text(&frame["session_id"]).to_owned());
        }
        let Some(session) = connections.get(&line.conn) else {
            continue;
        };
        if is_event(line) && seen.insert(key(frame)) {
            if frame["type"] == "user_input" && is_hosts(frame) {
                newest.insert(session.clone(), runs.len());
                runs.push(Run {
                    prompt: text(&frame["content"]).to_owned(),
                    ..Run::default()
                });
            } else if let Some(run) = newest.get(session).filter(|_| !is_hosts(frame)) {
                runs[*run].events.push(frame.clone());
            }
        }
        let Some(run) = newest.get(session).map(|run| &mut runs[*run]) else {
            continue;
        };
        if line.kind() == "ERROR" && is_end(frame) && run.result.is_empty() {
            run.failure = Some(text(&frame["message"]).to_owned());
        }
        let ended = &frame["session"];
        if ended["result"].is_string() && line.kind() != "session_sync" {
            let messages = ended["messages"].as_array().unwrap();
            let last = messages.iter().rposition(|it| it["role"] == "user");
            run.messages = messages[last.map_or(0, |it| it + 1)..].to_vec();
            run.result = text(&ended["result"]).to_owned();
        }
        if line.kind() == "OUTPUT" {
            run.result = text(&frame["result"]).to_owned();
        }
    }
    Arc::new(Mutex::new(runs.into()))
}

impl Recorded {
    pub const fn new(runs: Runs, permits: Arc<Semaphore>) -> Self {
        Self { runs, permits }
    }

    fn next(&self, prompt: &str) -> Option<Run> {
        // A reminder of uploads names other folders.
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        let mut runs = self.runs.lock().unwrap();
        let is_next = runs
            .front()
            .is_some_and(|run| first(&run.prompt) == first(prompt));
        is_next.then(|| runs.pop_front()).flatten()
    }

    async fn step(&self) {
        self.permits.acquire().await.unwrap().forget();
    }
}

impl Agent for Recorded {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        let Some(run) = self.next(&prompt.text) else {
            return Ok(Reply::new(prompt.text));
        };
        // Inputs were taken at the beginning of this step.
        let mut has_begun = false;
        for event in &run.events {
            self.step().await;
            if event["type"] == "user_input" {
                turn.input_waits().await;
                turn.next_inputs()?;
                has_begun = true;
                continue;
            }
            if event["type"] == "llm_call" && !std::mem::take(&mut has_begun) {
                assert!(turn.next_inputs()?.is_empty());
            }
            let text = event.to_string();
            let frame = ServerFrame::decode(&text, &defaults()).unwrap();
            let ServerFrame::Event(frame) = frame else {
                panic!("{text}");
            };
            match frame.kind {
                EventKind::AskUser(question) => drop(turn.ask_user(question).await?),
                EventKind::ApprovalNeeded(tool) => drop(turn.approve(tool).await?),
                EventKind::PlanReview(plan) => drop(turn.plan_review(plan).await?),
                EventKind::ModeChanged(_) => {}
                kind => turn.emit_as(event["id"].as_str().unwrap(), kind)?,
            }
        }
        self.step().await;
        if let Some(failure) = run.failure {
            return Err(AppError::failed(failure));
        }
        for message in &run.messages {
            turn.push_message(message)?;
        }
        Ok(Reply::new(run.result))
    }
}
