//! [`chat_items`]: a session for display.

use std::collections::HashMap;

use rpc_core::json::{each_member, parse};
use rpc_core::{Json, Limits, Str};
use serde_json::value::RawValue;

use crate::frame::{ChatItem, ChatItemKind, EventKind, ServerFrame, ToolResult, ToolStatus};
use crate::id::ToolCallId;

/// Returns the `chat_items` of a session, from its messages and its trace: for each prompt the
/// user's words, the events, and the agent's words. Unreadable parts are left out.
///
/// Ids are those of the known hosts: `msg-N` for the message at that place, the id of a tool's
/// call, and for other events their type and their place in the trace.
pub(crate) fn chat_items(session: &str) -> Json {
    let limits = Limits::unlimited();
    let [messages, trace] = lists(session, &limits);
    let (messages, mut turns) = (messages_of(messages), turns_of(trace, &limits));
    // A trace that was cut has its last turns.
    let prompts = messages.iter().filter(|(is_user, _)| *is_user).count();
    let mut missing = prompts.saturating_sub(turns.len());
    let surplus = turns.len().saturating_sub(prompts);
    turns.drain(..surplus);
    let mut turns = turns.into_iter();
    let mut items = Vec::new();
    for (is_user, item) in messages {
        items.push(item);
        if is_user {
            match missing.checked_sub(1) {
                Some(left) => missing = left,
                None => items.extend(turns.next().into_iter().flatten()),
            }
        }
    }
    Json::of(&items).unwrap_or(Json::EMPTY_ARRAY)
}

/// Returns the items of the messages and of the trace, without copying them, because they may be long.
fn lists<'a>(session: &'a str, limits: &Limits) -> [Vec<&'a RawValue>; 2] {
    let (mut messages, mut trace) = (None, None);
    let read = each_member(session, |name, value| match &*name {
        "messages" => drop(messages.get_or_insert(value)),
        "trace" => drop(trace.get_or_insert(value)),
        _ => {}
    });
    [messages, trace].map(|list| {
        let items = list.filter(|_| read.is_ok()).map(|it| parse(it, limits));
        items.and_then(Result::ok).unwrap_or_default()
    })
}

/// Returns the messages, and whether each is the user's.
fn messages_of(messages: Vec<&RawValue>) -> Vec<(bool, ChatItem)> {
    let items = messages
        .into_iter()
        .enumerate()
        .filter_map(|(at, message)| {
            let (mut role, mut content) = (None, None);
            each_member(message.get(), |name, value| match &*name {
                "role" => drop(role.get_or_insert(value)),
                "content" => drop(content.get_or_insert(value)),
                _ => {}
            })
            .ok()?;
            let content = content.filter(|content| *content != "null")?;
            let (is_user, kind): (_, fn(Json) -> ChatItemKind) = match role? {
                "\"user\"" => (true, ChatItemKind::User),
                "\"assistant\"" if content != "\"\"" => (false, ChatItemKind::Agent),
                _ => return None,
            };
            let kind = kind(Json::new(content).ok()?);
            Some((is_user, ChatItem::new(format!("msg-{at}"), kind)))
        });
    items.collect()
}

