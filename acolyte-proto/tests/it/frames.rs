//! Single frames: what is read strictly, what forgivingly, and how all of it is written.

use std::time::{Duration, SystemTime};

use acolyte_proto::error::{ErrorDetail, INVALID_MESSAGE, RefusalKind, code};
use acolyte_proto::event::{
    Checklist, ChecklistItem, ChecklistTag, DiffMarker, ItemStatus, Notice, RunState, ShellStream,
    ToolCall, ToolFailure, ToolOutput, ToolResult, Usage,
};
use acolyte_proto::frame::{
    Answer, HistoryItem, HistoryKind, ReplyUsage, Request, RequestFault, Role, Skill, Unknown,
};
use acolyte_proto::{
    ChatError, ChatRequest, ClientFrame, ErrorId, Event, FrameError, MessageId, Part, Reply, RpcId,
    ServerFrame, Status, Task, TaskId, TaskState, codec, limits,
};
use rpc_core::decode::{DecodeErrorKind, RawJson};

fn request(text: &str) -> Result<ClientFrame<'_>, FrameError> {
    ClientFrame::decode(text, &limits::defaults())
}

fn answer(text: &str) -> ServerFrame<'_> {
    ServerFrame::decode(text, &limits::defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn event(text: &str) -> Event<'_> {
    Event::decode(text, &limits::defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// A `chat.start` with this JSON as its request.
fn start(request: &str) -> String {
    format!(r#"{{"id":"rpc_a","type":"chat.start","payload":{{"request":{request}}}}}"#)
}

fn id() -> RpcId {
    RpcId::parse("rpc_a").unwrap()
}

#[test]
fn every_request_is_written_as_the_known_client_writes_it() {
    for text in [
        r#"{"id":"rpc_a","type":"status.get"}"#,
        r#"{"id":"rpc_a","type":"chat.abort","payload":{"requestId":"rpc_b"}}"#,
        r#"{"id":"rpc_a","type":"task.status","payload":{"taskId":"task_b"}}"#,
        &start(r#"{"message":"","history":[],"model":""}"#),
        &start(
            r#"{"message":"hi","history":[null,{"x":1}],"model":"m","sessionId":"sess_1","resourceId":"user_1","activeSkills":[{"name":"n","instructions":"i"}],"suggestions":["s"],"workspace":"/w"}"#,
        ),
    ] {
        let frame = request(text).unwrap();
        assert_eq!(written(&frame), text);
        assert_eq!(frame.clone().into_owned(), frame);
    }
}

#[test]
fn what_a_request_carries_beside_its_payload_is_ignored() {
    for text in [
        r#"{"x":null,"id":"rpc_a","type":"status.get","payload":7}"#,
        r#"{"payload":[],"type":"status.get","id":"rpc_a"}"#,
        " {\"type\" : \"status.get\", \"id\": \"rpc_a\"}\n",
    ] {
        assert_eq!(request(text).unwrap().request, Request::StatusGet, "{text}");
    }
    let text = r#"{"payload":{"x":1,"requestId":"rpc_b"},"x":1,"type":"chat.abort","id":"rpc_a"}"#;
    assert_eq!(
        written(&request(text).unwrap()),
        r#"{"id":"rpc_a","type":"chat.abort","payload":{"requestId":"rpc_b"}}"#
    );
}

#[test]
fn a_request_with_a_readable_id_is_refused_under_it() {
    for text in [
        r#"{"id":"rpc_a"}"#,
        r#"{"id":"rpc_a","type":"nope"}"#,
        r#"{"id":"rpc_a","type":null}"#,
        r#"{"id":"rpc_a","type":"chat.start"}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":null}"#,
        r#"{"id":"rpc_a","type":"chat.start","payload":{"message":"x","history":[],"model":"m"}}"#,
        r#"{"id":"rpc_a","type":"chat.abort","payload":{"requestId":"b"}}"#,
        r#"{"id":"rpc_a","type":"chat.abort","payload":{"taskId":"task_b"}}"#,
        r#"{"type":"task.status","payload":{"taskId":"rpc_b"},"id":"rpc_a"}"#,
        r#"{"id":"rpc_a","type":7}"#,
    ] {
        assert_eq!(request(text).unwrap_err().reply_to(), id(), "{text}");
    }
}

#[test]
fn a_request_without_a_readable_id_is_refused_as_unknown() {
    for text in [
        "",
        "nope",
        "null",
        "[]",
        r#"[{"id":"rpc_a","type":"status.get"}]"#,
        r#"{"type":"status.get"}"#,
        r#"{"id":7,"type":"status.get"}"#,
        r#"{"id":null,"type":"status.get"}"#,
        r#"{"id":"a","type":"status.get"}"#,
        r#"{"id":"rpc_A","type":"status.get"}"#,
        r#"{"id":"rpc_a","type":"status.get"} x"#,
        r#"{"id":"rpc_a","type":"status.get""#,
    ] {
        let error = request(text).unwrap_err();
        assert_eq!(error.reply_to().as_str(), "rpc_unknown", "{text}");
    }
    let refusal = ServerFrame::error(RpcId::unreadable(), INVALID_MESSAGE);
    assert_eq!(
        written(&refusal),
        r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#
    );
}

#[test]
fn of_a_member_that_comes_twice_the_last_counts() {
    let text = r#"{"id":"rpc_x","id":"rpc_a","type":"chat.abort","type":"status.get"}"#;
    let frame = request(text).unwrap();
    assert_eq!((frame.id, frame.request), (id(), Request::StatusGet));
    let text = r#"{"id":"rpc_x","id":"rpc_a","type":"nope"}"#;
    assert_eq!(request(text).unwrap_err().reply_to(), id());
    let text = r#"{"id":"rpc_a","type":"chat.event","event":{"type":"usage","type":"text-delta","text":"a","text":"b"}}"#;
    assert_eq!(answer(text).answer, Answer::Event(Event::text("b")));
}

#[test]
fn a_chat_is_read_strictly() {
    for wrong in [
        r#"{"history":[],"model":"m"}"#,
        r#"{"message":"x","model":"m"}"#,
        r#"{"message":"x","history":[]}"#,
        r#"{"message":null,"history":[],"model":"m"}"#,
        r#"{"message":"x","history":null,"model":"m"}"#,
        r#"{"message":"x","history":{},"model":"m"}"#,
        r#"{"message":7,"history":[],"model":"m"}"#,
        r#"{"message":"x","history":[],"model":"m","useMemory":true}"#,
        r#"{"message":"x","history":[],"model":"m","sessionId":null}"#,
        r#"{"message":"x","history":[],"model":"m","sessionId":"sess_a-b"}"#,
        r#"{"message":"x","history":[],"model":"m","resourceId":"sess_a"}"#,
        r#"{"message":"x","history":[],"model":"m","workspace":null}"#,
        r#"{"message":"x","history":[],"model":"m","suggestions":null}"#,
        r#"{"message":"x","history":[],"model":"m","suggestions":[null]}"#,
        r#"{"message":"x","history":[],"model":"m","suggestions":"s"}"#,
        r#"{"message":"x","history":[],"model":"m","activeSkills":[{"name":"","instructions":"i"}]}"#,
        r#"{"message":"x","history":[],"model":"m","activeSkills":[{"name":"n"}]}"#,
        r#"{"message":"x","history":[],"model":"m","activeSkills":[null]}"#,
    ] {
        let text = start(wrong);
        assert_eq!(request(&text).unwrap_err().reply_to(), id(), "{wrong}");
    }
    let extra = r#"{"message":"x","history":[],"model":"m","activeSkills":[{"name":"n","instructions":"i","x":1}]}"#;
    assert!(request(&start(extra)).is_ok());
}

#[test]
fn a_chat_over_http_is_read_less_strictly() {
    let limits = limits::defaults();
    let long = "x".repeat(limits::MAX_MODEL_UNITS + 1);
    let body = format!(
        r#"{{"message":"x","history":[],"model":"{long}","sessionId":"sess_a-b","workspace":null,"y":1}}"#
    );
    let chat = ChatRequest::decode_lax(&body, &limits).unwrap();
    assert_eq!((&*chat.message, chat.session_id), ("x", None));
    assert!(ChatRequest::decode(&body, &limits).is_err());
    for wrong in [
        "[]",
        "{}",
        r#"{"message":"x","model":"m"}"#,
        r#"{"message":7,"history":[],"model":"m"}"#,
    ] {
        assert!(ChatRequest::decode_lax(wrong, &limits).is_err(), "{wrong}");
    }
}

#[test]
fn the_limits_of_a_chat_are_exact() {
    let chat = || ChatRequest::new("x", "m");
    let too_long = |member, max| Err(RequestFault::TooLong { member, max });
    let too_many = |member, max| Err(RequestFault::TooMany { member, max });
    let null = || RawJson::new("null").unwrap();
    for (inside, outside, fault) in [
        (
            ChatRequest::new("x".repeat(100_000), "m"),
            ChatRequest::new("x".repeat(100_001), "m"),
            too_long("message", 100_000),
        ),
        (
            ChatRequest::new("😀".repeat(50_000), "m"),
            ChatRequest::new("😀".repeat(50_001), "m"),
            too_long("message", 100_000),
        ),
        (
            ChatRequest::new("x", "é".repeat(200)),
            ChatRequest::new("x", "é".repeat(201)),
            too_long("model", 200),
        ),
        (
            chat().with_raw_history(vec![null(); 500]),
            chat().with_raw_history(vec![null(); 501]),
            too_many("history", 500),
        ),
        (
            (0..10).fold(chat(), |chat, _| chat.with_suggestion("x".repeat(1_000))),
            (0..11).fold(chat(), |chat, _| chat.with_suggestion("x")),
            too_many("suggestions", 10),
        ),
        (
            chat().with_suggestion("x".repeat(1_000)),
            chat().with_suggestion("x".repeat(1_001)),
            too_long("suggestions", 1_000),
        ),
        (
            chat().with_workspace("x".repeat(4_096)),
            chat().with_workspace("x".repeat(4_097)),
            too_long("workspace", 4_096),
        ),
        (
            chat().with_active_skill(Skill::new("n", "i")),
            chat().with_active_skill(Skill::new("n", "")),
            Err(RequestFault::EmptySkill {
                member: "instructions",
            }),
        ),
    ] {
        assert_eq!(inside.validate(), Ok(()));
        assert_eq!(outside.validate(), fault);
        for (chat, is_valid) in [(inside, true), (outside, false)] {
            let frame = ClientFrame::new(id(), Request::ChatStart(Box::new(chat)));
            let text = written(&frame);
            assert_eq!(request(&text).is_ok(), is_valid, "{fault:?}");
        }
    }
}

#[test]
fn a_message_that_is_too_large_is_not_read() {
    let limits = limits::defaults().with_max_message_bytes(40);
    let text = r#"{"id":"rpc_a","type":"status.get","x":"xxxxxxxxxx"}"#;
    let error = ClientFrame::decode(text, &limits).unwrap_err();
    let kind = DecodeErrorKind::TooLarge {
        size: text.len(),
        max: 40,
    };
    assert_eq!(error.decode_error().kind(), kind);
    assert_eq!(error.id(), None);
}

#[test]
fn an_item_of_a_history_is_written_as_the_known_client_writes_it() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_000);
    let said = HistoryItem::new(MessageId::random(1), Role::User, "hi", at);
    let tool = said.clone().with_kind(HistoryKind::ToolPayload);
    let chat = ChatRequest::new("hi", "m")
        .with_history_item(&said)
        .unwrap();
    let chat = chat.with_history_item(&tool).unwrap();
    let items: Vec<_> = chat.history.iter().map(RawJson::get).collect();
    assert_eq!(
        items,
        [
            r#"{"id":"msg_10000000","role":"user","content":"hi","kind":"text","timestamp":"2024-01-15T10:30:00.000Z"}"#,
            r#"{"id":"msg_10000000","role":"user","content":"hi","kind":"tool_payload","timestamp":"2024-01-15T10:30:00.000Z"}"#,
        ]
    );
}

#[test]
fn every_answer_is_written_flat_and_without_nulls() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_123);
    let mut task = Task::new(TaskId::random(1), at);
    task.state = TaskState::Cancelled;
    let detail = ErrorDetail::new()
        .with_code(code::UNKNOWN)
        .with_category("other")
        .with_kind("unknown")
        .with_source("server")
        .with_tool("t");
    let full = ChatError::new("boom")
        .with_id(ErrorId::random(1))
        .with_code(code::UNKNOWN)
        .with_detail(detail);
    for (answer, text) in [
        (
            Answer::Status(Box::new(
                Status::new("m", "http://localhost:6767")
                    .with_provider("openai")
                    .with_load(3, 2, 1),
            )),
            r#"{"id":"rpc_a","type":"status.result","status":{"ok":true,"providers":["openai"],"provider_auth":[],"model":"m","protocol_version":"1","capabilities":"error.structured, stream.sse, workspace.path","service":"http://localhost:6767","tasks_total":3,"tasks_running":2,"tasks_detached":0,"rpc_queue_length":1}}"#,
        ),
        (
            Answer::Accepted {
                task_id: TaskId::random(1),
            },
            r#"{"id":"rpc_a","type":"chat.accepted","taskId":"task_10000000"}"#,
        ),
        (
            Answer::Queued { position: 1 },
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
            Answer::Done(Box::new(
                Reply::new("o", "m")
                    .with_output_streamed(true)
                    .with_error("e")
                    .with_tool_call("t")
                    .with_model_calls(2)
                    .with_active_skill(Skill::new("n", "i"))
                    .with_usage(ReplyUsage::new(1, 2).with_input_budget_tokens(9))
                    .with_prompt_breakdown(acolyte_proto::frame::PromptBreakdown::default())
                    .with_state("done"),
            )),
            r#"{"id":"rpc_a","type":"chat.done","reply":{"state":"done","model":"m","output":"o","outputStreamed":true,"error":"e","toolCalls":["t"],"modelCalls":2,"activeSkills":[{"name":"n","instructions":"i"}],"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3,"inputBudgetTokens":9},"promptBreakdown":{"budgetTokens":0,"usedTokens":0,"systemTokens":0,"toolTokens":0,"skillTokens":0,"memoryTokens":0,"messageTokens":0}}}"#,
        ),
        (
            Answer::Failed(Box::new(ChatError::new("boom"))),
            r#"{"id":"rpc_a","type":"chat.error","errorMessage":"boom"}"#,
        ),
        (
            Answer::Failed(Box::new(full)),
            r#"{"id":"rpc_a","type":"chat.error","errorMessage":"boom","errorId":"err_10000000","errorCode":"E_UNKNOWN","error":{"code":"E_UNKNOWN","category":"other","kind":"unknown","source":"server","tool":"t"}}"#,
        ),
        (
            Answer::AbortResult {
                request_id: id(),
                aborted: true,
            },
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
            Answer::Error { error: "no".into() },
            r#"{"id":"rpc_a","type":"error","error":"no"}"#,
        ),
    ] {
        let frame = ServerFrame::new(id(), answer);
        assert_eq!(written(&frame), text);
        assert_eq!(self::answer(text), frame);
        assert_eq!(frame.clone().into_owned(), frame);
    }
}

