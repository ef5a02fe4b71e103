//! Recordings of a real host, played to ours: the agent does what the recorded one did, the clients
//! say what they said, and our host answers with the same frames in the same order, with the same
//! members.
//!
//! Left out are the `session_sync` frames, which our host sends only when an agent wants them. The
//! recordings where hosts do what ours does not (bad shapes, errors of agents, signatures, the gate)
//! are looked at elsewhere.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use connectonion_proto::ServerFrame;
use connectonion_proto::frame::EventKind;
use connectonion_proto::net::{Agent, AgentError, Desk, DeskOptions, Prompt, Reply, Turn};
use connectonion_proto::trust::TrustLevel;
use connectonion_proto::upload::UploadLimits;
use rpc_core::Limits;
use rpc_core::decode::FrameCopy;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::scratch::Scratch;
use crate::staff::{Client, client_key, connect, host_key};

/// Frames that answer one socket.
const ANSWERS: [&str; 6] = [
    "CONNECTED",
    "PING",
    "OUTPUT",
    "ERROR",
    "RUNTIME_INPUT_ACK",
    "SESSION_STATUS",
];

/// What the recorded agent did in one run.
#[derive(Default)]
struct Script {
    events: Vec<Value>,
    /// What it added to the conversation.
    messages: Vec<Value>,
    result: String,
}

/// Does what the recorded agent did, one step for each permit.
struct Recorded {
    scripts: Mutex<VecDeque<Script>>,
    permits: Arc<Semaphore>,
}

