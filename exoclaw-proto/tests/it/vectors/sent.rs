//! Vectors of the frames that a client and a server send.

use exoclaw_proto::client::{ClientConfig, ClientConn};
use exoclaw_proto::codec::{encode_error, encode_event, encode_result};
use exoclaw_proto::frame::{
    BudgetOf, Call, ChatHistory, ChatSend, MemorySearch, SessionRef, StreamEvent, ToolResult,
    ToolUse, Usage,
};
use rpc_core::{CallId, Incoming, Instant, Json, Machine, Outgoing, Refused};
use serde_json::{Value, json};

use super::run;

#[test]
fn encoded_requests_match_the_vectors() {
    run("requests_sent", |vector| {
        let now = Instant::now();
        let mut conn = ClientConn::new(ClientConfig::default(), 0xabcd, now);
        conn.handle_message(Incoming::Text(r#"{"ok":true}"#), now);
        let id = command(&mut conn, vector.list("call"), now).unwrap();
        let Some(Outgoing::Text(text)) = conn.poll_transmit() else {
            panic!("{}: nothing leaves", vector.name())
        };
        let expected = vector.str("text").replace("<id>", &id.to_string());
        assert_eq!(text.as_str(), expected, "{}", vector.name());
        assert!(conn.poll_transmit().is_none(), "{}", vector.name());
    });
}

fn command(conn: &mut ClientConn, call: &[Value], now: Instant) -> Result<CallId, Refused> {
    let text = |at: usize| call.get(at).and_then(Value::as_str);
    let need = |at: usize| text(at).unwrap();
    let limit = |at: usize| call.get(at).and_then(Value::as_u64);
    let session = |at: usize| {
        let mut session = SessionRef::new(need(at), need(at + 1));
        let owned = |at| text(at).map(Into::into);
        (session.peer, session.guild, session.team) = (owned(at + 2), owned(at + 3), owned(at + 4));
        session
    };
    let call = match need(0) {
        "ping" => Call::Ping,
        "status" => Call::Status,
        "plugin.list" => Call::PluginList,
        "chat.send" => {
            let mut chat = ChatSend::new(need(1), need(2), need(3));
            let owned = |at| text(at).map(Into::into);
            let to = &mut chat.session;
            (to.peer, to.guild, to.team) = (owned(4), owned(5), owned(6));
            Call::ChatSend(chat)
        }
        "chat.history" => Call::ChatHistory(ChatHistory {
            session: session(2),
            limit: limit(1),
        }),
        "session.list" => Call::SessionList,
        "session.clear" => Call::SessionClear(session(1)),
        "plugin.load" => {
            let params = json!({"name": need(1), "path": need(2)});
            return conn.call("plugin.load", &params, now);
        }
        "plugin.unload" => return conn.call("plugin.unload", &json!({"name": need(1)}), now),
        "budget.status" => Call::BudgetStatus(BudgetOf {
            session: (call.len() > 1).then(|| session(1)),
        }),
        "memory.search" => Call::MemorySearch(MemorySearch {
            session: session(3),
            query: need(1).into(),
            limit: limit(2),
        }),
        other => return conn.call(other, &call[1], now),
    };
    conn.request(&call, now)
}

#[test]
fn encoded_replies_match_the_vectors() {
    run("answers_sent", |vector| {
        let answer = vector.list("answer");
        let id = vector.get("id").as_str().unwrap_or("1");
        let mut buffer = String::new();
        let text = |at: usize| answer[at].as_str().unwrap();
        match text(0) {
            "result" => encode_result(&mut buffer, &id, &answer[1]),
            "error" => encode_error(&mut buffer, &id, text(1)),
            _ => {
                let raw = Json::from(answer.get(3).cloned().unwrap_or(json!({})));
                step(&mut buffer, id, answer, raw)
            }
        }
        .unwrap();
        assert_eq!(buffer, vector.str("text"), "{}", vector.name());
    });
}

fn step(buffer: &mut String, id: &str, answer: &[Value], raw: Json) -> Result<(), Refused> {
    let text = |at: usize| answer[at].as_str().unwrap();
    let number = |at: usize| answer[at].as_u64().unwrap();
    let event = match text(0) {
        "text" => StreamEvent::Text(text(1).into()),
        "tool_use" => StreamEvent::ToolUse(ToolUse::new(text(1), text(2), raw)),
        "tool_result" => {
            let is_error = answer[3] == json!(true);
            StreamEvent::ToolResult(ToolResult::new(text(1), text(2), is_error))
        }
        "usage" => StreamEvent::Usage(Usage::new(number(1), number(2))),
        "done" => StreamEvent::Done,
        "failed" => StreamEvent::Error(text(1).into()),
        other => StreamEvent::Unknown {
            tag: other.into(),
            content: None,
        },
    };
    encode_event(buffer, &id, &event)
}
