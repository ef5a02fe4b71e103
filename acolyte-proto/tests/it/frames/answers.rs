//! Answers, events and parts are written as known servers write them.

use std::time::{Duration, SystemTime};

use acolyte_proto::error::AppError;
use acolyte_proto::error::{ErrorDetail, code};
use acolyte_proto::event::{
    Checklist, ChecklistItem, Diff, DiffMarker, EditHeader, FileHeader, ItemStatus, Notice,
    RunKind, RunState, ScopeHeader, ShellOutput, ShellStream, ToolCall, ToolHeader, ToolOutput,
    ToolResult, Truncated, Usage,
};
use acolyte_proto::event::{Event, Part};
use acolyte_proto::frame::{AbortResult, Answer, Reply, ReplyUsage, ServerFrame, Skill, Status};
use acolyte_proto::id::{ErrorId, TaskId};
use acolyte_proto::limits;
use acolyte_proto::task::{Task, TaskState};
use rpc_core::Json;

use super::{answer, event, id, written};

#[test]
fn replies_are_flat_and_without_nulls() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_123);
    let mut task = Task::new(TaskId::random(1), at);
    task.state = TaskState::Cancelled;
    let detail = ErrorDetail {
        code: Some(code::UNKNOWN.into()),
        category: Some("other".into()),
        kind: Some("unknown".into()),
        source: Some("server".into()),
        tool: Some("t".into()),
        ..ErrorDetail::default()
    };
    let full = AppError {
        id: Some(ErrorId::random(1)),
        code: Some(code::UNKNOWN.into()),
        detail: Some(Box::new(detail)),
        ..AppError::failed("boom")
    };
    let mut status = Status {
        providers: vec!["openai".into()],
        ..Status::new("m", "http://localhost:6767")
    };
    (status.tasks_total, status.tasks_running) = (3, 2);
    status.rpc_queue_length = 1;
    let mut usage = ReplyUsage::new(1, 2);
    usage.input_budget_tokens = Some(9);
    let mut reply = Reply {
        output_streamed: Some(true),
        ..Reply::new("o", "m")
    };
    (reply.state, reply.error) = (Some("done".into()), Some("e".into()));
    (reply.tool_calls, reply.model_calls) = (vec!["t".into()], Some(2));
    reply.active_skills = vec![Skill::new("n", "i")];
    reply.usage = Some(usage);
    reply.prompt_breakdown = Some(Json::new(r#"{"usedTokens":0}"#).unwrap());
    for (answer, text) in [
        (
            Answer::Status(Box::new(status)),
            r#"{"id":"rpc_a","type":"status.result","status":{"ok":true,"providers":["openai"],"provider_auth":[],"model":"m","protocol_version":"1","capabilities":"error.structured, stream.sse","service":"http://localhost:6767","tasks_total":3,"tasks_running":2,"tasks_detached":0,"rpc_queue_length":1}}"#,
        ),
        (
            Answer::Accepted(TaskId::random(1)),
            r#"{"id":"rpc_a","type":"chat.accepted","taskId":"task_10000000"}"#,
        ),
        (
            Answer::Queued(1),
            r#"{"id":"rpc_a","type":"chat.queued","position":1}"#,
        ),
        (Answer::Started, r#"{"id":"rpc_a","type":"chat.started"}"#),
        (
            Answer::Event(Event::text("a\n")),
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"text-delta","text":"a\n"}}"#,
        ),
        (
            Answer::Done(Box::new(Reply::new("o", "m"))),
            r#"{"id":"rpc_a","type":"chat.done","reply":{"model":"m","output":"o","outputStreamed":false,"toolCalls":[],"activeSkills":[]}}"#,
        ),
        (
            Answer::Done(Box::new(reply)),
            r#"{"id":"rpc_a","type":"chat.done","reply":{"state":"done","model":"m","output":"o","outputStreamed":true,"error":"e","toolCalls":["t"],"modelCalls":2,"activeSkills":[{"name":"n","instructions":"i"}],"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3,"inputBudgetTokens":9},"promptBreakdown":{"usedTokens":0}}}"#,
        ),
        (
            Answer::Failed(Box::new(AppError::failed("boom"))),
            r#"{"id":"rpc_a","type":"chat.error","errorMessage":"boom"}"#,
        ),
        (
            Answer::Failed(Box::new(full)),
            r#"{"id":"rpc_a","type":"chat.error","errorMessage":"boom","errorId":"err_10000000","errorCode":"E_UNKNOWN","error":{"code":"E_UNKNOWN","category":"other","kind":"unknown","source":"server","tool":"t"}}"#,
        ),
        (
            Answer::AbortResult(AbortResult::new(id(), true)),
            r#"{"id":"rpc_a","type":"chat.abort.result","requestId":"rpc_a","aborted":true}"#,
        ),
        (
            Answer::TaskStatus(Some(task)),
            r#"{"id":"rpc_a","type":"task.status.result","task":{"id":"task_10000000","state":"cancelled","createdAt":"2024-01-15T10:30:00.123Z","updatedAt":"2024-01-15T10:30:00.123Z"}}"#,
        ),
        (
            Answer::TaskStatus(None),
            r#"{"id":"rpc_a","type":"task.status.result","task":null}"#,
        ),
        (
            Answer::error("no"),
            r#"{"id":"rpc_a","type":"error","error":"no"}"#,
        ),
    ] {
        let frame = ServerFrame::new(id(), answer);
        assert_eq!(written(&frame), text);
        assert_eq!(self::answer(text), frame);
    }
}

