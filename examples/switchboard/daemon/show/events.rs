//! [`events`] and [`ended`]: what a chat tells, as events of the view at a terminal.

use acolyte_proto::client::{ChatUpdate, Outcome};
use acolyte_proto::event::{
    Checklist, Diff, DiffMarker, Event, ItemStatus, NoticeLevel, Part, ToolResult,
};
use switchboard::daemon::ask_first::ASK_FIRST;
use switchboard::daemon::toolbox::CHECKLIST;
use switchboard::terminal::{ChatEvent, PlanItem, PlanStatus};

use super::{said, tool, words};

/// Turns an update into events, but for the end. `number` tells chats apart; the first one
/// is 1.
pub(crate) fn events(update: &ChatUpdate, number: u64) -> Vec<ChatEvent> {
    let event = match update {
        ChatUpdate::Queued { position } => {
            let which = match number {
                1 => String::new(),
                _ => format!("chat {number} "),
            };
            ChatEvent::Note(format!("{which}waiting, place {position}"))
        }
        ChatUpdate::Started => ChatEvent::Activity("thinking".to_owned()),
        ChatUpdate::Warning(warning) => ChatEvent::Warning(warning.to_string()),
        ChatUpdate::Event(Event::ToolResult(result)) => return tool_result(result, number),
        ChatUpdate::Event(event) => return step(event, number).into_iter().collect(),
        _ => return Vec::new(),
    };
    vec![event]
}

/// What the end of a chat shows.
pub(crate) fn ended(outcome: &Outcome) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    if let Some(reply) = said(outcome)
        && reply.output_streamed == Some(false)
    {
        events.push(ChatEvent::Text(reply.output.to_string()));
    }
    events.push(ChatEvent::Ended);
    match outcome {
        Outcome::Done(_) => {}
        Outcome::Aborted { .. } => events.push(ChatEvent::Note("aborted".to_owned())),
        other => events.push(ChatEvent::Error(words(other))),
    }
    events
}

fn step(event: &Event, number: u64) -> Option<ChatEvent> {
    Some(match event {
        Event::TextDelta(text) => ChatEvent::Text(text.to_string()),
        Event::Reasoning(text) => ChatEvent::Thinking(text.to_string()),
        Event::Usage(usage) => {
            ChatEvent::Usage(usage.input_tokens.saturating_add(usage.output_tokens))
        }
        // The list itself follows.
        Event::ToolCall(call) if call.name == CHECKLIST => return None,
        Event::ToolCall(call) => ChatEvent::ToolCall {
            id: call_id(number, &call.id),
            name: call.name.to_string(),
            arguments: tool::telling(call),
        },
        Event::ToolOutput(output) => {
            let (text, is_diff) = part(&output.content)?;
            ChatEvent::ToolOutput {
                id: call_id(number, &output.id),
                text: format!("{text}\n"),
                is_diff,
            }
        }
        Event::Checklist(list) | Event::Tasklist(list) => plan(list),
        Event::Notice(notice) => match notice.level {
            NoticeLevel::Error => ChatEvent::Error(notice.message.to_string()),
            _ => ChatEvent::Warning(notice.message.to_string()),
        },
        // This program has put it on.
        Event::SkillActivated(skill) if skill.name == ASK_FIRST => return None,
        Event::SkillActivated(skill) => ChatEvent::Note(format!("skill {} is on", skill.name)),
        Event::SkillDeactivated(name) => ChatEvent::Note(format!("skill {name} is off")),
        // The end of the chat tells of an error.
        _ => return None,
    })
}

/// Calls of several chats may have the same id.
fn call_id(number: u64, id: &str) -> String {
    format!("{number} {id}")
}

fn tool_result(result: &ToolResult, number: u64) -> Vec<ChatEvent> {
    let id = call_id(number, &result.id);
    let outcome = match tool::failure(result) {
        None => Ok(String::new()),
        Some(why) => Err(why.to_owned()),
    };
    let mut events = Vec::new();
    if result.name == CHECKLIST {
        // The call was not shown.
        if outcome.is_ok() {
            return events;
        }
        events.push(ChatEvent::ToolCall {
            id: id.clone(),
            name: result.name.to_string(),
            arguments: String::new(),
        });
    }
    events.push(ChatEvent::ToolResult { id, outcome });
    events
}

/// A piece of a tool's output, and whether it belongs to a diff.
fn part(part: &Part) -> Option<(String, bool)> {
    Some(match part {
        Part::EditHeader(edit) => {
            let text = format!(" {} +{} -{}", edit.path, edit.added, edit.removed);
            (text, true)
        }
        Part::Diff(Diff {
            marker,
            line_number,
            text,
        }) => {
            let mark = match marker {
                DiffMarker::Add => '+',
                DiffMarker::Remove => '-',
                DiffMarker::Context => ' ',
            };
            (format!("{mark}{line_number:>4}  {text}"), true)
        }
        Part::ShellOutput(output) => (output.text.trim_end_matches('\n').to_owned(), false),
        other => (tool::remark(other)?, false),
    })
}

fn plan(list: &Checklist) -> ChatEvent {
    let mut items: Vec<_> = list.items.iter().collect();
    items.sort_by_key(|item| item.order);
    let items = items.into_iter().map(|item| PlanItem {
        status: match item.status {
            ItemStatus::Done => PlanStatus::Done,
            ItemStatus::Failed => PlanStatus::Failed,
            ItemStatus::InProgress => PlanStatus::Active,
            _ => PlanStatus::Pending,
        },
        text: item.label.to_string(),
    });
    ChatEvent::Plan {
        title: list.group_title.to_string(),
        items: items.collect(),
    }
}
