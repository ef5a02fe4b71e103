//! Recordings of a real host, played through the registry: what the agent said comes out for the
//! same sockets in the same order.
//!
//! Frames are compared as they come out of the log; those that answer one socket are made
//! elsewhere. A recording is one where the host does what this crate does.

use crate::frame::ServerFrame;
use std::collections::{HashMap, HashSet};

use crate::replay::{Entry, Next};
use crate::session::{Accepted, ConnId, Finished, InputError, Prompt, RunId, SessionRequest};
use rpc_core::Limits;
use serde_json::Value;

use super::clocked::{ALICE, HostRuntime, input_at};

const PLAYED: [&str; 7] = [
    include_str!("../../../tests/transcripts/v1.2.1__01_new_session_two_inputs.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__02_tool_call_and_thinking.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__05_resume_running_last_msg_id.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__08_finished_while_away.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__16_interjection_while_running.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__18_approval.jsonl"),
    include_str!("../../../tests/transcripts/v1.2.1__20_files_and_images.jsonl"),
];

struct Player {
    runtime: HostRuntime,
    lines: Vec<Value>,
    at: usize,
    /// Events that the agent has emitted, by their texts.
    emitted: HashSet<String>,
    /// The session of each socket, and what runs there.
    sessions: HashMap<u64, String>,
    runs: HashMap<String, RunId>,
    replayed: usize,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Player {
    fn new(recording: &str) -> Self {
        let lines = recording
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        Self {
            runtime: HostRuntime::new(),
            lines: lines.collect(),
            at: 0,
            emitted: HashSet::new(),
            sessions: HashMap::new(),
            runs: HashMap::new(),
            replayed: 0,
        }
    }

    /// The next frames to a socket that satisfy this.
    fn coming<'p>(
        &'p self,
        conn: u64,
        is_it: impl Fn(&str) -> bool + 'p,
    ) -> impl Iterator<Item = &'p Value> + 'p {
        let lines = self.lines.iter().skip(self.at);
        let to_it = lines.filter(move |line| line["conn"] == conn && line["dir"] == "s2c");
        to_it
            .map(|line| &line["frame"])
            .filter(move |frame| is_it(text(&frame["type"])))
    }

    fn play(&mut self) {
        while let Some(line) = self.lines.get(self.at).cloned() {
            self.at += 1;
            let conn = line["conn"].as_u64().unwrap_or_default();
            match (text(&line["dir"]), text(&line["event"])) {
                ("c2s", _) => self.said(conn, &line["frame"]),
                ("s2c", _) => self.heard(conn, &line["frame"]),
                (_, "closed_by_client" | "tcp_dropped_by_client") => {
                    self.runtime
                        .registry
                        .disconnect(ConnId(conn), self.runtime.now);
                }
                _ => {}
            }
        }
    }

    fn said(&mut self, conn: u64, frame: &Value) {
        let run = self
            .sessions
            .get(&conn)
            .and_then(|id| self.runs.get(id))
            .copied();
        let kind = match text(&frame["type"]) {
            "CONNECT" => return self.connect(conn, frame),
            "INPUT" => return self.input(conn, text(&frame["prompt"])),
            "APPROVAL_RESPONSE" => "APPROVAL_RESPONSE",
            other => panic!("{other}"),
        };
        let answered = self.runtime.registry.answer(ConnId(conn), kind, None);
        assert_eq!(Some(answered.unwrap().0), run);
    }

    fn connect(&mut self, conn: u64, frame: &Value) {
        let answer = self
            .coming(conn, |kind| kind == "CONNECTED")
            .next()
            .unwrap()
            .clone();
        let id = text(&answer["session_id"]).to_owned();
        let missed: Vec<_> = self.coming(conn, is_event).cloned().collect();
        match (text(&answer["status"]), self.runs.get(&id)) {
            // The agent went on while nobody was there.
            ("running", Some(&run)) => missed.iter().for_each(|event| self.emit(run, event)),
            ("connected", Some(&run)) => self.runtime.finish(run),
            _ => {}
        }
        let request = SessionRequest::new(ALICE)
            .with_session_id(frame["session_id"].as_str())
            .with_last_msg_id(frame["last_msg_id"].as_str());
        // So that a new session gets the recorded name.
        let random = u128::from_str_radix(&id.replace('-', ""), 16).unwrap();
        let now = self.runtime.now;
        let joined = self
            .runtime
            .registry
            .connect(ConnId(conn), request, random, now);
        let joined = joined.unwrap();
        assert_eq!(joined.session_id.as_str(), id);
        assert_eq!(joined.status.name(), text(&answer["status"]));
        self.sessions.insert(conn, id);
    }

