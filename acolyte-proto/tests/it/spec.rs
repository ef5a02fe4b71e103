//! Names and numbers, word for word: whoever changes one changes the protocol.

use acolyte_proto::error::code;
use acolyte_proto::event::{
    ChecklistTag, DiffMarker, Event, ItemStatus, RunKind, RunState, ShellStream,
};
use acolyte_proto::frame::{HistoryKind, Role};
use acolyte_proto::id::{ErrorId, MessageId, ResourceId, RpcId, SessionId, TaskId};
use acolyte_proto::task::TaskState;
use acolyte_proto::{codec, limits};

#[test]
fn every_id_has_its_prefix() {
    assert!(RpcId::random(1).as_str().starts_with("rpc_"));
    assert!(TaskId::random(1).as_str().starts_with("task_"));
    assert!(SessionId::random(1).as_str().starts_with("sess_"));
    assert!(ErrorId::random(1).as_str().starts_with("err_"));
    assert!(MessageId::random(1).as_str().starts_with("msg_"));
    assert!(ResourceId::random(1).as_str().starts_with("proj_"));
    assert!("user_1".parse::<ResourceId>().is_ok());
    assert_eq!(RpcId::unreadable().as_str(), "rpc_unknown");
}

#[test]
fn every_word_on_the_wire_is_the_known_one() {
    let states = [
        (RunState::new(RunKind::Running), r#"{"kind":"running"}"#),
        (
            RunState {
                tool_calls: Some(2),
                ..RunState::new(RunKind::Running)
            },
            r#"{"kind":"running","toolCalls":2}"#,
        ),
        (RunState::new(RunKind::Queued), r#"{"kind":"queued"}"#),
        (RunState::new(RunKind::Accepted), r#"{"kind":"accepted"}"#),
        (
            RunState::new(RunKind::AwaitingInput),
            r#"{"kind":"awaiting-input"}"#,
        ),
    ];
    for (state, text) in states {
        let event = codec::encode(&Event::Status(state)).unwrap();
        let expected = format!(r#"{{"type":"status","state":{text}}}"#);
        assert_eq!(event.as_str(), expected);
        let read = Event::decode(&expected, &limits::defaults()).unwrap();
        assert_eq!(read, Event::Status(state));
    }

    let tasks = TaskState::ALL.map(TaskState::name);
    let known = "accepted queued running completed failed cancelled";
    assert_eq!(tasks.join(" "), known);
    let items = [
        ItemStatus::Pending,
        ItemStatus::InProgress,
        ItemStatus::Done,
        ItemStatus::Failed,
    ];
    let items: Vec<_> = items.iter().map(ItemStatus::name).collect();
    assert_eq!(items.join(" "), "pending in_progress done failed");
    let tags = [ChecklistTag::Checklist, ChecklistTag::Tasklist].map(ChecklistTag::name);
    assert_eq!(tags, ["checklist", "tasklist"]);
    let markers = [DiffMarker::Add, DiffMarker::Remove, DiffMarker::Context].map(DiffMarker::name);
    assert_eq!(markers, ["add", "remove", "context"]);
    let streams = [ShellStream::Stdout, ShellStream::Stderr].map(ShellStream::name);
    assert_eq!(streams, ["stdout", "stderr"]);
    let roles = [Role::System, Role::User, Role::Assistant].map(Role::name);
    assert_eq!(roles, ["system", "user", "assistant"]);
    let kinds = [
        HistoryKind::Text,
        HistoryKind::ToolPayload,
        HistoryKind::Status,
    ];
    assert_eq!(
        kinds.map(HistoryKind::name),
        ["text", "tool_payload", "status"]
    );

    let codes = [
        (code::UNKNOWN, "E_UNKNOWN"),
        (code::TIMEOUT, "E_TIMEOUT"),
        (code::FILE_NOT_FOUND, "E_FILE_NOT_FOUND"),
        (code::BUDGET_EXHAUSTED, "E_BUDGET_EXHAUSTED"),
        (code::MODEL_NOT_CONFIGURED, "E_MODEL_NOT_CONFIGURED"),
        (
            code::MODEL_PROVIDER_UNAVAILABLE,
            "E_MODEL_PROVIDER_UNAVAILABLE",
        ),
        (code::SANDBOX_VIOLATION, "E_SANDBOX_VIOLATION"),
        (code::ABORTED, "E_ABORTED"),
    ];
    for (code, word) in codes {
        assert_eq!(code, word);
    }
}