/// Returns the events after each prompt.
fn turns_of(events: Vec<&RawValue>, limits: &Limits) -> Vec<Vec<ChatItem>> {
    let mut turns: Vec<Vec<ChatItem>> = Vec::new();
    // Where each tool's item stands: in which turn, and where there.
    let mut tools: HashMap<ToolCallId, (usize, usize)> = HashMap::new();
    for (at, event) in events.into_iter().enumerate() {
        let Ok(ServerFrame::Event(event)) = ServerFrame::decode(event.get(), limits) else {
            continue;
        };
        if matches!(event.kind, EventKind::UserInput(_)) {
            turns.push(Vec::new());
            continue;
        }
        let number = turns.len().saturating_sub(1);
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        let (id, kind): (Str, ChatItemKind) = match event.kind {
            EventKind::ToolCall(call) => {
                let id = call.tool_id.unwrap_or_default();
                tools.insert(id.clone(), (number, turn.len()));
                let tool = ToolResult {
                    name: Some(call.name),
                    args: call.args,
                    status: Some(ToolStatus::Running),
                    ..ToolResult::default()
                };
                (id.into(), ChatItemKind::ToolCall(tool))
            }
            EventKind::ToolResult(result) => {
                let is_error = result.status.as_ref().is_some_and(ToolStatus::is_error);
                let status = match is_error {
                    true => ToolStatus::Error,
                    false => ToolStatus::Done,
                };
                let id = result.tool_id.unwrap_or_default();
                let place = tools.get(&id);
                let begun = place.and_then(|(turn, at)| turns.get_mut(*turn)?.get_mut(*at));
                let mut tool = ToolResult {
                    name: result.name,
                    args: result.args,
                    status: Some(status),
                    result: result.result,
                    timing_ms: result.timing_ms,
                    ..ToolResult::default()
                };
                if let Some(item) = begun {
                    if let ChatItemKind::ToolCall(before) = &mut item.kind {
                        tool.name = before.name.take().or(tool.name);
                        tool.args = before.args.take().or(tool.args);
                    }
                    item.kind = ChatItemKind::ToolCall(tool);
                    continue;
                }
                let kind = ChatItemKind::ToolCall(tool);
                if let Some(turn) = turns.last_mut() {
                    turn.push(ChatItem::new(Str::from(id), kind));
                }
                continue;
            }
            EventKind::Thinking(it) => {
                (format!("thinking-{at}").into(), ChatItemKind::Thinking(it))
            }
            EventKind::Intent(it) => (format!("intent-{at}").into(), ChatItemKind::Intent(it)),
            EventKind::Eval(it) => (format!("eval-{at}").into(), ChatItemKind::Eval(it)),
            EventKind::FilesReceived(it) => (
                format!("files-{at}").into(),
                ChatItemKind::FilesReceived(it),
            ),
            _ => continue,
        };
        turn.push(ChatItem::new(id, kind));
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(session: &str) -> String {
        chat_items(session).get().to_owned()
    }

    #[test]
    fn a_tool_is_shown_between_the_prompt_and_the_answer() {
        let session = r#"{"messages":[{"role":"user","content":"add 2 3"},
            {"role":"assistant","tool_calls":[]},{"role":"tool","content":"5","tool_call_id":"c"},
            {"role":"assistant","content":"sum is 5"}],
            "trace":[{"type":"user_input","content":"add 2 3"},
            {"type":"tool_call","tool_id":"c","name":"add","args":{"a":2}},
            {"type":"tool_result","tool_id":"c","name":"add","args":{"a":2},"status":"success",
             "result":"5","timing_ms":0.5}]}"#;
        assert_eq!(
            items(session),
            concat!(
                r#"[{"id":"msg-0","type":"user","content":"add 2 3"},"#,
                r#"{"id":"c","type":"tool_call","name":"add","args":{"a":2},"status":"done","#,
                r#""result":"5","timing_ms":0.5},"#,
                r#"{"id":"msg-3","type":"agent","content":"sum is 5"}]"#
            )
        );
    }

    #[test]
    fn a_tool_says_whether_it_is_running_or_has_failed() {
        for (events, expected) in [
            (
                r#"{"type":"tool_call","tool_id":"c","name":"add"}"#,
                r#"{"id":"c","type":"tool_call","name":"add","status":"running"}"#,
            ),
            (
                r#"{"type":"tool_call","tool_id":"c","name":"add"},
                   {"type":"tool_result","tool_id":"c","name":"sub","status":"error","result":"x"}"#,
                r#"{"id":"c","type":"tool_call","name":"add","status":"error","result":"x"}"#,
            ),
            (
                r#"{"type":"tool_result","tool_id":"c","name":"sub","status":"not_found"}"#,
                r#"{"id":"c","type":"tool_call","name":"sub","status":"error"}"#,
            ),
        ] {
            let session = format!(
                r#"{{"messages":[{{"role":"user","content":"1"}}],
                "trace":[{{"type":"user_input","content":"1"}},{events}]}}"#
            );
            let expected = format!(r#"[{{"id":"msg-0","type":"user","content":"1"}},{expected}]"#);
            assert_eq!(items(&session), expected);
        }
    }

    #[test]
    fn a_compacted_conversation_shows_its_last_turns() {
        let session = r#"{"messages":[{"role":"user","content":"2"},{"role":"assistant","content":"b"}],
            "trace":[{"type":"user_input","content":"1"},{"type":"thinking","content":"old"},
            {"type":"user_input","content":"2"},{"type":"thinking","content":"new"}]}"#;
        let items = items(session);
        assert!(items.contains("new") && !items.contains("old"), "{items}");
    }

    #[test]
    fn a_truncated_trace_belongs_to_the_last_prompts() {
        let session = r#"{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a"},
            {"role":"user","content":"2"},{"role":"assistant","content":"b"}],
            "trace":[{"type":"user_input","content":"2"},{"type":"thinking","content":"hm"}]}"#;
        let items = items(session);
        let place = |what: &str| items.find(what).unwrap();
        assert!(place("msg-2") < place("thinking-1") && place("thinking-1") < place("msg-3"));
    }

    #[test]
    fn a_conversation_of_any_length_has_its_items() {
        let message = r#"{"role":"user","content":"x"}"#;
        let messages = vec![message; Limits::default().max_items + 1].join(",");
        let items = items(&format!(r#"{{"messages":[{messages}]}}"#));
        assert_eq!(
            items.matches("msg-").count(),
            Limits::default().max_items + 1
        );
    }

    #[test]
    fn undecodable_items_are_omitted() {
        for session in ["", "[]", "{}", r#"{"messages":7,"trace":{}}"#] {
            assert_eq!(items(session), "[]", "{session}");
        }
        let session =
            r#"{"messages":[1,{"role":"user"},{"role":"user","content":[]},{"content":"x"}]}"#;
        assert_eq!(
            items(session),
            r#"[{"id":"msg-2","type":"user","content":[]}]"#
        );
    }
}
