//! Tests: what people and programs are shown.

use acolyte_proto::error::AppError;
use acolyte_proto::event::{ChecklistItem, ToolCall, ToolOutput};
use acolyte_proto::id::TaskId;
use rpc_core::CloseReason;

use super::*;

fn failed(call: &str, tool: &str, code: &str) -> ToolResult {
    let mut result = ToolResult::failed(call, tool);
    result.code = Some(code.into());
    result
}

fn event(event: Event) -> ChatUpdate {
    ChatUpdate::Event(event)
}

#[test]
fn the_view_gets_changes_as_a_diff_and_no_call_of_a_plan() {
    let diff = Part::Diff(Diff {
        marker: DiffMarker::Remove,
        line_number: 7,
        text: "old".into(),
    });
    let list = Checklist {
        items: vec![
            ChecklistItem::new("2", "later", 1),
            ChecklistItem {
                status: ItemStatus::InProgress,
                ..ChecklistItem::new("1", "now", 0)
            },
        ],
        ..Checklist::new("p", "Plan")
    };
    let item = |status, text: &str| PlanItem {
        status,
        text: text.to_owned(),
    };
    let id = "c".to_owned();
    for (happened, expected) in [
        (
            Event::ToolOutput(ToolOutput::new("c", "file-edit", diff)),
            Some(ChatEvent::ToolOutput {
                id: id.clone(),
                text: "-   7  old\n".to_owned(),
                is_diff: true,
            }),
        ),
        (
            Event::ToolResult(failed("c", "t", "E_X")),
            Some(ChatEvent::ToolResult {
                id,
                outcome: Err("E_X".to_owned()),
            }),
        ),
        (
            Event::ToolCall(ToolCall::new("p", CHECKLIST, json!({}))),
            None,
        ),
        (Event::ToolResult(ToolResult::ok("p", CHECKLIST)), None),
        (
            Event::Checklist(list),
            Some(ChatEvent::Plan {
                title: "Plan".to_owned(),
                items: vec![
                    item(PlanStatus::Active, "now"),
                    item(PlanStatus::Pending, "later"),
                ],
            }),
        ),
    ] {
        let shown = events(&event(happened));
        assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn programs_read_an_object_for_each_update() {
    let task_id = "task_a".parse::<TaskId>().unwrap();
    for (update, expected) in [
        (
            ChatUpdate::Accepted { task_id },
            r#"{"event":"accepted","taskId":"task_a"}"#,
        ),
        (
            event(Event::text("hi")),
            r#"{"event":"step","frame":{"type":"text-delta","text":"hi"}}"#,
        ),
    ] {
        assert_eq!(json(&update).as_deref(), Some(expected));
    }
}

#[test]
fn an_end_names_the_outcome_of_the_chat() {
    let error = AppError {
        code: Some("E_X".into()),
        ..AppError::failed("no")
    };
    let unknown = AppError {
        code: Some("E_UNKNOWN".into()),
        ..AppError::failed("broken")
    };
    let unknown = Outcome::Failed(Failure::Server(Box::new(unknown)));
    assert_eq!(words(&unknown), "broken");
    let mut cut = Reply::new("so far", "m");
    cut.error = Some("cut".into());
    let lost = Outcome::Closed {
        reason: CloseReason::Local,
        delivery: Delivery::Unknown,
    };
    for (outcome, expected, said) in [
        (
            Outcome::Done(Box::new(Reply::new("yes", "m"))),
            json!({ "outcome": "done", "mayHaveRun": true }),
            "done",
        ),
        (
            Outcome::Failed(Failure::Server(Box::new(error))),
            json!({ "outcome": "failed", "errorCode": "E_X" }),
            "no (E_X)",
        ),
        (
            Outcome::Failed(Failure::Model(Box::new(cut))),
            json!({ "outcome": "failed", "message": "cut" }),
            "cut",
        ),
        (
            lost,
            json!({ "outcome": "closed", "mayHaveRun": true }),
            "look before you repeat it",
        ),
        (
            Outcome::Aborted { error: None },
            json!({ "outcome": "aborted" }),
            "aborted",
        ),
    ] {
        let line = ended_json(&outcome, Some("task_a"));
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&line["event"], &line["taskId"]),
            (&json!("ended"), &json!("task_a"))
        );
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&line[name], value, "{line}");
        }
        assert!(words(&outcome).contains(said), "{}", words(&outcome));
    }
}
