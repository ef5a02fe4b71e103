//! What a chat prints: [`events`] for people, [`json`] and [`ended_json`] for programs.

mod tool;

use acolyte_proto::client::{ChatUpdate, Failure, Outcome};
use acolyte_proto::error::code;
use acolyte_proto::event::{
    Checklist, Diff, DiffMarker, Event, ItemStatus, NoticeLevel, Part, ToolResult,
};
use acolyte_proto::frame::{Reply, Status};
use rpc_core::Delivery;
use serde_json::{Map, Value, json};

use crate::chat;
use crate::chat::terminal::{ChatEvent, PlanItem, PlanStatus};
use crate::daemon::ask_first::ASK_FIRST;
use crate::daemon::toolbox::CHECKLIST;
use crate::text::printable;

/// Turns an update into events, except for the end.
pub(crate) fn events(update: &ChatUpdate) -> Vec<ChatEvent> {
    let event = match update {
        ChatUpdate::Queued { position } => ChatEvent::Note(format!("waiting, place {position}")),
        ChatUpdate::Started => ChatEvent::Activity("thinking".to_owned()),
        ChatUpdate::Warning(warning) => ChatEvent::Warning(warning.to_string()),
        ChatUpdate::Event(Event::ToolResult(result)) => return tool_result(result),
        ChatUpdate::Event(event) => return step(event).into_iter().collect(),
        _ => return Vec::new(),
    };
    vec![event]
}

fn step(event: &Event) -> Option<ChatEvent> {
    Some(match event {
        Event::TextDelta(text) => ChatEvent::Text(text.to_string()),
        Event::Reasoning(text) => ChatEvent::Thinking(text.to_string()),
        Event::Usage(usage) => {
            ChatEvent::Usage(usage.input_tokens.saturating_add(usage.output_tokens))
        }
        // The list itself follows.
        Event::ToolCall(call) if call.name == CHECKLIST => return None,
        Event::ToolCall(call) => ChatEvent::ToolCall {
            id: call.id.to_string(),
            name: call.name.to_string(),
            arguments: chat::telling(call.args.get()),
        },
        Event::ToolOutput(output) => {
            let (text, is_diff) = part(&output.content)?;
            ChatEvent::ToolOutput {
                id: output.id.to_string(),
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

fn tool_result(result: &ToolResult) -> Vec<ChatEvent> {
    let id = result.id.to_string();
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

/// An update for programs, except for the end.
pub(crate) fn json(update: &ChatUpdate) -> Option<String> {
    let (name, about) = match update {
        ChatUpdate::Accepted { task_id } => ("accepted", json!({ "taskId": task_id.as_str() })),
        ChatUpdate::Queued { position } => ("queued", json!({ "position": position })),
        ChatUpdate::Started => ("started", json!({})),
        ChatUpdate::Event(event) => {
            return Some(chat::frame("step", &serde_json::to_string(event).ok()?));
        }
        ChatUpdate::Warning(warning) => ("warning", json!({ "message": warning.to_string() })),
        _ => return None,
    };
    Some(named(name, about))
}

/// The end, for programs. Without `null`s.
pub(crate) fn ended_json(outcome: &Outcome, task_id: Option<&str>) -> String {
    let mut about = Map::new();
    let mut put = |name: &str, value: Value| {
        about.insert(name.to_owned(), value);
    };
    put("outcome", name(outcome).into());
    put("mayHaveRun", outcome.may_have_run().into());
    if let Some(id) = task_id {
        put("taskId", id.into());
    }
    if let Some(reply) = reply_of(outcome) {
        put("reply", serde_json::to_value(reply).unwrap_or_default());
    }
    if let Outcome::Failed(Failure::Server(error)) = outcome {
        if let Some(code) = error.code.as_deref() {
            put("errorCode", code.into());
        }
        if let Some(id) = &error.id {
            put("errorId", id.as_str().into());
        }
    }
    if !outcome.is_done() {
        put("message", words(outcome).into());
    }
    named("ended", Value::Object(about))
}

fn named(name: &str, mut about: Value) -> String {
    about["event"] = name.into();
    about.to_string()
}

/// What the model has said, to its end or not.
pub(crate) fn reply_of(outcome: &Outcome) -> Option<&Reply> {
    match outcome {
        Outcome::Done(reply) | Outcome::Failed(Failure::Model(reply)) => Some(reply),
        _ => None,
    }
}

/// A word for an outcome.
const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Refused { .. } => "refused",
        Outcome::Aborted { .. } => "aborted",
        Outcome::TimedOut { .. } => "timed-out",
        Outcome::Closed { .. } => "closed",
        Outcome::NotSent(_) => "not-sent",
        _ => "other",
    }
}

/// An outcome that is not a success, in words.
pub(crate) fn words(outcome: &Outcome) -> String {
    match outcome {
        // That it is unknown is not news to people.
        Outcome::Failed(Failure::Server(error)) => match error.code.as_deref() {
            Some(code) if code != code::UNKNOWN => format!("{} ({code})", error.message),
            _ => error.message.to_string(),
        },
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::Aborted { error: Some(error) } if error.code.as_deref() != Some(code::ABORTED) => {
            format!("aborted, and the server says: {}", error.message)
        }
        Outcome::Closed { delivery, .. } | Outcome::TimedOut { delivery } => {
            let what_is_known = match delivery {
                Delivery::NotSent => "it was not sent",
                _ => "it may have done some of its work; look before you repeat it",
            };
            format!("{outcome}; {what_is_known}")
        }
        other => other.to_string(),
    }
}

/// The status for people.
pub(crate) fn status_lines(status: &Status) -> Vec<String> {
    let providers = match status.providers.join(", ") {
        none if none.is_empty() => "none".to_owned(),
        providers => providers,
    };
    [
        ("service", &*status.service),
        ("model", &*status.model),
        ("providers", &*providers),
        ("protocol", &*status.protocol_version),
        ("capabilities", &*status.capabilities),
    ]
    .map(|(name, value)| format!("{name}: {}", printable(value)))
    .into_iter()
    .chain([format!(
        "tasks: {} ({} running), {} waiting",
        status.tasks_total, status.tasks_running, status.rpc_queue_length
    )])
    .collect()
}

#[cfg(test)]
mod tests;
