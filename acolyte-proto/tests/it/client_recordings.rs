//! The client against recordings of known servers of two eras: its commands are those of the
//! recorded client, and what the recorded server said is all that it hears.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use acolyte_proto::client::{
    CallId, CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent, Outcome, StreamChat,
    Warning,
};
use acolyte_proto::event::{ChecklistTag, ItemStatus};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::id::TaskId;
use rpc_core::{Incoming, Machine};
use serde_json::Value;

use crate::transcript::Transcript;

pub(crate) fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("tests/vectors/{name}.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

struct Replay {
    conn: ClientConn,
    now: Instant,
    /// Our ids by the recorded ones.
    ours: HashMap<String, CallId>,
    chats: HashMap<CallId, Transcript>,
    /// The types of events that carry a checklist.
    lists: Vec<String>,
    /// Everything but chats.
    others: Vec<ClientEvent>,
}

impl Replay {
    fn of(name: &str) -> Self {
        let now = Instant::now();
        let mut replay = Self {
            conn: ClientConn::new(ClientConfig::default(), 7, now),
            now,
            ours: HashMap::new(),
            chats: HashMap::new(),
            lists: Vec::new(),
            others: Vec::new(),
        };
        for line in lines(name) {
            match (line["dir"].as_str(), line["kind"].as_str()) {
                (Some("c2s"), Some("text")) => replay.client_sends(&line["msg"]),
                (Some("s2c"), Some("text")) => replay.server_sends(&line["msg"]),
                _ => {}
            }
            replay.collect();
        }
        replay
    }

    fn client_sends(&mut self, message: &Value) {
        let payload = &message["payload"];
        let id = match message["type"].as_str() {
            Some("status.get") => self.conn.status(self.now),
            Some("chat.start") => {
                let request = &payload["request"];
                let text = |name: &str| request[name].as_str().unwrap().to_owned();
                let request = ChatRequest::new(text("message"), text("model"));
                self.conn.chat(&request, self.now)
            }
            Some("chat.abort") => {
                let chat = payload["requestId"].as_str().unwrap();
                match self.ours.get(chat) {
                    Some(chat) => self.conn.abort(*chat, self.now),
                    None => return,
                }
            }
            Some("task.status") => {
                let task = payload["taskId"]
                    .as_str()
                    .unwrap()
                    .parse::<TaskId>()
                    .unwrap();
                self.conn.task_status(&task, self.now)
            }
            _ => return,
        };
        if let Ok(id) = id {
            let recorded = message["id"].as_str().unwrap().to_owned();
            self.ours.insert(recorded, id);
        }
        while self.conn.poll_transmit().is_some() {}
    }

    fn server_sends(&mut self, message: &Value) {
        let mut text = message.to_string();
        for (recorded, ours) in &self.ours {
            text = text.replace(&format!("\"{recorded}\""), &format!("\"{ours}\""));
        }
        self.conn.handle_message(Incoming::Text(&text), self.now);
    }

    fn collect(&mut self) {
        while let Some(event) = self.conn.poll_event() {
            match event {
                ClientEvent::Chat { id, update } => {
                    assert!(!matches!(update, ChatUpdate::Warning(_)), "{update:?}");
                    if let ChatUpdate::Event(event) = &update
                        && event.checklist().is_some()
                    {
                        self.lists.push(event.tag().to_owned());
                    }
                    self.chats.entry(id).or_default().apply(&update);
                }
                other => self.others.push(other),
            }
        }
    }

    fn chat(&self, recorded: &str) -> &Transcript {
        &self.chats[&self.ours[recorded]]
    }
}

#[test]
fn chats_of_both_eras_are_read_to_their_end() {
    for name in ["noauth-chat-happy", "v0210-noauth-chat-happy"] {
        let replay = Replay::of(name);
        let chat = replay.chat("rpc_chat0001");
        let output = "Hello from the stub model, in several pieces.";
        assert_eq!(chat.text, output, "{name}");
        assert_eq!(chat.reply().unwrap().output, output, "{name}");
        assert!(chat.outcome.as_ref().unwrap().is_done() && chat.task_id.is_some());
        let well = |event: &&ClientEvent| {
            matches!(
                event,
                ClientEvent::Reply {
                    result: Ok(CallValue::Status(_)),
                    ..
                } | ClientEvent::Reply {
                    result: Ok(CallValue::Task(Some(_))),
                    ..
                }
            )
        };
        assert_eq!(replay.others.iter().filter(well).count(), 2, "{name}");
        assert_eq!(replay.conn.stray_frames(), 0, "{name}");
    }
}

#[test]
fn lists_of_both_eras_are_checklists() {
    for (name, tag) in [
        ("noauth-chat-tasklist", ChecklistTag::Tasklist),
        ("v0210-noauth-chat-tasklist", ChecklistTag::Checklist),
    ] {
        let replay = Replay::of(name);
        let chats = replay.chats.values();
        let lists: Vec<_> = chats.flat_map(|chat| &chat.checklists).collect();
        assert!(!lists.is_empty(), "{name}");
        assert!(!replay.lists.is_empty(), "{name}");
        assert!(replay.lists.iter().all(|it| it == tag.name()), "{name}");
        for list in lists {
            let known = |status: &ItemStatus| !matches!(status, ItemStatus::Other(_));
            assert!(list.items.iter().all(|item| known(&item.status)), "{name}");
        }
    }
}

#[test]
fn tools_come_with_their_outputs_and_results() {
    let replay = Replay::of("noauth-chat-tool-call");
    let mut tools = replay.chats.values().flat_map(|chat| &chat.tools);
    assert!(tools.clone().count() > 0);
    assert!(tools.all(|tool| tool.call.is_some() && tool.result.is_some()));
}

#[test]
fn queues_and_aborts_end_every_chat_once() {
    for name in [
        "noauth-queue-two",
        "noauth-abort-queued",
        "noauth-abort-running",
    ] {
        let replay = Replay::of(name);
        let ended = |chat: &Transcript| chat.outcome.is_some();
        assert!(replay.chats.values().all(ended), "{name}");
        assert_eq!(replay.conn.in_flight(), 0, "{name}");
        let aborted =
            |chat: &&Transcript| matches!(&chat.outcome, Some(Outcome::Aborted { error: None }));
        let aborts = replay.others.iter().filter(|event| {
            matches!(
                event,
                ClientEvent::Reply {
                    result: Ok(CallValue::Aborted(true)),
                    ..
                }
            )
        });
        assert_eq!(
            replay.chats.values().filter(aborted).count(),
            aborts.count(),
            "{name}"
        );
    }
}

#[test]
fn a_recorded_sse_stream_is_the_same_chat() {
    let now = Instant::now();
    let mut chat = StreamChat::new(&ClientConfig::default(), now);
    chat.handle_head(200, true, now);
    for line in lines("noauth-sse-happy") {
        if line["kind"] == "sse" {
            let block = format!("data: {}\n\n", line["data"]);
            chat.handle_bytes(block.as_bytes(), now);
        }
    }
    chat.handle_end(None);
    let mut transcript = Transcript::default();
    while let Some(update) = chat.poll_update() {
        assert!(
            !matches!(update, ChatUpdate::Warning(Warning::BadFrame(_))),
            "{update:?}"
        );
        transcript.apply(&update);
    }
    assert_eq!(transcript.text, "Reading.\nDone over SSE.");
    assert_eq!(transcript.reply().unwrap().output, "Done over SSE.");
    assert_eq!(transcript.tools.len(), 1);
}
