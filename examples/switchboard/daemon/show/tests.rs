//! Tests: what people and programs are shown.

use acolyte_proto::error::ChatError;
use acolyte_proto::event::{ChecklistItem, ItemStatus, Part, ToolCall, ToolOutput, ToolResult};
use acolyte_proto::id::TaskId;
use rpc_core::CloseReason;
use switchboard::terminal::{ChatEvent, PlanItem, PlanStatus};

use super::*;

fn people() -> Show {
    Show::new(Style::People { colour: false })
}

fn failed(call: &str, tool: &str, code: &str) -> ToolResult {
    let mut result = ToolResult::failed(call, tool);
    result.code = Some(code.into());
    result
}

fn event(event: Event) -> ChatUpdate {
    ChatUpdate::Event(event)
}

fn lines(mut show: Show, update: &ChatUpdate) -> Vec<String> {
    let pieces = show.update(update, None).into_iter();
    let line = |piece| match piece {
        Piece::Line(line) => line,
        Piece::Text(text) => format!("text {text}"),
    };
    pieces.map(line).collect()
}

#[test]
fn people_read_what_happens_line_by_line() {
    let args = json!({ "content": "x", "path": "a\x1b.txt" });
    let call = ToolCall::new("c", "file-edit", args);
    let diff = Part::Diff(acolyte_proto::event::Diff {
        marker: acolyte_proto::event::DiffMarker::Add,
        line_number: 7,
        text: "new".into(),
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
    for (update, expected) in [
        (event(Event::text("a\nb")), &["text a\nb"][..]),
        (event(Event::ToolCall(call)), &[r"  file-edit a\u{1b}.txt"]),
        (
            event(Event::ToolOutput(ToolOutput::new("c", "file-edit", diff))),
            &["       7 + new"],
        ),
        (event(Event::ToolResult(ToolResult::ok("c", "t"))), &[]),
        (
            event(Event::ToolResult(failed("c", "t", "E_X"))),
            &["  t failed: E_X"],
        ),
        (
            event(Event::ToolResult(failed("c", "t", "E_DECLINED"))),
            &["  t failed: you declined it"],
        ),
        (
            event(Event::Checklist(list)),
            &["  Plan", "    [~] now", "    [ ] later"],
        ),
        (ChatUpdate::Queued { position: 2 }, &["  waiting, place 2"]),
        (ChatUpdate::Started, &[]),
    ] {
        assert_eq!(lines(people(), &update), expected, "{update:?}");
    }
    let queued = ChatUpdate::Queued { position: 2 };
    let pieces = people().update(&queued, Some(3));
    assert_eq!(
        pieces,
        [Piece::Line("  chat 3 waiting, place 2".to_owned())]
    );
}

#[test]
fn the_view_gets_changes_as_a_diff_and_no_call_of_a_plan() {
    let diff = Part::Diff(acolyte_proto::event::Diff {
        marker: acolyte_proto::event::DiffMarker::Remove,
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
    let id = "2 c".to_owned();
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
        let shown = events(&event(happened), 2);
        assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_calls_show_side_by_side_stands_below_the_call() {
    let mut show = people();
    let call = |id: &'static str, path: &str| {
        let args = json!({ "path": path });
        let call = ToolCall::new(id, "file-read", args);
        event(Event::ToolCall(call))
    };
    let output = |id: &'static str, text: &'static str| {
        let output = ToolOutput::new(id, "file-read", Part::text(text));
        event(Event::ToolOutput(output))
    };
    let failed = |id: &'static str| event(Event::ToolResult(failed(id, "file-read", "E_X")));
    let done = |id: &'static str| event(Event::ToolResult(ToolResult::ok(id, "file-read")));
    let mut lines = Vec::new();
    for (chat, update) in [
        (1, call("a", "a.txt")),
        (1, call("b", "b.txt")),
        (1, output("a", "one")),
        (1, output("a", "two")),
        (1, output("b", "three")),
        (1, failed("a")),
        (1, done("b")),
        (2, call("b", "c.txt")),
        (2, output("b", "four")),
        (2, output("nobody", "five")),
    ] {
        for piece in show.update(&update, Some(chat)) {
            let Piece::Line(line) = piece else {
                panic!("{piece:?}");
            };
            lines.push(line);
        }
    }
    let expected = [
        "  file-read a.txt",
        "  file-read b.txt",
        "  file-read a.txt",
        "    one",
        "    two",
        "  file-read b.txt",
        "    three",
        "  file-read a.txt",
        "  file-read failed: E_X",
        "  file-read c.txt",
        "    four",
        "    five",
    ];
    assert_eq!(lines, expected);
    assert_eq!(show.calls.len(), 1, "calls that have ended are forgotten");
}

#[test]
fn programs_read_an_object_for_each_update() {
    let mut show = Show::new(Style::Json);
    let task_id = "task_a".parse::<TaskId>().unwrap();
    for (update, expected) in [
        (
            ChatUpdate::Accepted { task_id },
            r#"{"update":"accepted","taskId":"task_a"}"#,
        ),
        (
            event(Event::text("hi")),
            r#"{"update":"event","event":{"type":"text-delta","text":"hi"}}"#,
        ),
    ] {
        assert_eq!(lines(show.clone(), &update), [expected]);
    }
    let numbered = show.update(&ChatUpdate::Started, Some(2));
    let expected = r#"{"update":"started","chat":2}"#;
    assert_eq!(numbered, [Piece::Line(expected.to_owned())]);
}

#[test]
fn an_end_says_what_became_of_the_chat() {
    let error = ChatError {
        code: Some("E_X".into()),
        ..ChatError::new("no")
    };
    let unknown = ChatError {
        code: Some("E_UNKNOWN".into()),
        ..ChatError::new("broken")
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
        let line = Show::ended_json(&outcome, Some("task_a"), None);
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&line["update"], &line["taskId"]),
            (&json!("ended"), &json!("task_a"))
        );
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&line[name], value, "{line}");
        }
        assert!(words(&outcome).contains(said), "{}", words(&outcome));
    }
}

#[test]
fn thoughts_are_shown_when_they_are_thought_through() {
    let mut show = people();
    let thought = |text: &'static str| event(Event::Reasoning(text.into()));
    let usage = event(Event::Usage(acolyte_proto::event::Usage::new(1, 1)));
    for update in [thought("shall "), usage, thought("I? ")] {
        assert_eq!(show.update(&update, None), []);
    }
    let pieces = show.update(&event(Event::text("no")), None);
    let expected = [
        Piece::Line("  thinks: shall I?".to_owned()),
        Piece::Text("no".to_owned()),
    ];
    assert_eq!(pieces, expected);
}
