//! What the hosts said, told to our client: every frame is read and written again, and the machine
//! makes of each the event that it should, and ends where it should.

use std::time::Instant;

use connectonion_proto::client::{
    CallValue, ClientConfig, ClientConn, ClientEvent, ClientState, Taken,
};
use connectonion_proto::codec;
use connectonion_proto::frame::{ClientFrame, Connect, ServerFrame, Signed};
use connectonion_proto::limits::defaults;
use rpc_core::{CallError, Incoming, Limits, Machine};
use serde_json::{Map, Value};
use switchboard_testing::json::assert_same;

use super::{Line, Recording, VERSIONS, connections, recordings};

/// Frames that only newer hosts know.
const NEWER: [&str; 3] = ["AGENT_PROFILE", "DASHBOARD_SNAPSHOT", "user_message"];

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// The same frame, except for members that are null, which this crate leaves out.
fn without_nulls(frame: &Value) -> String {
    let mut frame: Map<String, Value> = frame.as_object().unwrap().clone();
    frame.retain(|_, value| !value.is_null());
    Value::Object(frame).to_string()
}

#[test]
fn every_recorded_frame_of_both_hosts_round_trips() {
    let mut frames = 0;
    for recording in VERSIONS.into_iter().flat_map(recordings) {
        for (at, line) in recording.lines.iter().enumerate() {
            if !line.is_from_host() {
                continue;
            }
            frames += 1;
            let place = recording.place(at);
            let text = line.frame.to_string();
            let frame = ServerFrame::decode(&text, &defaults())
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            if let ServerFrame::Unknown { tag, .. } = &frame {
                assert!(NEWER.contains(&&**tag), "{place}: {tag}");
            }
            assert_eq!(frame.name(), line.kind(), "{place}");
            let mut expected = line.frame.clone();
            if line.kind() == "ask_user" {
                // Ours has the question in both places.
                expected["text"] = expected["question"].clone();
            }
            let again: Value = serde_json::from_str(&written(&frame)).unwrap();
            assert_same(&without_nulls(&again), &without_nulls(&expected));
        }
    }
    assert!(frames > 1000, "{frames}");
}

/// One recorded connection, and the client that lives through it.
struct Listener<'r> {
    recording: &'r Recording,
    conn: ClientConn,
    now: Instant,
}

/// What the client made of a frame, without the news that a prompt has begun a run.
fn name(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Connected(frame) => {
            format!(
                "CONNECTED {} {}",
                frame.session_id.as_str(),
                frame.status.name()
            )
        }
        ClientEvent::OnboardRequired(_) => "ONBOARD_REQUIRED".to_owned(),
        ClientEvent::Step(step) => {
            let id = step.event.id.as_deref().unwrap_or_default();
            format!("{} {id}", step.event.kind.tag())
        }
        ClientEvent::Reply { result, .. } => match result {
            Ok(CallValue::Input(Taken::Queued { id })) => format!("RUNTIME_INPUT_ACK {id}"),
            Ok(CallValue::Onboarded(_)) => "ONBOARD_SUCCESS".to_owned(),
            Ok(CallValue::Status(status)) => format!("SESSION_STATUS {}", status.status.name()),
            Ok(CallValue::Admin(result)) => format!("ADMIN_RESULT {}", result.action),
            Err(CallError::Remote(error)) => format!("ERROR {}", error.message),
            other => panic!("{other:?}"),
        },
        ClientEvent::RunEnded(Ok(output)) => format!("OUTPUT {}", output.result),
        ClientEvent::RunEnded(Err(CallError::Remote(error)))
        | ClientEvent::Refused(error)
        | ClientEvent::AnswerRefused { error, .. }
        | ClientEvent::Complaint(error) => format!("ERROR {}", error.message),
        ClientEvent::Unknown { tag, .. } => tag.to_string(),
        other => panic!("{other:?}"),
    }
}

/// What it should make of it.
fn expected(frame: &Value) -> String {
    let text = |name: &str| frame[name].as_str().unwrap_or_default();
    match text("type") {
        "CONNECTED" => format!("CONNECTED {} {}", text("session_id"), text("status")),
        "RUNTIME_INPUT_ACK" => format!("RUNTIME_INPUT_ACK {}", text("id")),
        "SESSION_STATUS" => format!("SESSION_STATUS {}", text("status")),
        "ADMIN_RESULT" => format!("ADMIN_RESULT {}", text("action")),
        "ERROR" => format!("ERROR {}", text("message")),
        "OUTPUT" => format!("OUTPUT {}", text("result")),
        kind if NEWER.contains(&kind) => kind.to_owned(),
        kind if kind.starts_with(char::is_lowercase) => format!("{kind} {}", text("id")),
        kind => kind.to_owned(),
    }
}