    fn input(&mut self, conn: u64, prompt: &str) {
        let answer = self.coming(conn, |kind| !is_event(kind)).next();
        // None, if the socket was cut off before.
        let answer = answer.cloned().unwrap_or_default();
        let (kind, id) = (
            text(&answer["type"]).to_owned(),
            text(&answer["id"]).to_owned(),
        );
        let mut input = Prompt::new(prompt);
        input.id = id.as_str().into();
        let now = self.runtime.now;
        match input_at(&mut self.runtime.registry, ConnId(conn), input, now) {
            Ok(Accepted::Started(run)) => {
                self.runs.insert(self.sessions[&conn].clone(), run);
            }
            Ok(Accepted::Queued(run)) => {
                assert_eq!(kind, "RUNTIME_INPUT_ACK");
                assert_eq!(self.runs[&self.sessions[&conn]], run);
            }
            Err(error) => {
                assert_eq!(error, InputError::NoPrompt);
                assert_eq!(error.to_string(), text(&answer["message"]));
            }
        }
    }

    /// The agent says something.
    fn emit(&mut self, run: RunId, frame: &Value) {
        let text = frame.to_string();
        let decoded = ServerFrame::decode(&text, &Limits::default()).unwrap();
        let ServerFrame::Event(event) = decoded else {
            panic!("{text}")
        };
        let state = self.runtime.registry.run_mut(run).unwrap();
        if let (Some(kind), Some(id)) = (event.kind.awaits(), &event.id) {
            state.ask(kind, id).unwrap();
        }
        if frame["runtime_input"] == true {
            let taken = state.take_inputs();
            assert_eq!(taken[0].id.as_str(), frame["id"]);
            assert_eq!(taken[0].text.as_str(), frame["content"]);
        }
        let entry = Entry::encode(&event).unwrap();
        let now = self.runtime.now;
        self.runtime.registry.event(run, entry, now).unwrap();
        self.emitted.insert(text);
    }

    fn heard(&mut self, conn: u64, frame: &Value) {
        let kind = text(&frame["type"]);
        let run = self
            .sessions
            .get(&conn)
            .and_then(|id| self.runs.get(id))
            .copied();
        if kind == "OUTPUT" {
            let (run, now) = (run.unwrap(), self.runtime.now);
            let mut finish = || {
                let output = frame.to_string().into();
                self.runtime.registry.finish(run, output, now).unwrap()
            };
            // The known host loses an input that comes late; here the agent gets it.
            if let Finished::More(late) = finish() {
                assert_eq!(late[0].text, "too late");
                assert_eq!(finish(), Finished::Done);
            }
        } else if !is_event(kind) {
            return;
        } else if self.emitted.contains(&frame.to_string()) {
            self.replayed += 1;
        } else {
            self.emit(run.unwrap(), frame);
        }
        let next = self.runtime.registry.next_frame(ConnId(conn));
        let Some(Next::Event(sent) | Next::Closing(sent)) = next else {
            panic!("{next:?} for {frame}")
        };
        let sent: Value = serde_json::from_str(sent.as_str()).unwrap();
        assert_eq!(&sent, frame);
    }
}

fn is_event(kind: &str) -> bool {
    kind.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[test]
fn recordings_of_a_real_host_come_out_the_same() {
    for recording in PLAYED {
        let mut player = Player::new(recording);
        player.play();
        let resumed = recording.contains("05_resume");
        assert_eq!(player.replayed > 10, resumed, "{}", player.replayed);
    }
}
