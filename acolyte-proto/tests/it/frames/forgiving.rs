//! Answers are read forgivingly, so that no one waits for ever.

use acolyte_proto::error::{ErrorDetail, ErrorKind, RpcError};
use acolyte_proto::event::{
    Checklist, ChecklistItem, Event, Part, ToolCall, ToolOutput, ToolResult, Usage,
};
use acolyte_proto::frame::{Answer, Extra, ReplyUsage, ServerFrame};
use acolyte_proto::limits;
use rpc_core::Json;

use super::{answer, event, id};

/// Every one of these leaves a known client waiting.
#[test]
fn a_terminal_frame_decodes_without_optional_members() {
    for reply in [
        r#"{"output":"fine","model":"m"}"#,
        r#"{"output":"fine","model":"m","state":"done"}"#,
        r#"{"output":"fine","outputStreamed":true,"model":""}"#,
        r#"{"output":"fine","outputStreamed":true}"#,
        r#"{"output":"fine","model":"m","usage":{"inputTokens":1,"outputTokens":2}}"#,
        r#"{"output":"fine","model":"m","usage":{"inputTokens":-1,"outputTokens":2.5,"totalTokens":null}}"#,
        r#"{"output":"fine","model":"m","usage":7,"toolCalls":null,"promptBreakdown":[]}"#,
        r#"{"output":"fine","outputStreamed":null,"model":null,"error":null,"activeSkills":null}"#,
        r#"{"output":"fine","model":"m","activeSkills":[{"name":"n"},7],"toolCalls":[7,"t"]}"#,
    ] {
        let text = format!(r#"{{"id":"rpc_a","type":"chat.done","reply":{reply}}}"#);
        let Answer::Done(read) = answer(&text).answer else {
            panic!("{text}");
        };
        assert_eq!((&*read.output, &read.error), ("fine", &None), "{text}");
    }
    for (error, message) in [
        (r#""errorMessage":"boom""#, "boom"),
        (r#""errorMessage":"boom","errorId":null"#, "boom"),
        (r#""errorMessage":"boom","errorId":"a-b""#, "boom"),
        (
            r#""errorMessage":"boom","errorCode":7,"error":{"code":null}"#,
            "boom",
        ),
        (r#""error":"boom""#, "boom"),
        (r#""error":{"message":"boom"}"#, "boom"),
        (r#""errorMessage":"boom","error":"other""#, "boom"),
        (
            r#""errorMessage":"boom","error":{"message":"other"}"#,
            "boom",
        ),
        (r#""errorMessage":null"#, "unknown error"),
        (r#""payload":{"errorMessage":"boom"}"#, "unknown error"),
    ] {
        let text = format!(r#"{{"id":"rpc_a","type":"chat.error",{error}}}"#);
        let Answer::Failed(read) = answer(&text).answer else {
            panic!("{text}");
        };
        assert_eq!((&*read.message, &read.id), (message, &None), "{text}");
    }
    for (error, words) in [
        (r#""error":"refused""#, "refused"),
        (r#""error":{"message":"refused","code":1}"#, "refused"),
        (r#""error":7"#, "unknown error"),
        (r#""errorMessage":"refused""#, "refused"),
    ] {
        let text = format!(r#"{{"id":"rpc_a","type":"error",{error}}}"#);
        let Answer::Error(refusal) = answer(&text).answer else {
            panic!("{text}");
        };
        assert_eq!(refusal.error, words);
        assert_eq!(RpcError::new(refusal.error).kind(), ErrorKind::Other);
    }
}

#[test]
fn a_missing_usage_total_is_computed() {
    for (total, expected) in [
        ("", 3),
        (r#","totalTokens":null"#, 3),
        (r#","totalTokens":7"#, 7),
    ] {
        let text = format!(
            r#"{{"id":"rpc_a","type":"chat.done","reply":{{"output":"","model":"m","usage":{{"inputTokens":1,"outputTokens":2{total}}}}}}}"#
        );
        let Answer::Done(reply) = answer(&text).answer else {
            panic!("{text}");
        };
        let mut usage = ReplyUsage::new(1, 2);
        usage.total_tokens = expected;
        assert_eq!(reply.usage, Some(usage), "{text}");
    }
}

#[test]
fn a_failed_model_is_distinct_from_a_reply() {
    let text =
        r#"{"id":"rpc_a","type":"chat.done","reply":{"output":"","model":"m","error":{"a":1}}}"#;
    let Answer::Done(reply) = answer(text).answer else {
        panic!("{text}");
    };
    assert_eq!(reply.error.as_deref(), Some(r#"{"a":1}"#));
}

#[test]
fn a_malformed_reply_names_its_id_and_kind() {
    for (text, tag) in [
        (r#"{"id":"rpc_a","type":"chat.done"}"#, Some("chat.done")),
        (
            r#"{"id":"rpc_a","type":"chat.done","payload":{"reply":{}}}"#,
            Some("chat.done"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.done","reply":{"output":7}}"#,
            Some("chat.done"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.done","reply":"x"}"#,
            Some("chat.done"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.accepted","taskId":"nope"}"#,
            Some("chat.accepted"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.queued"}"#,
            Some("chat.queued"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"text-delta"}}"#,
            Some("chat.event"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":"x"}"#,
            Some("chat.event"),
        ),
        (
            r#"{"id":"rpc_a","type":"status.result"}"#,
            Some("status.result"),
        ),
        (
            r#"{"id":"rpc_a","type":"task.status.result","task":{"id":"task_a"}}"#,
            Some("task.status.result"),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.abort.result","aborted":true}"#,
            Some("chat.abort.result"),
        ),
        (r#"{"id":"rpc_a"}"#, None),
    ] {
        let error = ServerFrame::decode(text, &limits::defaults()).unwrap_err();
        assert_eq!(
            (error.id, error.tag.as_deref()),
            (Some(id()), tag),
            "{text}"
        );
    }
    for text in [
        "",
        "[]",
        r#"{"type":"chat.started"}"#,
        r#"{"id":"x","type":"chat.started"}"#,
    ] {
        let error = ServerFrame::decode(text, &limits::defaults()).unwrap_err();
        assert_eq!(error.id, None, "{text}");
    }
}

#[test]
fn tolerable_deviations_are_accepted() {
    let mut with_detail = ToolResult::failed("c", "t");
    with_detail.detail = Some(Box::new(ErrorDetail {
        code: Some("E".into()),
        ..ErrorDetail::default()
    }));
    let mut with_code = ToolResult::failed("c", "t");
    with_code.code = Some("E".into());
    for (text, read) in [
        (
            r#"{"id":"rpc_a","type":"chat.queued","position":0}"#,
            Answer::Queued(0),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.queued","position":4294967296}"#,
            Answer::Queued(u32::MAX),
        ),
        (
            r#"{"id":"rpc_a","type":"task.status.result"}"#,
            Answer::TaskStatus(None),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"usage","inputTokens":1.5,"outputTokens":-2}}"#,
            Answer::Event(Event::Usage(Usage::new(1, 0))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"usage"}}"#,
            Answer::Event(Event::Usage(Usage::new(0, 0))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-call","toolCallId":7,"toolName":"t"}}"#,
            Answer::Event(Event::ToolCall(ToolCall::new("7", "t", Json::EMPTY_OBJECT))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"t","args":null}}"#,
            Answer::Event(Event::ToolCall(ToolCall::new(
                "c",
                "t",
                Json::new("{}").unwrap(),
            ))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"t","content":"plain"}}"#,
            Answer::Event(Event::ToolOutput(ToolOutput::new(
                "c",
                "t",
                Part::text("plain"),
            ))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t","errorCode":"E"}}"#,
            Answer::Event(Event::ToolResult(with_code)),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t","isError":null,"error":{"code":"E"}}}"#,
            Answer::Event(Event::ToolResult(with_detail)),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t","isError":false,"errorCode":"E","error":{"code":"E"}}}"#,
            Answer::Event(Event::ToolResult(ToolResult::ok("c", "t"))),
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"checklist","groupId":1,"items":[null,{"id":7,"label":"l"}]}}"#,
            Answer::Event(Event::Checklist(Checklist {
                items: vec![ChecklistItem::new("7", "l", 0)],
                ..Checklist::new("1", "")
            })),
        ),
    ] {
        assert_eq!(answer(text).answer, read, "{text}");
    }
}

/// Every known event; `@` stands where an object may have more members.
const EVENTS: [&str; 16] = [
    r#"{"type":"status","state":{"kind":"running","toolCalls":1@}@}"#,
    r#"{"type":"reasoning","text":"Hm"@}"#,
    r#"{"type":"text-delta","text":"Hi"@}"#,
    r#"{"type":"tool-call","toolCallId":"c","toolName":"t","args":{"a":1}@}"#,
    r#"{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"text","text":"x"@}@}"#,
    r#"{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"shell-output","stream":"stdout","text":"x"@}@}"#,
    r#"{"type":"tool-result","toolCallId":"c","toolName":"t"@}"#,
    r#"{"type":"tool-result","toolCallId":"c","toolName":"t","isError":true,"error":{"code":"E"@}@}"#,
    r#"{"type":"usage","inputTokens":1,"outputTokens":2@}"#,
    r#"{"type":"checklist","groupId":"g","groupTitle":"P","items":[{"id":"s","label":"l","status":"done","order":0@}]@}"#,
    r#"{"type":"tasklist","groupId":"g","groupTitle":"P","items":[]@}"#,
    r#"{"type":"error","errorMessage":"no","error":{"code":"E"@}@}"#,
    r#"{"type":"notice","level":"warn","message":"w"@}"#,
    r#"{"type":"notice","level":"error","message":"w","source":"s"@}"#,
    r#"{"type":"skill-activated","skill":{"name":"n","instructions":"i"@}@}"#,
    r#"{"type":"skill-deactivated","name":"n"@}"#,
];

#[test]
fn unknown_members_are_ignored_in_every_event() {
    for text in EVENTS {
        let usual = event(&text.replace('@', ""));
        let mut more = event(&text.replace('@', r#","later":{"type":[null]}"#));
        // These two keep them, to pass them on.
        if let Event::ToolResult(result) = &mut more {
            assert!(result.extra.get("later").is_some(), "{text}");
            result.extra = Extra::default();
            if let Some(detail) = &mut result.detail {
                detail.extra = Extra::default();
            }
        }
        if let Event::Error(error) = &mut more
            && let Some(detail) = &mut error.detail
        {
            detail.extra = Extra::default();
        }
        let is_known = match &usual {
            Event::ToolOutput(output) => !matches!(output.content, Part::Unknown { .. }),
            event => !matches!(event, Event::Unknown { .. }),
        };
        assert!(is_known, "{text}");
        assert_eq!(more, usual, "{text}");
        let frame = text.replace('@', "");
        let frame = format!(r#"{{"id":"rpc_a","type":"chat.event","later":7,"event":{frame}}}"#);
        assert_eq!(answer(&frame).answer, Answer::Event(usual), "{text}");
    }
}

#[test]
fn members_may_come_in_any_order() {
    for (usual, other) in [
        (
            r#"{"id":"rpc_a","type":"chat.queued","position":1}"#,
            r#"{"position":1,"type":"chat.queued","id":"rpc_a"}"#,
        ),
        (
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"text","text":"x"}}}"#,
            r#"{"event":{"content":{"text":"x","kind":"text"},"toolName":"t","toolCallId":"c","type":"tool-output"},"id":"rpc_a","type":"chat.event"}"#,
        ),
    ] {
        assert_eq!(answer(usual), answer(other));
    }
}

#[test]
fn debug_output_is_redacted() {
    let text = r#"{"id":"rpc_a","type":"later","x":"secret"}"#;
    assert!(!format!("{:?}", answer(text)).contains("secret"));
    let text = r#"{"type":"tool-result","toolCallId":"c","toolName":"t","output":"secret"}"#;
    assert!(!format!("{:?}", event(text)).contains("secret"));
}

#[test]
fn a_lone_surrogate_is_replaced_in_every_frame() {
    let text =
        r#"{"id":"rpc_a","type":"chat.event","event":{"type":"text-delta","text":"a\ud83d"}}"#;
    assert_eq!(answer(text).answer, Answer::Event(Event::text("a\u{fffd}")));
    let text = r#"{"id":"rpc_a","type":"chat.done","reply":{"output":"\ude00b","model":"m"}}"#;
    let Answer::Done(reply) = answer(text).answer else {
        panic!("{text}");
    };
    assert_eq!(reply.output, "\u{fffd}b");
}
