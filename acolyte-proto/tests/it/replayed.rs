//! Recordings of a known server as tests of the client: what it sends is what the recorded client sent.

use std::time::Instant;

use acolyte_proto::client::{CallValue, ChatUpdate, ClientConfig, ClientConn, ClientEvent};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::task::TaskState;
use rpc_core::Machine as _;
use rpc_core::testing::Side;
use rpc_core::testing::replay::{Differs, replay};
use switchboard_testing::recordings::parse;

const MESSAGE: &str = r#"hello @@{"steps": [{"text": "Hello from the stub model, in several pieces.", "chunks": 5, "gap_ms": 20}]}@@"#;

/// Has the recorded chat again, with this model.
fn play(model: &str) {
    let recording = parse(include_str!("../vectors/noauth-chat-happy.jsonl")).unwrap();
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
            client.start_chat(&request, now).unwrap();
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
    let recording = recording.to_string();
    replay(
        &recording,
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
