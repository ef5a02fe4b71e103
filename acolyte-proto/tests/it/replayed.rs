//! Recordings of a known server as tests of the client: what it sends is what the recorded client sent.

use std::time::Instant;

use acolyte_proto::client::{CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::task::TaskState;
use rpc_core::Machine as _;
use rpc_core::testing::Side;
use rpc_core::testing::replay::{Differs, replay};
use serde_json::{Value, json};

use crate::client_recordings::lines;

const MESSAGE: &str = r#"hello @@{"steps": [{"text": "Hello from the stub model, in several pieces.", "chunks": 5, "gap_ms": 20}]}@@"#;

/// A line of a recording as transcripts have it.
fn line(recorded: &Value) -> String {
    let (kind, from, code) = (&recorded["kind"], &recorded["dir"], &recorded["code"]);
    let at = recorded["t"].as_f64().unwrap() / 1000.0;
    let data = recorded["msg"].to_string();
    json!({"at": at, "conn": 1, "dir": from, "kind": kind, "code": code, "data": data}).to_string()
}

/// Has the recorded chat again, with this model.
fn play(model: &str) {
    let mut recorded = lines("noauth-chat-happy");
    recorded.retain(|it| {
        ["text", "close", "eof"]
            .map(Some)
            .contains(&it["kind"].as_str())
    });
    let recording: Vec<_> = recorded.iter().map(line).collect();
    let differs = Differs {
        ids: &["id"],
        // An empty history may be left out.
        any: &["history"],
    };
    let mut request = ChatRequest::new(MESSAGE, model);
    request.session_id = Some("sess_happy001".parse().unwrap());
    let (now, mut task) = (Instant::now(), None);
    let mut client = ClientConn::new(ClientConfig::default(), 7, now);
    let on_event = |client: &mut ClientConn, event, now| match event {
        ClientEvent::Ready => {
            client.chat(&request, now).unwrap();
        }
        ClientEvent::Chat { update, .. } => match update {
            ChatUpdate::Accepted { task_id } => task = Some(task_id),
            ChatUpdate::Ended(outcome) => {
                let reply = outcome.reply().unwrap();
                let expected = "Hello from the stub model, in several pieces.";
                assert_eq!(reply.output, expected);
                client.task_status(task.as_ref().unwrap(), now).unwrap();
            }
            _ => {}
        },
        ClientEvent::Reply { result, .. } => match result.unwrap() {
            CallValue::Task(task) => {
                assert_eq!(task.unwrap().state, TaskState::Completed);
                client.status(now).unwrap();
            }
            CallValue::Status(status) => {
                assert!(status.ok);
                client.close(now);
            }
            other => panic!("{other:?}"),
        },
        other => assert!(matches!(other, ClientEvent::Closed(_)), "{other:?}"),
    };
    replay(
        &recording.join("\n"),
        Side::Client,
        &mut client,
        now,
        differs,
        on_event,
    );
    assert!(client.is_closed());
}

#[test]
fn a_recorded_chat_replays() {
    play("gpt-5-mini");
}

#[test]
#[should_panic = "`model`: recorded \"gpt-5-mini\", sent \"gpt-4\""]
fn a_request_that_differs_from_the_recording_is_reported() {
    play("gpt-4");
}