#[test]
fn every_event_is_written_as_the_known_server_writes_it() {
    let item = ChecklistItem::new("s", "Look", 0).with_status(ItemStatus::InProgress);
    let list = Checklist::new("g", "Plan").with_item(item);
    let failure = ToolFailure::new()
        .with_code("ENOENT")
        .with_detail(ErrorDetail::new().with_code("ENOENT"));
    for (event, text) in [
        (
            Event::Status(RunState::RUNNING),
            r#"{"type":"status","state":{"kind":"running"}}"#,
        ),
        (
            Event::Status(RunState::Queued { position: Some(1) }),
            r#"{"type":"status","state":{"kind":"queued","position":1}}"#,
        ),
        (
            Event::Status(RunState::AwaitingInput),
            r#"{"type":"status","state":{"kind":"awaiting-input"}}"#,
        ),
        (
            Event::Reasoning("Hm".into()),
            r#"{"type":"reasoning","text":"Hm"}"#,
        ),
        (
            Event::ToolCall(ToolCall::with_args("c", "t", &serde_json::json!({"a": 1})).unwrap()),
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
            Event::ToolResult(ToolResult::failed("c", "t", failure)),
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
            Event::Checklist(list.with_tag(ChecklistTag::Tasklist)),
            r#"{"type":"tasklist","groupId":"g","groupTitle":"Plan","items":[{"id":"s","label":"Look","status":"in_progress","order":0}]}"#,
        ),
        (
            Event::Error(ChatError::new("no")),
            r#"{"type":"error","errorMessage":"no"}"#,
        ),
        (
            Event::Notice(Notice::warn("w").with_source("s")),
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
        assert_eq!(event.clone().into_owned(), event);
    }
}

#[test]
fn every_part_is_written_as_the_known_server_writes_it() {
    for (part, text) in [
        (
            Part::ToolHeader {
                label_key: "k".into(),
                detail: Some("d".into()),
                state: Some("on".into()),
            },
            r#"{"kind":"tool-header","labelKey":"k","detail":"d","state":"on"}"#,
        ),
        (Part::text("x"), r#"{"kind":"text","text":"x"}"#),
        (
            Part::FileHeader {
                label_key: "k".into(),
                count: 1,
                targets: vec!["a".into()],
            },
            r#"{"kind":"file-header","labelKey":"k","count":1,"targets":["a"]}"#,
        ),
        (
            Part::ScopeHeader {
                label_key: "k".into(),
                scope: "s".into(),
                patterns: vec!["p".into()],
                matches: 2,
            },
            r#"{"kind":"scope-header","labelKey":"k","scope":"s","patterns":["p"],"matches":2}"#,
        ),
        (
            Part::EditHeader {
                label_key: "k".into(),
                path: "p".into(),
                added: 1,
                removed: 2,
                files: Some(1),
            },
            r#"{"kind":"edit-header","labelKey":"k","path":"p","files":1,"added":1,"removed":2}"#,
        ),
        (
            Part::Diff {
                marker: DiffMarker::Remove,
                line_number: 3,
                text: "l".into(),
            },
            r#"{"kind":"diff","marker":"remove","lineNumber":3,"text":"l"}"#,
        ),
        (
            Part::ShellOutput {
                stream: ShellStream::Stderr,
                text: "o".into(),
            },
            r#"{"kind":"shell-output","stream":"stderr","text":"o"}"#,
        ),
        (Part::NoOutput, r#"{"kind":"no-output"}"#),
        (
            Part::Truncated {
                count: Some(4),
                unit: Some("lines".into()),
            },
            r#"{"kind":"truncated","count":4,"unit":"lines"}"#,
        ),
    ] {
        assert_eq!(written(&part), text);
        let output = Event::ToolOutput(ToolOutput::new("c", "t", part));
        let text = written(&output);
        assert_eq!(event(&text), output);
        assert_eq!(output.clone().into_owned(), output);
    }
}

#[test]
fn what_is_not_known_is_kept_as_it_was_sent() {
    for text in [
        r#"{"id":"rpc_a","type":"chat.later","x":[1, null]}"#,
        r#"{"x":{},"type":"later","id":"rpc_a"}"#,
    ] {
        let frame = answer(text);
        assert!(matches!(frame.answer, Answer::Unknown(_)), "{text}");
        assert_eq!(written(&frame), text);
        assert_eq!(written(&frame.into_owned()), text);
    }
    for text in [
        r#"{"type":"later","text":7}"#,
        r#"{"text":7,"type":"later"}"#,
        r#"{"type":"status","message":"an old server"}"#,
        r#"{"type":"status","state":"running"}"#,
        r#"{"type":"status","state":{"kind":"later"}}"#,
    ] {
        assert!(
            matches!(event(text), Event::Unknown(Unknown { .. })),
            "{text}"
        );
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
        assert!(matches!(content, Part::Unknown(_)), "{text}");
        assert_eq!(written(&content), part);
    }
}

#[test]
fn open_objects_keep_members_that_are_not_known() {
    for text in [
        r#"{"type":"tool-result","toolCallId":"c","toolName":"t","output":{"a":1}}"#,
        r#"{"type":"error","errorMessage":"m","error":{"code":"E","stack":["x"]}}"#,
    ] {
        assert_eq!(written(&event(text)), text);
    }
    let status = r#"{"ok":true,"model":"m","protocol_version":"1","resources.skills.invalid":2,"cloud_user":"u","nothing":null}"#;
    let status = Status::decode(status, &limits::defaults()).unwrap();
    assert_eq!(
        status.extra.get("cloud_user").map(RawJson::get),
        Some(r#""u""#)
    );
    assert_eq!(status.extra.iter().count(), 2);
}

#[test]
fn capabilities_are_words_between_commas() {
    let mut status = Status::new("m", "s");
    let words: Vec<_> = status.capability_words().collect();
    assert_eq!(words, ["error.structured", "stream.sse", "workspace.path"]);
    status.capabilities = " a,,b ,".into();
    assert_eq!(status.capability_words().collect::<Vec<_>>(), ["a", "b"]);
}

/// Every one of these leaves a known client waiting.
#[test]
fn an_answer_that_ends_a_chat_is_read_whatever_it_can_do_without() {
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
        let Answer::Error { error } = answer(&text).answer else {
            panic!("{text}");
        };
        assert_eq!(error, words);
        assert_eq!(RefusalKind::of(&error), RefusalKind::Other);
    }
}

#[test]
fn a_model_that_failed_is_told_apart_from_an_answer() {
    let text =
        r#"{"id":"rpc_a","type":"chat.done","reply":{"output":"","model":"m","error":{"a":1}}}"#;
    let Answer::Done(reply) = answer(text).answer else {
        panic!("{text}");
    };
    assert_eq!(reply.error.as_deref(), Some(r#"{"a":1}"#));
}

#[test]
fn a_wrong_answer_says_whom_it_belongs_to_and_what_it_was() {
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
        assert_eq!((error.id(), error.tag()), (Some(&id()), tag), "{text}");
    }
    for text in [
        "",
        "[]",
        r#"{"type":"chat.started"}"#,
        r#"{"id":"x","type":"chat.started"}"#,
    ] {
        let error = ServerFrame::decode(text, &limits::defaults()).unwrap_err();
        assert_eq!(error.id(), None, "{text}");
    }
}

#[test]
fn what_a_client_can_live_with_is_accepted() {
    for (text, read) in [
        (
            r#"{"id":"rpc_a","type":"chat.queued","position":0}"#,
            Answer::Queued { position: 0 },
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
            r#"{"id":"rpc_a","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"t","args":null}}"#,
            Answer::Event(Event::ToolCall(ToolCall::new(
                "c",
                "t",
                RawJson::new("{}").unwrap(),
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
            Answer::Event(Event::ToolResult(ToolResult::failed(
                "c",
                "t",
                ToolFailure::new().with_code("E"),
            ))),
        ),
    ] {
        assert_eq!(answer(text).answer, read, "{text}");
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
fn nothing_private_is_printed() {
    let text = r#"{"id":"rpc_a","type":"later","x":"secret"}"#;
    assert!(!format!("{:?}", answer(text)).contains("secret"));
    let text = r#"{"type":"tool-result","toolCallId":"c","toolName":"t","output":"secret"}"#;
    assert!(!format!("{:?}", event(text)).contains("secret"));
}
