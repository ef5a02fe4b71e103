//! [`chat_items`]: a session as people see it.

use std::borrow::Cow;
use std::collections::HashMap;

use rpc_core::Limits;
use rpc_core::decode::{self, RawJson, SharedJson};

use super::work::no_limits;
use crate::codec::to_json;
use crate::frame::{ChatItem, ChatItemKind, EventKind, ServerFrame, ToolItem, ToolStatus, Word};

type Item<'a> = ChatItem<Cow<'a, str>, RawJson<'a>>;
type Kind<'a> = ChatItemKind<Cow<'a, str>, RawJson<'a>>;

/// The `chat_items` of a session, from its messages and its trace: for each prompt the user's words,
/// what happened, and the agent's words. What cannot be read is left out.
///
/// Ids are those of the known hosts: `msg-N` for the message at that place, the id of a tool's call,
/// and for other events their type and their place in the trace.
#[must_use]
pub fn chat_items(session: &str) -> SharedJson {
    let limits = no_limits();
    let messages = messages_of(list(session, "messages"), &limits);
    let mut turns = turns_of(list(session, "trace"), &limits);
    // A trace that was cut has its last turns.
    let prompts = messages.iter().filter(|it| it.is_user).count();
    let mut missing = prompts.saturating_sub(turns.len());
    let surplus = turns.len().saturating_sub(prompts);
    turns.drain(..surplus);
    let mut turns = turns.into_iter();
    let mut items: Vec<Item<'_>> = Vec::new();
    for message in messages {
        items.push(message.item);
        if message.is_user {
            match missing.checked_sub(1) {
                Some(left) => missing = left,
                None => items.extend(turns.next().into_iter().flatten()),
            }
        }
    }
    to_json(&items).unwrap_or_else(|_| empty())
}

/// A member of an object that is a list.
fn list<'a>(object: &'a str, name: &str) -> &'a str {
    match decode::find_member(object, name).map(RawJson::into_text) {
        Some(Cow::Borrowed(list)) => list,
        _ => "[]",
    }
}

fn empty() -> SharedJson {
    to_json(&[(); 0]).unwrap_or_default()
}

struct Message<'a> {
    is_user: bool,
    item: Item<'a>,
}

/// What users and agents said, in order.
fn messages_of<'a>(messages: &'a str, limits: &Limits) -> Vec<Message<'a>> {
    let messages = decode::raw_list(messages, limits).unwrap_or_default();
    let said = messages
        .into_iter()
        .enumerate()
        .filter_map(|(at, message)| {
            let Cow::Borrowed(text) = message.into_text() else {
                return None;
            };
            let role = decode::find_member(text, "role")?.into_str()?;
            let content = decode::find_member(text, "content")?;
            let is_nothing = content.is_null() || content.get() == "\"\"";
            let (is_user, kind): (_, Kind<'a>) = match &*role {
                "user" => (true, ChatItemKind::User(content)),
                "assistant" if !is_nothing => (false, ChatItemKind::Agent(content)),
                _ => return None,
            };
            let item = ChatItem::new(format!("msg-{at}"), kind);
            Some(Message { is_user, item })
        });
    said.collect()
}

/// What happened after each prompt.
fn turns_of<'a>(trace: &'a str, limits: &Limits) -> Vec<Vec<Item<'a>>> {
    let mut turns: Vec<Vec<Item<'a>>> = Vec::new();
    // Where each tool's item stands: in which turn, and where there.
    let mut tools: HashMap<Cow<'a, str>, (usize, usize)> = HashMap::new();
    let events = decode::raw_list(trace, limits).unwrap_or_default();
    for (at, event) in events.into_iter().enumerate() {
        let Cow::Borrowed(text) = event.into_text() else {
            continue;
        };
        let Ok(ServerFrame::Event(event)) = ServerFrame::decode(text, limits) else {
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
        let (id, kind): (Cow<'a, str>, Kind<'a>) = match event.kind {
            EventKind::ToolCall(call) => {
                tools.insert(call.tool_id.clone(), (number, turn.len()));
                let mut tool = ToolItem::new(call.name, ToolStatus::Running);
                tool.args = call.args;
                (call.tool_id, ChatItemKind::ToolCall(tool))
            }
            EventKind::ToolResult(result) => {
                let is_error = result
                    .status
                    .as_ref()
                    .and_then(Word::known)
                    .is_some_and(ToolStatus::is_error);
                let status = match is_error {
                    true => ToolStatus::Error,
                    false => ToolStatus::Done,
                };
                let place = tools.get(&result.tool_id);
                let begun = place.and_then(|(turn, at)| turns.get_mut(*turn)?.get_mut(*at));
                let mut tool = ToolItem {
                    name: result.name,
                    args: result.args,
                    status: Some(status.into()),
                    result: result.result,
                    timing_ms: result.timing_ms,
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
                    turn.push(ChatItem::new(result.tool_id, kind));
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
    fn a_tool_stands_between_the_prompt_and_the_answer() {
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
    fn a_trace_that_was_cut_belongs_to_the_last_prompts() {
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
    fn what_cannot_be_read_is_left_out() {
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