#[test]
fn a_reply_always_names_a_model() {
    let reply = Reply::new("o", "");
    let frame = ServerFrame::new(id(), Answer::Done(Box::new(reply)));
    assert_eq!(
        written(&frame),
        r#"{"id":"rpc_a","type":"chat.done","reply":{"model":"unknown","output":"o","outputStreamed":false,"toolCalls":[],"activeSkills":[]}}"#,
    );
}

#[test]
fn every_event_is_written_as_by_the_known_server() {
    let mut notice = Notice::warn("w");
    notice.source = Some("s".into());
    let item = ChecklistItem {
        status: ItemStatus::InProgress,
        ..ChecklistItem::new("s", "Look", 0)
    };
    let list = Checklist {
        items: vec![item],
        ..Checklist::new("g", "Plan")
    };
    let mut failed = ToolResult::failed("c", "t");
    failed.code = Some("ENOENT".into());
    failed.detail = Some(Box::new(ErrorDetail {
        code: Some("ENOENT".into()),
        ..ErrorDetail::default()
    }));
    for (event, text) in [
        (
            Event::Status(RunState::new(RunKind::Running)),
            r#"{"type":"status","state":{"kind":"running"}}"#,
        ),
        (
            Event::Status(RunState {
                position: Some(1),
                ..RunState::new(RunKind::Queued)
            }),
            r#"{"type":"status","state":{"kind":"queued","position":1}}"#,
        ),
        (
            Event::Status(RunState::new(RunKind::AwaitingInput)),
            r#"{"type":"status","state":{"kind":"awaiting-input"}}"#,
        ),
        (
            Event::Reasoning("Hm".into()),
            r#"{"type":"reasoning","text":"Hm"}"#,
        ),
        (Event::text("Hi"), r#"{"type":"text-delta","text":"Hi"}"#),
        (
            Event::ToolCall(ToolCall::new("c", "t", serde_json::json!({"a": 1}))),
            r#"{"type":"tool-call","toolCallId":"c","toolName":"t","args":{"a":1}}"#,
        ),
        (
            Event::ToolOutput(ToolOutput::new("c", "t", Part::NoOutput)),
            r#"{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"no-output"}}"#,
        ),
        (
            Event::ToolResult(ToolResult::ok("c", "t")),
            r#"{"type":"tool-result","toolCallId":"c","toolName":"t"}"#,
        ),
        (
            Event::ToolResult(failed),
            r#"{"type":"tool-result","toolCallId":"c","toolName":"t","isError":true,"errorCode":"ENOENT","error":{"code":"ENOENT"}}"#,
        ),
        (
            Event::Usage(Usage::new(1, 2)),
            r#"{"type":"usage","inputTokens":1,"outputTokens":2}"#,
        ),
        (
            Event::Checklist(list.clone()),
            r#"{"type":"checklist","groupId":"g","groupTitle":"Plan","items":[{"id":"s","label":"Look","status":"in_progress","order":0}]}"#,
        ),
        (
            Event::Tasklist(list),
            r#"{"type":"tasklist","groupId":"g","groupTitle":"Plan","items":[{"id":"s","label":"Look","status":"in_progress","order":0}]}"#,
        ),
        (
            Event::Error(AppError::failed("no")),
            r#"{"type":"error","errorMessage":"no"}"#,
        ),
        (
            Event::Notice(notice),
            r#"{"type":"notice","level":"warn","message":"w","source":"s"}"#,
        ),
        (
            Event::Notice(Notice::error("e")),
            r#"{"type":"notice","level":"error","message":"e"}"#,
        ),
        (
            Event::SkillActivated(Skill::new("n", "i")),
            r#"{"type":"skill-activated","skill":{"name":"n","instructions":"i"}}"#,
        ),
        (
            Event::SkillDeactivated("n".into()),
            r#"{"type":"skill-deactivated","name":"n"}"#,
        ),
    ] {
        assert_eq!(written(&event), text);
        assert_eq!(self::event(text), event);
    }
}

#[test]
fn every_part_is_written_as_by_the_known_server() {
    for (part, text) in [
        (
            Part::ToolHeader(ToolHeader {
                label_key: "k".into(),
                detail: Some("d".into()),
                state: Some("on".into()),
            }),
            r#"{"kind":"tool-header","labelKey":"k","detail":"d","state":"on"}"#,
        ),
        (Part::text("x"), r#"{"kind":"text","text":"x"}"#),
        (
            Part::FileHeader(FileHeader {
                label_key: "k".into(),
                count: 1,
                targets: vec!["a".into()],
            }),
            r#"{"kind":"file-header","labelKey":"k","count":1,"targets":["a"]}"#,
        ),
        (
            Part::ScopeHeader(ScopeHeader {
                label_key: "k".into(),
                scope: "s".into(),
                patterns: vec!["p".into()],
                matches: 2,
            }),
            r#"{"kind":"scope-header","labelKey":"k","scope":"s","patterns":["p"],"matches":2}"#,
        ),
        (
            Part::EditHeader(EditHeader {
                label_key: "k".into(),
                path: "p".into(),
                added: 1,
                removed: 2,
                files: Some(1),
            }),
            r#"{"kind":"edit-header","labelKey":"k","path":"p","files":1,"added":1,"removed":2}"#,
        ),
        (
            Part::Diff(Diff {
                marker: DiffMarker::Remove,
                line_number: 3,
                text: "l".into(),
            }),
            r#"{"kind":"diff","marker":"remove","lineNumber":3,"text":"l"}"#,
        ),
        (
            Part::ShellOutput(ShellOutput {
                stream: ShellStream::Stderr,
                text: "o".into(),
            }),
            r#"{"kind":"shell-output","stream":"stderr","text":"o"}"#,
        ),
        (Part::NoOutput, r#"{"kind":"no-output"}"#),
        (
            Part::Truncated(Truncated {
                count: Some(4),
                unit: Some("lines".into()),
            }),
            r#"{"kind":"truncated","count":4,"unit":"lines"}"#,
        ),
    ] {
        assert_eq!(written(&part), text);
        let output = Event::ToolOutput(ToolOutput::new("c", "t", part));
        let text = written(&output);
        assert_eq!(event(&text), output);
    }
}

#[test]
fn unknown_values_are_kept_verbatim() {
    for text in [
        r#"{"id":"rpc_a","type":"chat.later","x":[1, null]}"#,
        r#"{"x":{},"type":"later","id":"rpc_a"}"#,
    ] {
        let frame = answer(text);
        assert!(matches!(frame.answer, Answer::Unknown { .. }), "{text}");
        assert_eq!(written(&frame), text);
    }
    for text in [
        r#"{"type":"later","text":7}"#,
        r#"{"text":7,"type":"later"}"#,
        r#"{"type":"status","message":"an old server"}"#,
        r#"{"type":"status","state":"running"}"#,
        r#"{"type":"status","state":{"kind":"later"}}"#,
    ] {
        assert!(matches!(event(text), Event::Unknown { .. }), "{text}");
        assert_eq!(written(&event(text)), text);
    }
    for part in [
        r#"{"kind":"later","text":7}"#,
        r#"{"kind":"diff","marker":"moved","text":"x"}"#,
        r#"{"kind":"shell-output","stream":"log"}"#,
    ] {
        let text =
            format!(r#"{{"type":"tool-output","toolCallId":"c","toolName":"t","content":{part}}}"#);
        let Event::ToolOutput(ToolOutput { content, .. }) = event(&text) else {
            panic!("{text}");
        };
        assert!(matches!(content, Part::Unknown { .. }), "{text}");
        assert_eq!(written(&content), part);
    }
}

#[test]
fn open_objects_keep_unknown_members() {
    for text in [
        r#"{"type":"tool-result","toolCallId":"c","toolName":"t","output":{"a":1}}"#,
        r#"{"type":"error","errorMessage":"m","error":{"code":"E","stack":["x"]}}"#,
    ] {
        assert_eq!(written(&event(text)), text);
    }
    let status = r#"{"ok":true,"model":"m","protocol_version":"1","resources.skills.invalid":2,"cloud_user":"u","nothing":null}"#;
    let status = Status::decode(status, &limits::defaults()).unwrap();
    assert_eq!(
        status.extra.get("cloud_user").map(Json::get),
        Some(r#""u""#)
    );
    assert_eq!(status.extra.iter().count(), 2);
}

#[test]
fn a_server_is_healthy_by_default() {
    for (text, ok) in [
        ("{}", true),
        (r#"{"ok":null}"#, true),
        (r#"{"ok":false}"#, false),
    ] {
        let status = Status::decode(text, &limits::defaults()).unwrap();
        assert_eq!(status.ok, ok, "{text}");
    }
}
