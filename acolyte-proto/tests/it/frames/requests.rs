//! Requests are read strictly.

use std::time::{Duration, SystemTime};

use acolyte_proto::event::Event;
use acolyte_proto::frame::{
    Answer, ChatRequest, ClientFrame, HistoryItem, HistoryKind, Request, Role, ServerFrame, Skill,
};
use acolyte_proto::id::{MessageId, RpcId};
use acolyte_proto::limits;
use rpc_core::json::DecodeErrorKind;
use rpc_core::{Json, Limits};

use super::{answer, id, request, start, written};

#[test]
fn every_request_is_written_as_by_the_known_client() {
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
    }
}

#[test]
fn members_beside_the_payload_are_ignored() {
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
    let refusal = ServerFrame::new(RpcId::unreadable(), Answer::error("Invalid RPC message"));
    assert_eq!(
        written(&refusal),
        r#"{"id":"rpc_unknown","type":"error","error":"Invalid RPC message"}"#
    );
}

#[test]
fn the_last_of_repeated_members_wins() {
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
    let long = "x".repeat(201);
    let body = format!(
        r#"{{"message":"x","history":[],"model":"{long}","sessionId":"sess_a-b","workspace":null,"activeSkills":null,"suggestions":null,"y":1}}"#
    );
    let chat = ChatRequest::decode_lax(&body, &limits).unwrap();
    assert_eq!((&*chat.message, chat.session_id), ("x", None));
    assert!(chat.active_skills.is_empty() && chat.suggestions.is_empty());
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
    fn with(set: impl FnOnce(&mut ChatRequest)) -> ChatRequest {
        let mut chat = ChatRequest::new("x", "m");
        set(&mut chat);
        chat
    }
    let chat = || with(|_| {});
    let null = || Json::new("null").unwrap();
    for (inside, outside, member) in [
        (
            ChatRequest::new("x".repeat(100_000), "m"),
            ChatRequest::new("x".repeat(100_001), "m"),
            "message",
        ),
        (
            ChatRequest::new("😀".repeat(50_000), "m"),
            ChatRequest::new("😀".repeat(50_001), "m"),
            "message",
        ),
        (
            ChatRequest::new("x", "é".repeat(200)),
            ChatRequest::new("x", "é".repeat(201)),
            "model",
        ),
        (
            with(|chat| chat.history = vec![null(); 500]),
            with(|chat| chat.history = vec![null(); 501]),
            "history",
        ),
        (
            with(|chat| chat.suggestions = vec!["x".repeat(1_000).into(); 10]),
            with(|chat| chat.suggestions = vec!["x".into(); 11]),
            "suggestions",
        ),
        (
            with(|chat| chat.suggestions = vec!["x".repeat(1_000).into()]),
            with(|chat| chat.suggestions = vec!["x".repeat(1_001).into()]),
            "suggestions",
        ),
        (
            ChatRequest {
                workspace: Some("x".repeat(4_096).into()),
                ..chat()
            },
            ChatRequest {
                workspace: Some("x".repeat(4_097).into()),
                ..chat()
            },
            "workspace",
        ),
        (
            with(|chat| chat.active_skills = vec![Skill::new("n", "i")]),
            with(|chat| chat.active_skills = vec![Skill::new("n", "")]),
            "instructions",
        ),
    ] {
        assert_eq!(inside.validate(), Ok(()));
        let fault = outside.validate().unwrap_err().to_string();
        assert!(fault.contains(member), "{fault}");
        for (chat, is_valid) in [(inside, true), (outside, false)] {
            let frame = ClientFrame::new(id(), Request::ChatStart(Box::new(chat)));
            let text = written(&frame);
            assert_eq!(request(&text).is_ok(), is_valid, "{fault}");
        }
    }
}

#[test]
fn an_oversized_message_is_not_decoded() {
    let limits = Limits {
        max_message_bytes: 40,
        ..limits::defaults()
    };
    let text = r#"{"id":"rpc_a","type":"status.get","x":"xxxxxxxxxx"}"#;
    let error = ClientFrame::decode(text, &limits).unwrap_err();
    let kind = DecodeErrorKind::TooLarge {
        size: text.len(),
        max: 40,
    };
    assert_eq!(error.error.kind(), kind);
    assert_eq!(error.id, None);
    let start = r#"{"id":"rpc_a","type":"status.get","x":""#;
    let most = 16 * 1024 * 1024;
    let mut text = format!("{start}{}\"}}", "x".repeat(most - start.len() - 2));
    assert_eq!(text.len(), most);
    assert!(request(&text).is_ok());
    text.push(' ');
    assert!(request(&text).is_err());
}

#[test]
fn an_item_of_a_history_is_written_as_by_the_known_client() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_705_314_600_000);
    let said = HistoryItem::new(MessageId::random(1), Role::User, "hi", at);
    let mut tool = said.clone();
    tool.kind = HistoryKind::ToolPayload;
    let chat = ChatRequest::new("hi", "m")
        .with_history_item(&said)
        .unwrap();
    let chat = chat.with_history_item(&tool).unwrap();
    let items: Vec<_> = chat.history.iter().map(Json::get).collect();
    assert_eq!(
        items,
        [
            r#"{"id":"msg_10000000","role":"user","content":"hi","kind":"text","timestamp":"2024-01-15T10:30:00.000Z"}"#,
            r#"{"id":"msg_10000000","role":"user","content":"hi","kind":"tool_payload","timestamp":"2024-01-15T10:30:00.000Z"}"#,
        ]
    );
}