#[async_trait]
impl Agent for Recorded {
    async fn run(&self, turn: &Turn, _: Prompt) -> Result<Reply, AgentError> {
        let script = self.scripts.lock().unwrap().pop_front().unwrap();
        // Inputs were taken at the beginning of this step.
        let mut has_begun = false;
        for event in &script.events {
            self.permits.acquire().await.unwrap().forget();
            let text = event.to_string();
            if event["type"] == "user_input" {
                turn.input_waits().await;
                turn.next_inputs()?;
                has_begun = true;
                continue;
            }
            if event["type"] == "llm_call" && !std::mem::take(&mut has_begun) {
                assert!(turn.next_inputs()?.is_empty());
            }
            let frame = ServerFrame::decode(&text, &Limits::default()).unwrap();
            let ServerFrame::Event(frame) = frame else {
                panic!("{text}");
            };
            match frame.to_shared(&FrameCopy::of(&text)).kind {
                EventKind::AskUser(question) => drop(turn.ask_user(question).await?),
                EventKind::ApprovalNeeded(tool) => drop(turn.approve(tool).await?),
                kind => turn.emit_as(event["id"].as_str().unwrap(), kind)?,
            }
        }
        self.permits.acquire().await.unwrap().forget();
        for message in &script.messages {
            turn.push_message(message)?;
        }
        Ok(Reply::new(script.result))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_event(line: &Value) -> bool {
    let kind = text(&line["frame"]["type"]);
    line["dir"] == "s2c" && !ANSWERS.contains(&kind) && kind != "session_sync"
}

/// What makes an event another one: shared ids are of a beginning and its end.
fn key(event: &Value) -> String {
    format!("{} {} {}", event["id"], event["type"], event["status"])
}

/// Whether the host says this by itself.
fn is_hosts(event: &Value) -> bool {
    let is_prompt = event["type"] == "user_input" && event["runtime_input"] != true;
    is_prompt || event["type"] == "files_received"
}

/// The runs of a recording, in the order in which they began.
fn scripts(lines: &[Value]) -> VecDeque<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    // The run of each session.
    let mut runs: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for line in lines {
        let frame = &line["frame"];
        let session = text(&frame["session_id"]).to_owned();
        if is_event(line) && seen.insert(key(frame)) {
            if frame["type"] == "user_input" && is_hosts(frame) {
                runs.insert(session.clone(), scripts.len());
                scripts.push(Script::default());
            } else if !is_hosts(frame) {
                scripts[runs[&session]].events.push(frame.clone());
            }
        }
        if line["dir"] == "s2c"
            && frame["session"]["result"].is_string()
            && frame["type"] != "session_sync"
        {
            let script = &mut scripts[runs[&session]];
            let messages = frame["session"]["messages"].as_array().unwrap();
            let last = messages
                .iter()
                .rposition(|it| it["role"] == "user")
                .unwrap();
            script.messages = messages[last + 1..].to_vec();
            script.result = text(&frame["session"]["result"]).to_owned();
        }
    }
    scripts.into()
}

/// The names of a frame's members; those of our host that the recorded one does not have are known.
fn members(frame: &Value) -> BTreeSet<&str> {
    let names = frame.as_object().unwrap().keys().map(String::as_str);
    let is_ours = |name: &str| frame["type"] == "ask_user" && name == "text";
    names.filter(|name| !is_ours(name)).collect()
}

async fn play(recording: &str, until: usize) {
    let lines: Vec<Value> = recording
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let lines = &lines[..lines.len().min(until)];
    let permits = Arc::new(Semaphore::new(0));
    let agent = Recorded {
        scripts: Mutex::new(scripts(lines)),
        permits: Arc::clone(&permits),
    };
    let scratch = Scratch::new();
    let options = DeskOptions::new(&host_key(), TrustLevel::Open)
        .with_uploads(scratch.path(), UploadLimits::default());
    let desk = Desk::new(agent, options);
    let running = desk.clone();
    tokio::spawn(async move { running.run().await });

    let mut clients: HashMap<u64, Client> = HashMap::new();
    // Their ids of sessions and events, and ours.
    let mut ids: HashMap<String, Value> = HashMap::new();
    let mut emitted = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(conn) = line["conn"].as_u64() else {
            continue;
        };
        let frame = &line["frame"];
        match text(&line["event"]) {
            "open" => drop(clients.insert(conn, Client::open(&desk))),
            "" => {}
            _ => drop(clients.remove(&conn)),
        }
        let Some(client) = clients.get_mut(&conn) else {
            continue;
        };
        let ours = |id: &Value| ids.get(text(id)).cloned();
        if line["dir"] == "c2s" {
            let mut frame = frame.clone();
            if frame["type"] == "CONNECT" {
                let mut own = json!({});
                for name in ["session_id", "last_msg_id"] {
                    if let Some(id) = ours(&frame[name]) {
                        own[name] = id;
                    }
                }
                if frame["session"].is_object() {
                    own["session"] = frame["session"].take();
                }
                // An agent that ended while its client was away.
                let answer = lines[at..]
                    .iter()
                    .find(|it| it["frame"]["type"] == "CONNECTED")
                    .unwrap();
                while answer["frame"]["server_newer"] == true && desk.running() > 0 {
                    permits.add_permits(1);
                    tokio::time::sleep(crate::staff::SECOND).await;
                }
                frame = connect(&client_key(), own);
            }
            if let Some(id) = ours(&frame["session"]["session_id"]) {
                frame["session"]["session_id"] = id;
            }
            if let Some(id) = ours(&frame["request_id"]) {
                frame["request_id"] = id;
            }
            client.say(&frame).await;
            continue;
        }
        let is_answer = line["dir"] == "s2c" && ANSWERS.contains(&text(&frame["type"]));
        if !is_answer && !is_event(line) {
            continue;
        }
        let is_new = is_event(line) && emitted.insert(key(frame)) && !is_hosts(frame);
        if is_new || frame["type"] == "OUTPUT" {
            permits.add_permits(1);
        }
        let mut got = client.hear().await;
        if got["status"] == "running" {
            // The recorded host never has a conversation for a client that comes back to a run.
            for name in ["server_newer", "session", "chat_items"] {
                got.as_object_mut().unwrap().remove(name);
            }
        }
        assert_eq!(got["type"], frame["type"], "line {}: {got}", at + 1);
        assert_eq!(members(&got), members(frame), "line {}: {got}", at + 1);
        for name in ["session_id", "id"] {
            if frame[name].is_string() {
                ids.insert(text(&frame[name]).to_owned(), got[name].clone());
            }
        }
        for name in [
            "status",
            "server_newer",
            "result",
            "message",
            "name",
            "tool_id",
            "question",
            "tool",
            "turn",
            "iteration",
        ] {
            assert_eq!(got[name], frame[name], "line {}: {name}", at + 1);
        }
        let bare = |frame: &Value| {
            let items = frame["chat_items"].as_array().cloned().unwrap_or_default();
            // The recorded agent thinks without leaving a trace, and does not remember that it has
            // asked what to do.
            let items = items.iter().filter(|it| {
                let has_asked = it["content"] == "What would you like me to do?";
                it["type"] != "thinking" && !has_asked
            });
            let bare = items.map(|it| {
                // Uploads have their own names here.
                let path = it["content"].to_string().contains("system-reminder")
                    || it["type"] == "files_received";
                (
                    it["type"].clone(),
                    it["status"].clone(),
                    it["result"].clone(),
                    (!path).then(|| it["content"].clone()),
                )
            });
            bare.collect::<Vec<_>>()
        };
        assert_eq!(bare(&got), bare(frame), "line {}", at + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_are_answered_as_recorded() {
    play(
        include_str!("../transcripts/v1.2.1__01_new_session_two_inputs.jsonl"),
        usize::MAX,
    )
    .await;
    play(
        include_str!("../transcripts/v1.2.1__02_tool_call_and_thinking.jsonl"),
        usize::MAX,
    )
    .await;
    play(
        include_str!("../transcripts/v1.2.1__20_files_and_images.jsonl"),
        usize::MAX,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn lost_lines_are_taken_up_as_recorded() {
    play(
        include_str!("../transcripts/v1.2.1__05_resume_running_last_msg_id.jsonl"),
        usize::MAX,
    )
    .await;
    play(
        include_str!("../transcripts/v1.2.1__08_finished_while_away.jsonl"),
        usize::MAX,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_as_recorded() {
    play(
        include_str!("../transcripts/v1.2.1__17_ask_user.jsonl"),
        usize::MAX,
    )
    .await;
    play(
        include_str!("../transcripts/v1.2.1__18_approval.jsonl"),
        usize::MAX,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn interjections_are_taken_as_recorded() {
    let recording = include_str!("../transcripts/v1.2.1__16_interjection_while_running.jsonl");
    // In what follows the recorded host acknowledges a prompt and never reads it.
    let until = recording
        .lines()
        .position(|line| line.contains(r#""prompt": "slow 1""#));
    play(recording, until.unwrap()).await;
}