impl<'r> Listener<'r> {
    fn new(recording: &'r Recording) -> Self {
        let now = Instant::now();
        let connect = Connect::new(Signed::none());
        let mut conn = ClientConn::new(
            ClientConfig {
                session_sync: true,
                ..ClientConfig::default()
            },
            &connect,
            0x5eed,
            now,
        );
        assert!(conn.poll_transmit().is_some());
        Self {
            recording,
            conn,
            now,
        }
    }

    /// Says what the recorded client said. `false` if ours would not.
    fn send(&mut self, line: &Line) -> bool {
        let text = line.frame.to_string();
        let limits = Limits {
            max_message_bytes: 1 << 25,
            ..Limits::default()
        };
        let Ok(frame) = ClientFrame::decode(&text, &limits) else {
            return false;
        };
        let now = self.now;
        let conn = &mut self.conn;
        match frame {
            ClientFrame::Input(frame) => conn.input(&frame, now).is_ok(),
            ClientFrame::Connect(frame) => conn.connect(&frame, now).is_ok(),
            ClientFrame::OnboardSubmit(frame) => conn.onboard(&frame, now).is_ok(),
            ClientFrame::Response(frame) => conn.respond(&frame, now).is_ok(),
            ClientFrame::ModeChange(frame) => conn.set_mode(&frame, now).is_ok(),
            ClientFrame::Interrupt => conn.interrupt(now).is_ok(),
            ClientFrame::SessionQuery(_) => conn.query("id-1", now).is_ok(),
            ClientFrame::Admin(frame) => conn.admin(&frame, now).is_ok(),
            _ => true,
        }
    }

    fn recv(&mut self, at: usize, line: &Line) {
        let place = self.recording.place(at);
        self.conn
            .handle_message(Incoming::Text(&line.frame.to_string()), self.now);
        let mut reported = Vec::new();
        while let Some(event) = self.conn.poll_event() {
            match event {
                // Told before the first step.
                ClientEvent::Reply {
                    result: Ok(CallValue::Input(Taken::Started)),
                    ..
                } => {}
                // Follows a refusal.
                ClientEvent::Closed(_) => assert!(self.conn.is_closed()),
                event => reported.push(name(&event)),
            }
        }
        let mut answered = false;
        while self.conn.poll_transmit().is_some() {
            answered = true;
        }
        if line.kind() == "PING" {
            assert!(reported.is_empty() && answered, "{place}: {reported:?}");
        } else {
            assert_eq!(reported, [expected(&line.frame)], "{place}");
        }
    }

    /// Where the machine stands after the last frame of a run.
    fn check(&self, at: usize, line: &Line) {
        let place = self.recording.place(at);
        let state = self.conn.state();
        match line.kind() {
            "OUTPUT" => assert_eq!(state, ClientState::Ready, "{place}"),
            "llm_call" | "tool_call" => assert_eq!(state, ClientState::Running, "{place}"),
            "ONBOARD_REQUIRED" => assert_eq!(state, ClientState::AwaitOnboarding, "{place}"),
            "CONNECTED" => {
                let is_running = line.frame["status"] == "running";
                assert_eq!(state == ClientState::Running, is_running, "{place}");
            }
            "ERROR" if line.frame["code"] == -32603 => {
                assert_eq!(state, ClientState::Ready, "{place}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_client_handles_every_recorded_frame() {
    let (mut frames, mut runs) = (0, 0);
    for recording in VERSIONS.into_iter().flat_map(recordings) {
        for lines in connections(&recording) {
            let mut listener: Option<Listener<'_>> = None;
            // Ours did not say it, so that the answer is not for it.
            let mut unsent = false;
            for (at, line) in lines {
                let is_connect = line.is_from_client() && line.kind() == "CONNECT";
                match &mut listener {
                    None if is_connect => listener = Some(Listener::new(&recording)),
                    Some(listener) if line.is_from_client() => {
                        // It never connects twice, and not after a refusal; what follows is
                        // between that host and a client that does.
                        unsent = line.raw.is_some() || !listener.send(line);
                        if unsent && is_connect {
                            break;
                        }
                    }
                    Some(_) if std::mem::take(&mut unsent) => {}
                    Some(listener) if line.is_from_host() => {
                        listener.recv(at, line);
                        listener.check(at, line);
                        frames += 1;
                        runs += usize::from(line.kind() == "OUTPUT");
                    }
                    None | Some(_) => {}
                }
            }
        }
    }
    assert!(frames > 1000 && runs > 100, "{frames} frames, {runs} runs");
}
